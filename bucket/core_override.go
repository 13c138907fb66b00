package bucket

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// Of how many tenants a process remembers the override records, and how much they may take as they are
// stored.
const (
	maxKnownOverrides     = 16 << 10
	maxKnownOverrideBytes = 16 << 20
)

// knownOverrides are the records that replies have told, by tenant. A script that finds others in the store
// does nothing and tells those; tenants without records are not remembered.
type knownOverrides struct {
	mu   sync.RWMutex
	sets map[string]knownSet
	// size is that of all sets as they are stored.
	size int
	n    atomic.Int64
}

// knownSet are records and when the latest call was sent that was told them.
type knownSet struct {
	*overrideSet
	sent time.Time
}

// get returns what is known of the tenant, nil if it is taken to have no records.
func (k *knownOverrides) get(tenant string) *overrideSet {
	if k.n.Load() == 0 {
		return nil
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.sets[tenant].overrideSet
}

// learn remembers the records that a call was told which was sent at that time, nil for none, unless one
// that was sent later has been told others. It returns the records, as they are remembered if they are:
// with what is worked out from them.
func (k *knownOverrides) learn(tenant string, set *overrideSet, sent time.Time) *overrideSet {
	k.mu.Lock()
	defer k.mu.Unlock()
	if known, found := k.sets[tenant]; found {
		late := sent.Before(known.sent)
		if set != nil && set.generation == known.generation {
			if !late {
				known.sent = sent
				k.sets[tenant] = known
			}
			return known.overrideSet
		}
		if late {
			return set
		}
	}
	k.forget(tenant)
	if set != nil {
		for other := range k.sets {
			if len(k.sets) < maxKnownOverrides && k.size+set.size <= maxKnownOverrideBytes {
				break
			}
			// Whichever comes first: what is missing costs one more try.
			k.forget(other)
		}
		if k.sets == nil {
			k.sets = map[string]knownSet{}
		}
		// The name may be part of a much longer text, which must not stay in memory with it.
		k.sets[strings.Clone(tenant)] = knownSet{set, sent}
		k.size += set.size
	}
	k.n.Store(int64(len(k.sets)))
	return set
}

func (k *knownOverrides) forget(tenant string) {
	if set, found := k.sets[tenant]; found {
		k.size -= set.size
		delete(k.sets, tenant)
	}
}

// SetOverride implements [OverrideStore]. After [ErrAmbiguous] it can be called again.
func (s *core) SetOverride(ctx context.Context, tenant string, override Override) (*Override, error) {
	if err := override.Check(); err != nil {
		return nil, err
	}
	was, now, err := s.changeOverrides(ctx, tenant, packOverrideKey(override.Owner, override.Limit), packOverride(&override))
	return was.find(override.Owner, override.Limit, now), err
}

// GetOverride implements [OverrideStore].
func (s *core) GetOverride(ctx context.Context, tenant string, owner Owner, limit string) (*Override, error) {
	if err := checkOverrideKey(owner, limit); err != nil {
		return nil, err
	}
	is, now, err := s.readOverrides(ctx, tenant)
	return is.find(owner, limit, now), err
}

// ListOverrides implements [OverrideStore].
func (s *core) ListOverrides(ctx context.Context, tenant string) ([]Override, error) {
	is, now, err := s.readOverrides(ctx, tenant)
	return is.list(now), err
}

// DeleteOverride implements [OverrideStore].
func (s *core) DeleteOverride(ctx context.Context, tenant string, owner Owner, limit string) (*Override, error) {
	if err := checkOverrideKey(owner, limit); err != nil {
		return nil, err
	}
	was, now, err := s.changeOverrides(ctx, tenant, packOverrideKey(owner, limit), nil)
	return was.find(owner, limit, now), err
}

// ClearOverrides implements [OverrideStore].
func (s *core) ClearOverrides(ctx context.Context, tenant string) ([]Override, error) {
	was, now, err := s.changeOverrides(ctx, tenant, "", nil)
	if errors.Is(err, errOverrides) {
		// What is gone need not be read.
		return nil, nil
	}
	return was.list(now), err
}

// readOverrides returns the records and the time of the store.
func (s *core) readOverrides(ctx context.Context, tenant string) (*overrideSet, int64, error) {
	return s.callOverrides(ctx, tenant, "", "", nil)
}

// changeOverrides returns the records before the change.
func (s *core) changeOverrides(ctx context.Context, tenant, id string, record []byte) (*overrideSet, int64, error) {
	next := newGeneration()
	return s.callOverrides(ctx, tenant, string(next[:]), id, record)
}

// callOverrides runs override.lua, which describes the arguments.
func (s *core) callOverrides(ctx context.Context, tenant, next, id string, record []byte) (*overrideSet, int64, error) {
	c := s.newCall(tenant, &s.scripts.Override, 1, 4)
	c.administers = true
	c.key(address{kind: overridesKey})
	c.values(nil, maxOverrides, 0, nil)
	c.arg(next)
	c.arg(id)
	c.arg(record)
	reply, err := c.do(ctx)
	if err != nil {
		return nil, 0, err
	}
	if reply.outcome == state.NotApplied {
		return nil, 0, ErrOverridesFull
	}
	if reply.outcome == state.Expired {
		return nil, 0, errExpired
	}
	set, err := readOverrides(reply.rest)
	switch {
	case err != nil && next == "":
		return nil, 0, fmt.Errorf("%w: %w", ErrUnavailable, err)
	case err != nil:
		return nil, 0, fmt.Errorf("%w: %w", ErrAmbiguous, err)
	}
	return set, reply.now, nil
}
