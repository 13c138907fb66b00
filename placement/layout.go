package placement

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// layout is a map whose stores are open. It does not change.
type layout struct {
	of      *Map
	now     places
	before  []places
	members []*member
	arrived arrivals
}

// member is an open store.
type member struct {
	Opened

	name, address string
	// calls counts what was asked of it.
	calls atomic.Int64
}

// member returns an open store by its name, nil if it is none.
func (l *layout) member(name string) *member {
	for _, m := range l.members {
		if m.name == name {
			return m
		}
	}
	return nil
}

// home returns the store that the tenant is in.
func (l *layout) home(tenant string) (*member, error) {
	if l.of == nil {
		return nil, ErrClosed
	}
	m := l.member(l.now.home(tenant))
	if m == nil {
		return nil, ErrNowhere
	}
	return m, nil
}

// source is a store that may have something of a tenant, or had when it was lost.
type source struct {
	name string
	lost time.Time
}

// sources are the stores that may have something of the tenant besides its home.
func (l *layout) sources(tenant, home string) (all []source) {
	for i := range l.before {
		name := l.before[i].home(tenant)
		one := source{name, l.before[i].lost[name]}
		if name != "" && (name != home || !one.lost.IsZero()) && !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return all
}

// arrivals are what has arrived of tenants by a layout, as far as they are remembered: what is not arrives again, with the same result.
type arrivals struct {
	mu   sync.Mutex
	seen map[arrival]struct{}
	// stale are tenants who have left by newer maps, with the generations of these.
	stale map[string]uint64
}

type arrival struct {
	tenant string
	of     bucket.Belonging
}

// mostArrivals is how many are remembered.
const mostArrivals = 100_000

// have reports whether all of it is there, and with what is missing.
func (a *arrivals) have(tenant string, all []bucket.Belonging) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, one := range all {
		if _, is := a.seen[arrival{tenant, one}]; !is {
			return false
		}
	}
	return true
}

// newer returns by which newer map the tenant has left, 0 if none is known.
func (a *arrivals) newer(tenant string) uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stale[tenant]
}

func (a *arrivals) addStale(tenant string, generation uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stale == nil || len(a.stale) >= mostArrivals {
		a.stale = make(map[string]uint64)
	}
	a.stale[tenant] = generation
}

func (a *arrivals) add(tenant string, all []bucket.Belonging) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.seen == nil || len(a.seen)+len(all) > mostArrivals {
		a.seen = make(map[arrival]struct{})
	}
	for _, one := range all {
		a.seen[arrival{tenant, one}] = struct{}{}
	}
}

// bring has the belongings of a tenant arrive in its home, if they may be elsewhere. With anyway it does so whatever is remembered.
func (s *Store) bring(ctx context.Context, l *layout, home *member, tenant string, belongings bucket.Belongings, anyway bool) error {
	sources := l.sources(tenant, home.name)
	if len(sources) == 0 && !anyway {
		return nil
	}
	// What every call has: that the tenant itself is there.
	all := append(belongings.All(), bucket.Belonging{})
	if !anyway && l.arrived.have(tenant, all) {
		return nil
	}
	// Who has gone on by a newer map may be back where this one has them leave: they are left alone.
	if generation := l.arrived.newer(tenant); generation > 0 {
		return &bucket.MovedError{Generation: generation}
	}
	parcels := make([]*bucket.Parcel, 0, len(sources))
	for _, from := range sources {
		parcel, err := l.leave(ctx, from, tenant, belongings)
		if err != nil {
			s.watch.failed.Add(1)
			return fmt.Errorf("placement: a tenant cannot leave %s: %w", from.name, err)
		}
		parcels = append(parcels, parcel)
	}
	if err := home.Arrive(ctx, tenant, parcels, l.of.Generation); err != nil {
		s.watch.failed.Add(1)
		return fmt.Errorf("placement: a tenant cannot arrive in %s: %w", home.name, err)
	}
	s.watch.arrived.Add(1)
	for i, from := range sources {
		if m := l.member(from.name); m != nil && from.lost.IsZero() && m.Forget(ctx, tenant, parcels[i]) != nil {
			// It stays there until it expires, and would arrive again with the same result.
			s.watch.left.Add(1)
		}
	}
	l.arrived.add(tenant, all)
	return nil
}

