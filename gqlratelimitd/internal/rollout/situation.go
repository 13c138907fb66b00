package rollout

import (
	"fmt"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// Situation is what there is at one moment. Its methods say what somebody's change makes of it: the next state, which [Store] saves in the place of
// this one, and the revision that is published with it, nil for none. They change nothing themselves.
type Situation struct {
	// State is the newest roll-out, nil if there never was one.
	State *State
	// Newest is the number of the newest revision, 0 for none.
	Newest uint64
}

// StartInput is a roll-out that is to begin.
type StartInput struct {
	// ID names the candidate, one that was not used before, and Seed decides the order of tenants.
	ID, Seed string
	// Document is the new policy, and Before that of the newest revision.
	Document, Before []byte
	Plan             Plan
	// By is who wants it, and Reason why.
	By, Reason string
	// Expected is the newest revision that its author has seen.
	Expected uint64
}

// Start begins a roll-out; parse is how instances read documents. The error is [ErrNotNow] if one has not ended, [ErrConflict] if the newest
// revision is another one, or says what is wrong with the input. It parses documents, which takes time.
func (s Situation) Start(in StartInput, parse tiers.ParseConfig, now time.Time) (*State, *Publication, error) {
	switch {
	case s.State.Active() && s.State.Revision == s.Newest:
		return nil, nil, fmt.Errorf("%w: roll-out %s is %s", ErrNotNow, s.State.ID, s.State.Phase)
	case s.Newest == 0 || s.Newest != in.Expected:
		return nil, nil, ErrConflict
	case s.State != nil && s.State.ID == in.ID:
		return nil, nil, fmt.Errorf("%w: roll-out %s has been: its candidate has spent budgets; use another id", ErrNotNow, in.ID)
	}
	return s.next(Begin(State{
		ID: in.ID, Seed: in.Seed, Plan: in.Plan, Old: in.Before, New: in.Document, By: in.By, Reason: in.Reason,
	}, s.Newest, parse, now))
}

// Halt stops the roll-out where it is, and says why. The error is [ErrNotNow] or [ErrConflict].
func (s Situation) Halt(now time.Time, why string) (*State, *Publication, error) {
	if err := s.holds(); err != nil {
		return nil, nil, err
	}
	next, err := s.State.Halt(now, why)
	return s.next(next, nil, err)
}

// Resume has a halted roll-out go on. The error is [ErrNotNow] or [ErrConflict].
func (s Situation) Resume(now time.Time) (*State, *Publication, error) {
	if err := s.holds(); err != nil {
		return nil, nil, err
	}
	next, err := s.State.Resume(now)
	return s.next(next, nil, err)
}

// Abort goes back to the old policy, in a revision of its own. The error is [ErrNotNow] or [ErrConflict].
func (s Situation) Abort(why string) (*State, *Publication, error) {
	if err := s.holds(); err != nil {
		return nil, nil, err
	}
	return s.next(s.State.Abort(why))
}

// Advance says what time and measurements make of it: [State.Advance]. The state is nil if nothing changes.
func (s Situation) Advance(now time.Time, measured *Shares) (*State, *Publication, error) {
	if !s.State.Active() {
		return nil, nil, nil
	}
	next, publication, changed, err := s.State.Advance(now, s.Newest, measured)
	if err != nil || !changed {
		return nil, nil, err
	}
	return s.next(next, publication, nil)
}

// holds returns why nothing about the roll-out can be changed.
func (s Situation) holds() error {
	switch {
	case s.State == nil:
		return fmt.Errorf("%w: there is no roll-out", ErrNotNow)
	case s.State.Active() && s.State.Revision != s.Newest:
		return fmt.Errorf("%w: revision %d was published meanwhile, which ends the roll-out", ErrConflict, s.Newest)
	}
	return nil
}

// next counts the state that takes the place of this one.
func (s Situation) next(next *State, publication *Publication, err error) (*State, *Publication, error) {
	if err != nil {
		return nil, nil, err
	}
	next.Version = 1
	if s.State != nil {
		next.Version = s.State.Version + 1
	}
	return next, publication, nil
}
