package placement

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
)

// layout is a map whose stores are open. It does not change.
type layout struct {
	of      *Map
	now     places
	members []*member
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
	var refused []error
	for _, one := range m.Stores {
		if one.Lost {
			continue
		}
		if was != nil {
			if old := was.member(one.Name); old != nil && old.address == one.Address {
				next.members = append(next.members, old)
				continue
			}
		}
		store, err := s.open(ctx, one)
		if err == nil && store.Backend == nil {
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
