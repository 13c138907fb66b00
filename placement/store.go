package placement

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
)

// Errors of a [Store], besides those of bucket.Store.
var (
	// ErrNowhere says that all stores that a tenant may be in take nobody in, or that its place cannot be told. It is a bucket.ErrUnavailable.
	ErrNowhere = fmt.Errorf("%w: placement: no store takes the tenant in", bucket.ErrUnavailable)
	// ErrGeneration says that a map is not newer than the one that holds.
	ErrGeneration = errors.New("placement: the map is not newer than the one that holds")
	// ErrOther says that a map has the number of the one that holds, and says something else: two maps were published by one number.
	ErrOther = errors.New("placement: the map is another one than the one of its generation that holds")
	// ErrClosed says that a store was closed.
	ErrClosed = fmt.Errorf("%w: placement: the store is closed", bucket.ErrUnavailable)
)

// Store is a bucket.Store over several, each tenant in one of them. It is also a bucket.LeaseStore and a bucket.LeaseReader, a bucket.OverrideStore, a bucket.UsageStore, which tells what was counted
// where the tenant is now, and a bucket.EvictionCounter. It is safe for concurrent use, and [Store.Close] ends it.
type Store struct {
	open    Opener
	current atomic.Pointer[layout]
	watch   *watch

	// mu is held by who applies a map or closes.
	mu     sync.Mutex
	closed bool
}

var (
	_ bucket.LeaseStore      = (*Store)(nil)
	_ bucket.LeaseReader     = (*Store)(nil)
	_ bucket.OverrideStore   = (*Store)(nil)
	_ bucket.UsageStore      = (*Store)(nil)
	_ bucket.EvictionCounter = (*Store)(nil)
)

// Config configures a [Store].
type Config struct {
	// Open opens the stores of maps: [OpenRedis] returns what opens a Redis. Required.
	Open Opener
	// Observe says who is told.
	Observe ObserveConfig
}

// Opener opens a store, and examines whether tenants can be trusted to it. The error says why not.
type Opener func(ctx context.Context, member Member) (Opened, error)

// Backend is a store that a map can name. [bucket.Memory] and [bucket.Redis] are such.
type Backend interface {
	bucket.Store
	bucket.OverrideStore
	bucket.UsageStore
}

// Opened is a store that was opened.
type Opened struct {
	Backend
	// Close ends what was opened. Nil ends nothing.
	Close func() error
}

// New returns a store by a map, all of whose stores it opens but those that are lost. The error is a [*RefusedError] if one cannot be opened.
func New(ctx context.Context, cfg Config, m *Map) (*Store, error) {
	if cfg.Open == nil {
		return nil, errors.New("placement: Config.Open is nil: placement.OpenRedis returns what opens a Redis")
	}
	s := &Store{open: cfg.Open}
	watch, err := newWatch(cfg.Observe, s)
	if err != nil {
		return nil, err
	}
	s.watch = watch
	if err := s.Apply(ctx, m); err != nil {
		watch.close()
		return nil, err
	}
	return s, nil
}

// Map returns the map that holds, which does not change.
func (s *Store) Map() *Map { return s.current.Load().of }

// Evicted implements bucket.EvictionCounter.
func (s *Store) Evicted() uint64 {
	sum := uint64(0)
	for _, m := range s.current.Load().members {
		if counter, ok := m.Backend.(bucket.EvictionCounter); ok {
			sum += counter.Evicted()
		}
	}
	return sum
}

// asked has something done where a tenant is.
func (s *Store) asked(tenant string, do func(m *member) error) error {
	home, err := s.current.Load().home(tenant)
	if err != nil {
		return err
	}
	home.calls.Add(1)
	return do(home)
}

// Take implements bucket.Store.
func (s *Store) Take(ctx context.Context, take bucket.Take) (result bucket.Result, err error) {
	if err := take.Check(); err != nil {
		return bucket.Result{}, err
	}
	err = s.asked(take.Tenant, func(m *member) (err error) {
		result, err = m.Take(ctx, take)
		result.Receipt = result.Receipt.At(m.name)
		return err
	})
	return result, err
}

