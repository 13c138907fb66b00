package tiers

import (
	"context"
	"errors"
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

// errNoCandidate says that no policy was proposed.
var errNoCandidate = errors.New("tiers: the candidate is nil")

// Rollout is a [Source] that tries another policy beside the one of its source. It is made by [NewRollout] and safe for
// concurrent use. The candidate takes the place of the live policy when the source has it: publish its document.
//
// Each replica has a rollout of its own: propose the same policy under the same id to all of them.
type Rollout struct {
	source    Source
	candidate atomic.Pointer[proposed]
}

// proposed is a candidate, and the id that names its budgets.
type proposed struct {
	id       string
	snapshot *Snapshot
}

var (
	_ CandidateSource = (*Rollout)(nil)
	_ Checker         = (*Rollout)(nil)
	_ Preparer        = (*Rollout)(nil)
)

// NewRollout returns a rollout without a candidate. The source is required.
func NewRollout(source Source) *Rollout { return &Rollout{source: source} }

// Snapshot returns the live policy, that of the source.
func (r *Rollout) Snapshot() *Snapshot { return r.source.Snapshot() }

// Check implements [Checker]: the source does the checking. A candidate need not pass.
func (r *Rollout) Check(check func(*Snapshot) error) error { return forward(r.source, check) }

// Candidate implements [CandidateSource]: what was proposed.
func (r *Rollout) Candidate() (id string, candidate *Snapshot) {
	tried := r.candidate.Load()
	if tried == nil {
		return "", nil
	}
	return tried.id, tried.snapshot.Snapshot()
}

// Propose makes the snapshot the candidate, in the place of the one before it. The id names its budgets,
// as bucket.Candidate says: under an id that was used before, what was spent then is still spent. The
// error says what is wrong with the id, or that there is no snapshot.
func (r *Rollout) Propose(id string, candidate *Snapshot) error {
	if candidate == nil {
		return errNoCandidate
	}
	if err := (&bucket.Candidate{ID: id}).Check(); err != nil {
		return err
	}
	r.candidate.Store(&proposed{id, candidate})
	return nil
}

// Drop ends the trial of the candidate, if there is one.
func (r *Rollout) Drop() { r.candidate.Store(nil) }

// Prepare implements [Preparer]: the source knows the tenants.
func (r *Rollout) Prepare(ctx context.Context, subject Subject) *Record {
	return prepare(ctx, r.source, subject)
}
