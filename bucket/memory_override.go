package bucket

import (
	"context"
	"time"
)

var _ OverrideStore = (*Memory)(nil)

// overridesOf returns the records of the tenant, nil if there are none or all have expired.
func (s *shard) overridesOf(tenant tenantKey, now int64) *overrideSet {
	if len(s.overrides) == 0 {
		return nil
	}
	set := s.overrides[tenant.name]
	if set != nil && set.expires() <= now {
		s.replaceOverrides(tenant, set, nil)
		return nil
	}
	return set
}

// govern returns what the records of the tenant make of the buckets, of which the live ones come first.
func (s *shard) govern(tenant tenantKey, buckets []Bucket, live int, owners []Owner, now int64) governing {
	set := s.overridesOf(tenant, now)
	if set == nil {
		return ungoverned(buckets)
	}
	return set.govern(buckets, live, owners, now)
}

// replaceOverrides keeps other records of the tenant. No records are the same as none.
func (s *shard) replaceOverrides(tenant tenantKey, old *overrideSet, records []Override) {
	if old != nil {
		s.store.overrides.Add(-int64(len(old.records)))
	}
	if len(records) == 0 {
		delete(s.overrides, tenant.name)
		return
	}
	if s.overrides == nil {
		s.overrides = map[string]*overrideSet{}
	}
	s.store.overrides.Add(int64(len(records)))
	s.overrides[tenant.name] = &overrideSet{generation: newGeneration(), records: records}
}

// sweepOverrides removes the records of all tenants that have expired. No shard may be locked.
func (m *Memory) sweepOverrides() {
	for i := range m.shards {
		m.shards[i].sweepOverrides()
	}
}

func (s *shard) sweepOverrides() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	for name, set := range s.overrides {
		if kept := set.list(now); len(kept) < len(set.records) {
			s.replaceOverrides(tenantKey{name: name}, set, kept)
		}
	}
}

// SetOverride implements [OverrideStore]. All tenants together may have as many records as the store has
// entries.
func (m *Memory) SetOverride(ctx context.Context, tenant string, override Override) (*Override, error) {
	if err := m.check(ctx); err != nil {
		return nil, err
	}
	if err := override.check(); err != nil {
		return nil, err
	}
	if m.overrides.Load() >= m.maxOverrides {
		// Those of tenants that never come back would hold room for ever.
		m.sweepOverrides()
	}
	s, kept, now := m.lock(tenant)
	defer s.mu.Unlock()
	if !override.holds(now) {
		return nil, errExpired
	}
	set := s.overridesOf(kept, now)
	replaced := set.find(override.Owner, override.Limit, now)
	records := set.without(override.Owner, override.Limit, now)
	size := overrideSize(&override) + (&overrideSet{records: records}).size()
	room := m.maxOverrides - m.overrides.Load()
	if set != nil {
		room += int64(len(set.records))
	}
	if len(records) >= maxOverrides || size > maxOverrideBytes || int64(len(records)) >= room {
		return nil, ErrOverridesFull
	}
	override = override.clone()
	if !override.Expires.IsZero() {
		override.Expires = time.UnixMilli(override.Expires.UnixMilli())
	}
	override.SetAt = time.UnixMilli(now)
	s.replaceOverrides(kept, set, append(records, override))
	return replaced, nil
}

// GetOverride implements [OverrideStore].
func (m *Memory) GetOverride(ctx context.Context, tenant string, owner Owner, limit string) (*Override, error) {
	if err := m.check(ctx); err != nil {
		return nil, err
	}
	if err := checkOverrideKey(owner, limit); err != nil {
		return nil, err
	}
	s, kept, now := m.lock(tenant)
	defer s.mu.Unlock()
	return s.overridesOf(kept, now).find(owner, limit, now), nil
}

// ListOverrides implements [OverrideStore].
func (m *Memory) ListOverrides(ctx context.Context, tenant string) ([]Override, error) {
	if err := m.check(ctx); err != nil {
		return nil, err
	}
	s, kept, now := m.lock(tenant)
	defer s.mu.Unlock()
	return s.overridesOf(kept, now).list(now), nil
}

// DeleteOverride implements [OverrideStore].
func (m *Memory) DeleteOverride(ctx context.Context, tenant string, owner Owner, limit string) (*Override, error) {
	if err := m.check(ctx); err != nil {
		return nil, err
	}
	if err := checkOverrideKey(owner, limit); err != nil {
		return nil, err
	}
	s, kept, now := m.lock(tenant)
	defer s.mu.Unlock()
	set := s.overridesOf(kept, now)
	removed := set.find(owner, limit, now)
	s.replaceOverrides(kept, set, set.without(owner, limit, now))
	return removed, nil
}

// ClearOverrides implements [OverrideStore].
func (m *Memory) ClearOverrides(ctx context.Context, tenant string) ([]Override, error) {
	if err := m.check(ctx); err != nil {
		return nil, err
	}
	s, kept, now := m.lock(tenant)
	defer s.mu.Unlock()
	set := s.overridesOf(kept, now)
	s.replaceOverrides(kept, set, nil)
	return set.list(now), nil
}

// without returns the records that hold, but for one.
func (s *overrideSet) without(owner Owner, limit string, now int64) []Override {
	records := s.list(now)
	for i := range records {
		if records[i].Owner == owner && records[i].Limit == limit {
			return append(records[:i], records[i+1:]...)
		}
	}
	return records
}
