package policy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/follow"
	"github.com/gqlgen-ratelimit/ratelimit/internal/guard"
	"github.com/gqlgen-ratelimit/ratelimit/internal/pace"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// askTimeout bounds one question to the feed.
const askTimeout = 3 * time.Second

// ask asks the feed, and returns why what it has is not what holds.
func (f *Follower) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	err := f.keeps.Ask(ctx)
	if errors.Is(err, errNothing) {
		return nil
	}
	return err
}

// read asks the feed for what differs from what is served.
func (f *Follower) read(ctx context.Context) (*Revision, error) {
	f.mu.Lock()
	f.have = f.served.head()
	f.mu.Unlock()
	return f.feed.Newest(ctx, f.have)
}

// judge makes the answer of the feed hold if it is good. At an interval the feed is given back what it has lost.
func (f *Follower) judge(ctx context.Context, answer follow.Answer[*Revision]) (err error) {
	var lost *Revision
	f.change(ctx, func() { lost, err = f.judged(f.have, answer.Value, answer.Err) })
	if lost != nil && answer.Cause == follow.ByInterval {
		f.restore(ctx, lost)
	}
	return err
}

// errNothing says that nothing is to be judged.
var errNothing = fmt.Errorf("policy: nothing was asked: %w", follow.ErrPending)

// change changes what mu guards, and then shows and tells what has changed.
func (f *Follower) change(ctx context.Context, by func()) {
	f.mu.Lock()
	by()
	status := f.status
	f.shown.Store(&status)
	f.mu.Unlock()
	f.told.flush(context.WithoutCancel(ctx))
}

// judged takes an answer of the feed. It returns the revision that the feed once had and has lost, nil if there is none.
func (f *Follower) judged(have Head, answer *Revision, err error) (lost *Revision, _ error) {
	refused := (*RefusedError)(nil)
	switch {
	case errors.As(err, &refused):
		// The feed itself has seen that what it has is no revision.
		f.refuse(refused)
		return nil, follow.Refused(err)
	case errors.Is(err, ErrEmpty):
		return f.lost(), follow.Behind(err)
	case err != nil:
		return nil, err
	case answer == nil && (have.Number == 0 || f.served.head() != have):
		// There is nothing that it could have, or a check has taken another policy meanwhile.
		return nil, errNothing
	case answer == nil || answer.Head() == f.served.head() && HashOf(answer.Document) == answer.Hash:
		f.inStep()
		return nil, nil
	}
	snapshot, refusal := f.inspect(answer)
	if refusal == nil {
		f.status.Refused = nil
		f.serve(candidate{answer, snapshot, originFeed}, nil)
		f.inStep()
		return nil, nil
	}
	f.refuse(refusal)
	if refusal.Reason == ReasonOlder {
		// A feed that is behind does not know what its newest revision is.
		return f.lost(), follow.Behind(refusal)
	}
	return nil, follow.Refused(refusal)
}

// lost is what is served if the feed once had it.
func (f *Follower) lost() *Revision {
	if f.confirmed {
		return f.served.revision
	}
	return nil
}

// inspect returns why a revision is not applied, or its policy. What is cheap comes first, and what was refused before
// is not compiled again.
func (f *Follower) inspect(r *Revision) (*tiers.Snapshot, *RefusedError) {
	refuse := func(reason Reason, err error) (*tiers.Snapshot, *RefusedError) {
		return nil, &RefusedError{r.Head(), reason, err}
	}
	holds := f.served.head()
	switch {
	case holds.Number > 0 && r.Number < holds.Number:
		return refuse(ReasonOlder, fmt.Errorf("it is older than revision %d, which holds: publish it again under a larger number", holds.Number))
	case holds.Number > 0 && r.Number == holds.Number && r.Hash != holds.Hash:
		return refuse(ReasonConflict, fmt.Errorf("revision %d holds with other content: publish this one again under a larger number", holds.Number))
	}
	if known := f.status.Refused; known.is(r.Head()) && known.lasts() && !f.anew {
		return refuse(known.Cause, errors.New(known.Error))
	}
	if len(f.cfg.Keys) > 0 {
		if err := r.Verify(f.cfg.Keys); err != nil {
			return nil, asRefused(r, ReasonSignature, err)
		}
	}
	var snapshot *tiers.Snapshot
	err := guard.Call("the policy compiler", func() (err error) {
		snapshot, err = r.LoadWith(tiers.ParseConfig{MaxDocument: f.cfg.MaxDocument})
		return err
	})
	if mistakes := (*tiers.PolicyError)(nil); errors.As(err, &mistakes) {
		mistakes.File = f.name()
	}
	if err != nil {
		return nil, asRefused(r, ReasonDocument, err)
	}
	if err := f.passes(snapshot); err != nil {
		return refuse(ReasonCheck, err)
	}
	return snapshot, nil
}

// asRefused returns the error as what it is, or else under the reason.
func asRefused(r *Revision, reason Reason, err error) *RefusedError {
	if refused := (*RefusedError)(nil); errors.As(err, &refused) {
		return refused
	}
	return &RefusedError{r.Head(), reason, err}
}

// name is what errors call the feed.
func (f *Follower) name() string {
	if named, ok := f.feed.(fmt.Stringer); ok {
		return named.String()
	}
	return ""
}

// serve makes a policy the one that holds. before is what takes its place if a check at the start refuses it.
func (f *Follower) serve(next candidate, before []candidate) {
	if f.current.Load() == nil && next.origin == originFeed && f.served.snapshot != nil {
		before = append([]candidate{f.served}, f.before...)
	}
	f.served, f.before, f.confirmed = next, before, next.origin == originFeed
	f.current.Store(next.snapshot)
	f.status.Number, f.status.Hash, f.status.Changed = next.head().Number, next.head().Hash, time.Now()
	f.told.applied(&next, f.status.Changed, false)
	if next.revision != nil {
		pace.Sign(f.saveDue)
	}
}

// inStep notes that the feed has what holds.
func (f *Follower) inStep() {
	f.confirmed = true
	if f.status.Refused != nil {
		f.status.Refused = nil
		f.told.applied(&f.served, time.Now(), true)
	}
}

// refuse notes and tells that a revision is refused, once.
func (f *Follower) refuse(err error) {
	refused := (*RefusedError)(nil)
	if !errors.As(err, &refused) {
		return
	}
	if known := f.status.Refused; known.is(refused.Revision) && known.Cause == refused.Reason {
		return
	}
	f.status.Refused = &Refused{
		Number: refused.Revision.Number, Hash: refused.Revision.Hash, Cause: refused.Reason,
		Error: errorText(refused.Err, maxReportText), At: time.Now(),
	}
	f.told.refused(refused, f.status.Number, f.status.Refused.At)
}

// tellState tells that the state has changed.
func (f *Follower) tellState(ctx context.Context) {
	f.change(ctx, func() {
		now, s := time.Now(), f.statusOf(f.status)
		if s.State == f.state {
			return
		}
		f.told.state(f.state.String(), &s, now)
		f.state = s.State
	})
}