// Settle implements bucket.Store: what was charged in a store is settled there, also where the tenant is in another one by now. The error is [ErrNowhere] if the
// map that holds does not have that store any more.
func (s *Store) Settle(ctx context.Context, settlement bucket.Settlement) (bucket.Settled, error) {
	if settlement.Receipt.IsZero() && settlement.Claim == nil {
		return bucket.Settled{}, nil
	}
	l := s.current.Load()
	at, err := l.home(settlement.Tenant())
	// A receipt of what was leased does not say where.
	if place := settlement.Receipt.Place(); place != "" && l.of != nil {
		if at, err = l.member(place), nil; at == nil {
			err = ErrNowhere
		}
	}
	if err != nil {
		return bucket.Settled{}, err
	}
	at.calls.Add(1)
	return at.Settle(ctx, settlement)
}

// Renew implements bucket.Store.
func (s *Store) Renew(ctx context.Context, tenant string, claim *idempotency.Claim) (held bool, err error) {
	err = s.asked(tenant, func(m *member) (err error) {
		held, err = m.Renew(ctx, tenant, claim)
		return err
	})
	return held, err
}

// Peek implements bucket.Store.
func (s *Store) Peek(ctx context.Context, tenant string, buckets []bucket.Bucket) (states []bucket.LimitState, err error) {
	err = s.asked(tenant, func(m *member) (err error) {
		states, err = m.Peek(ctx, tenant, buckets)
		return err
	})
	return states, err
}

// Grant implements bucket.Store.
func (s *Store) Grant(ctx context.Context, tenant string, buckets []bucket.Bucket, amounts bucket.Amounts) (states []bucket.LimitState, err error) {
	err = s.asked(tenant, func(m *member) (err error) {
		states, err = m.Grant(ctx, tenant, buckets, amounts)
		return err
	})
	return states, err
}

// Reset implements bucket.Store.
func (s *Store) Reset(ctx context.Context, tenant string, buckets []bucket.Bucket) error {
	return s.asked(tenant, func(m *member) error { return m.Reset(ctx, tenant, buckets) })
}

// SetOverride implements bucket.OverrideStore.
func (s *Store) SetOverride(ctx context.Context, tenant string, override bucket.Override) (was *bucket.Override, err error) {
	err = s.asked(tenant, func(m *member) (err error) {
		was, err = m.SetOverride(ctx, tenant, override)
		return err
	})
	return was, err
}

// GetOverride implements bucket.OverrideStore.
func (s *Store) GetOverride(ctx context.Context, tenant string, owner bucket.Owner, limit string) (is *bucket.Override, err error) {
	err = s.asked(tenant, func(m *member) (err error) {
		is, err = m.GetOverride(ctx, tenant, owner, limit)
		return err
	})
	return is, err
}

// ListOverrides implements bucket.OverrideStore.
func (s *Store) ListOverrides(ctx context.Context, tenant string) (all []bucket.Override, err error) {
	err = s.asked(tenant, func(m *member) (err error) {
		all, err = m.ListOverrides(ctx, tenant)
		return err
	})
	return all, err
}

// DeleteOverride implements bucket.OverrideStore.
func (s *Store) DeleteOverride(ctx context.Context, tenant string, owner bucket.Owner, limit string) (was *bucket.Override, err error) {
	err = s.asked(tenant, func(m *member) (err error) {
		was, err = m.DeleteOverride(ctx, tenant, owner, limit)
		return err
	})
	return was, err
}

// ClearOverrides implements bucket.OverrideStore.
func (s *Store) ClearOverrides(ctx context.Context, tenant string) (all []bucket.Override, err error) {
	err = s.asked(tenant, func(m *member) (err error) {
		all, err = m.ClearOverrides(ctx, tenant)
		return err
	})
	return all, err
}

// ReadUsage implements bucket.UsageStore: it tells what was counted where the tenant is. Usage does not move; what was counted elsewhere, a collector of that
// store reads. It is one store, because a collector takes an hour for whole: a sum of several would be less while one of them is away, and whoever reads all of it and
// has it forgotten would have forgotten what the other has counted since.
func (s *Store) ReadUsage(ctx context.Context, tenant string, hour time.Time, grade bucket.UsageGrade) (read *bucket.UsageHour, err error) {
	err = s.asked(tenant, func(m *member) (err error) {
		read, err = m.ReadUsage(ctx, tenant, hour, grade)
		return err
	})
	return read, err
}

// ForgetUsage implements bucket.UsageStore.
func (s *Store) ForgetUsage(ctx context.Context, read *bucket.UsageHour) (done bool, err error) {
	err = s.asked(read.Tenant, func(m *member) (err error) {
		done, err = m.ForgetUsage(ctx, read)
		return err
	})
	return done, err
}
