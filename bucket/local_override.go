package bucket

import (
	"crypto/sha256"
	"strings"
)

// governed returns what override records make of the limits of the policy, as the states show it: a refusal has no
// receipt that says it.
func (o *localOwner) governed(policy *Limits, states []LimitState) *Limits {
	shown := make([]*Override, 0, len(states))
	for k := range states {
		shown = recordsOf(shown, states[k].Limit)
	}
	switch {
	case len(shown) == 0:
		return policy
	case o.policy == policy && o.shows(states):
		return o.limits
	default:
		return policy.overridden(shown)
	}
}

// shows reports whether the states are those of the limits that are known of the owner.
func (o *localOwner) shows(states []LimitState) bool {
	if len(states) != len(o.limits.rules) {
		return false
	}
	for k := range states {
		is, was := *states[k].Limit, *o.limits.rules[k].limit
		is.overrides, was.overrides = nil, nil
		if is != was {
			return false
		}
	}
	return true
}

// under returns what the override records that were shown last make of another policy.
func (o *localOwner) under(policy *Limits, now int64) *Limits {
	if o.limits == nil {
		return policy
	}
	var shown, hold []*Override
	for i := range o.limits.all {
		shown = recordsOf(shown, &o.limits.all[i])
	}
	for _, record := range shown {
		if record.holds(now) {
			hold = append(hold, record)
		}
	}
	if len(hold) == 0 {
		return policy
	}
	return policy.overridden(hold)
}

// recordsOf appends the records that make the limit what it is, those that are not there yet.
func recordsOf(records []*Override, limit *Limit) []*Override {
	if limit.overrides == nil {
		return records
	}
next:
	for _, record := range limit.overrides.records {
		for _, known := range records {
			if known == record {
				continue next
			}
		}
		records = append(records, record)
	}
	return records
}

// block notes what the store has said of the owners of a take: which of them a record blocks, or that none is
// blocked. Each shard
// remembers as many as its part of all owners.
func (s *localShard) block(l *local, take *Take, result *Result) {
	by := result.blockedBy
	blocked := result.Verdict == Blocked && by != nil
	if !blocked && s.blocks.Load() == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if blocked {
		s.keepBlock(max(1, int(l.room.most)/localShards), blockKey(take.Tenant, by.Owner), by)
	} else {
		take.owners(func(owner Owner) bool {
			delete(s.blocked, blockKey(take.Tenant, owner))
			return true
		})
	}
	l.blocking.Add(int64(len(s.blocked)) - s.blocks.Swap(int64(len(s.blocked))))
}

// keepBlock keeps the record of an owner, in the place of another if there are as many as may be.
func (s *localShard) keepBlock(most int, key localKey, by *Override) {
	if s.blocked == nil {
		s.blocked = make(map[localKey]*Override)
	}
	if s.blocked[key] == nil && len(s.blocked) >= most {
		for other := range s.blocked {
			delete(s.blocked, other)
			break
		}
	}
	key.tenant, key.owner.Name = strings.Clone(key.tenant), strings.Clone(key.owner.Name)
	s.blocked[key] = by
}

// blockKey names an owner by no more bytes than are remembered of a name: a long one does not unblock.
func blockKey(tenant string, owner Owner) localKey {
	owner.Name = shortName(owner.Name)
	return localKey{shortName(tenant), owner}
}

// shortName bounds the length of a name.
func shortName(name string) string {
	if len(name) <= maxLocalName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return string(sum[:])
}

// blocking returns the record that blocks an owner of the take, as far as the store has said so.
func (s *localShard) blocking(take *Take, now int64) (by *Override) {
	if len(s.blocked) == 0 {
		return nil
	}
	take.owners(func(owner Owner) bool {
		record := s.blocked[blockKey(take.Tenant, owner)]
		if record != nil && record.holds(now) {
			by = record
		}
		return by == nil
	})
	return by
}

// owners yields the owners that a record may block, until it is told that this is enough.
func (t *Take) owners(yield func(Owner) bool) {
	if !yield(Owner{}) {
		return
	}
	for i := range t.Buckets {
		owner := t.Buckets[i].Owner
		if !yield(owner) || owner.Part != "" && !yield(owner.whole()) {
			return
		}
	}
	for _, owner := range t.Owners {
		if !yield(owner) {
			return
		}
	}
}