// leave has a tenant leave a store.
func (l *layout) leave(ctx context.Context, from source, tenant string, belongings bucket.Belongings) (*bucket.Parcel, error) {
	if !from.lost.IsZero() {
		return bucket.LostParcel(belongings, from.lost, l.of.WhenLost != Full), nil
	}
	m := l.member(from.name)
	if m == nil {
		return nil, ErrNowhere
	}
	return m.Leave(ctx, tenant, belongings, l.of.Generation)
}

// Apply has a newer map hold. It opens the stores that were not open, and closes those that are no longer named; calls that are under way in these end as they
// can. If a store cannot be opened the error is a [*RefusedError], and the map that holds goes on.
func (s *Store) Apply(ctx context.Context, m *Map) error {
	if err := m.Check(); err != nil {
		s.watch.refused.Add(1)
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.current.Load()
	switch {
	case s.closed:
		return ErrClosed
	case was != nil && m.Generation == was.of.Generation && !m.same(was.of):
		s.watch.refused.Add(1)
		return fmt.Errorf("%w: generation %d", ErrOther, m.Generation)
	case was != nil && m.Generation <= was.of.Generation:
		return fmt.Errorf("%w: generation %d, and not %d", ErrGeneration, m.Generation, was.of.Generation)
	}
	m = m.clone()
	next, opened, err := s.prepare(ctx, m, was)
	if err != nil {
		s.watch.refused.Add(1)
		return errors.Join(err, closeAll(opened))
	}
	s.current.Store(next)
	if was == nil {
		return nil
	}
	var gone []*member
	for _, old := range was.members {
		if !slices.Contains(next.members, old) {
			gone = append(gone, old)
		}
	}
	if err := closeAll(gone); err != nil {
		s.watch.logger.WarnContext(ctx, "placement: a store was not closed", "error", err.Error())
	}
	return nil
}

// prepare opens what a map needs, and returns what it has opened.
func (s *Store) prepare(ctx context.Context, m *Map, was *layout) (next *layout, opened []*member, err error) {
	next = &layout{of: m, now: m.places()}
	for _, b := range m.Before {
		earlier := placesOf(b.Candidates, b.Stores, b.Pins, nil)
		earlier.lost = b.Lost
		next.before = append(next.before, earlier)
	}
	var refused []error
	for _, one := range m.Stores {
		if one.Lost != nil {
			continue
		}
		if was != nil {
			if old := was.member(one.Name); old != nil && old.address == one.Address {
				next.members = append(next.members, old)
				continue
			}
		}
		store, err := s.open(ctx, one)
		if err == nil && store.Movable == nil {
			err = errors.New("nothing was opened")
		}
		if err != nil {
			refused = append(refused, &RefusedError{Store: one.Name, Generation: m.Generation, Reason: err})
			continue
		}
		added := &member{Opened: store, name: one.Name, address: one.Address}
		opened = append(opened, added)
		next.members = append(next.members, added)
	}
	return next, opened, errors.Join(refused...)
}

// RefusedError says that a map does not hold, because a store of it was refused.
type RefusedError struct {
	// Store is its name, and Generation that of the map.
	Store      string
	Generation uint64
	// Reason is why: a [*FindingsError] if it was examined.
	Reason error
}

// Error says which store was refused, and why.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("placement: generation %d does not hold: the store %s is refused: %v", e.Generation, e.Store, e.Reason)
}

// Unwrap returns the reason.
func (e *RefusedError) Unwrap() error { return e.Reason }

func closeAll(members []*member) error {
	var errs []error
	for _, m := range members {
		if m.Close != nil {
			errs = append(errs, m.Close())
		}
	}
	return errors.Join(errs...)
}

// Close ends what the store has opened. Calls after it fail with [ErrClosed]. It may be called again.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.watch.close()
	return closeAll(s.current.Swap(&layout{}).members)
}
