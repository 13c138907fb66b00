package tiers

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// CandidateSource is a [Source] that may have a candidate beside the live policy: a policy that decides
// nothing and is judged with budgets of its own, to see what it would do.
type CandidateSource interface {
	Source
	// Candidate returns the candidate, as it holds now, and the id that names its budgets. The snapshot is
	// nil if there is none.
	Candidate() (id string, candidate *Snapshot)
}

// CandidateOf returns the candidate of a source that is a [CandidateSource]. The snapshot is nil if there is none.
func CandidateOf(source Source) (id string, candidate *Snapshot) {
	if source, ok := source.(CandidateSource); ok {
		return source.Candidate()
	}
	return "", nil
}

// ErrNoCandidate says that there is nothing to promote.
var ErrNoCandidate = errors.New("tiers: there is no candidate")

// Rollout is a [Source] that tries another policy beside the one of its source before it takes its place.
// It is made by [NewRollout] and safe for concurrent use. Put a [ModeSwitch] around it and not inside, so
// that the switch eases a promoted policy as well.
//
// Each replica has a rollout of its own: propose the same policy under the same id to all of them.
type Rollout struct {
	source Source
	// mu is held by those who change the state.
	mu     sync.Mutex
	checks checks
	state  atomic.Pointer[rolloutState]
}

type rolloutState struct {
	id        string
	candidate *Snapshot
	// promoted is in the place of that policy of the source.
	promoted *Snapshot
	over     *family
}

var (
	_ CandidateSource = (*Rollout)(nil)
	_ Checker         = (*Rollout)(nil)
	_ Preparer        = (*Rollout)(nil)
)

// NewRollout returns a rollout without a candidate. The source is required.
func NewRollout(source Source) *Rollout {
	r := &Rollout{source: source}
	r.state.Store(&rolloutState{})
	return r
}

// Snapshot returns the live policy: that of the source, or one that was promoted, until the source has
// another than it had then.
func (r *Rollout) Snapshot() *Snapshot {
	live := r.source.Snapshot()
	if state := r.state.Load(); live != nil && state.promoted != nil && state.over == live.family {
		return state.promoted.Snapshot()
	}
	return live
}

// Check implements [Checker]: the source does the checking, and what is promoted has to pass as well. A
// candidate need not before.
func (r *Rollout) Check(check func(*Snapshot) error) error {
	r.mu.Lock()
	r.checks = append(r.checks, check)
	r.mu.Unlock()
	if err := forward(r.source, check); err != nil {
		return err
	}
	return check(r.Snapshot())
}

// Candidate implements [CandidateSource]: what was proposed.
func (r *Rollout) Candidate() (id string, candidate *Snapshot) {
	state := r.state.Load()
	if state.candidate == nil {
		return "", nil
	}
	return state.id, state.candidate.Snapshot()
}

// Propose makes the snapshot the candidate, in the place of the one before it. The id names its budgets,
// as bucket.Candidate says: under an id that was used before, what was spent then is still spent. The
// error says what is wrong with the id, or that there is no snapshot.
func (r *Rollout) Propose(id string, candidate *Snapshot) error {
	if candidate == nil {
		return ErrNoCandidate
	}
	if err := (&bucket.Candidate{ID: id}).Check(); err != nil {
		return err
	}
	r.change(func(state *rolloutState) { state.id, state.candidate = id, candidate })
	return nil
}

// Promote makes the candidate the live policy. It goes on from what was spent under the policy that it
// replaces, as any policy does: the budgets that it had as a candidate were for trying and expire. What is
// promoted is kept in this process only, so that the document of the source has to follow. The error is
// [ErrNoCandidate], or that of a check ([Rollout.Check]); then nothing changes.
func (r *Rollout) Promote() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	state, live := *r.state.Load(), r.source.Snapshot()
	if state.candidate == nil || live == nil {
		return ErrNoCandidate
	}
	if err := r.checks.pass(state.candidate); err != nil {
		return err
	}
	r.state.Store(&rolloutState{promoted: state.candidate, over: live.family})
	return nil
}

// Drop ends the trial of the candidate, if there is one. The live policy stays, also one that was promoted.
func (r *Rollout) Drop() {
	r.change(func(state *rolloutState) { state.id, state.candidate = "", nil })
}

func (r *Rollout) change(by func(*rolloutState)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	state := *r.state.Load()
	by(&state)
	r.state.Store(&state)
}

// Prepare implements [Preparer]: the source knows the tenants.
func (r *Rollout) Prepare(ctx context.Context, subject Subject) *Record {
	return prepare(ctx, r.source, subject)
}
