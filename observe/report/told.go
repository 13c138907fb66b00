package report

import (
	"cmp"
	"sync"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/pseudonym"
)

const (
	// maxModes is how many mode switches an activity has.
	maxModes = 16
	// policiesKnown is of how many policies the authors are remembered.
	policiesKnown = 8
)

// told is what a reporter was told of the policy, its feed and mode switches. It is safe for concurrent use.
type told struct {
	mu sync.Mutex
	// policies are those that were applied, the newest last.
	policies []Policy
	feed     Feed
	modes    *event.ModeSwitched
	// changed says that something came since add was called last.
	changed bool
}

// hear remembers what an event says of the policy, its feed or mode switches. Other events say nothing of these.
func (t *told) hear(e event.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch e := e.(type) {
	case event.PolicyApplied:
		t.apply(&e)
	case event.PolicyRefused:
		t.feed.Refused = &Refused{Revision: e.Revision, Hash: e.Hash, Cause: e.Cause, Error: written(e.Error), At: e.At}
	case event.PolicyState:
		t.feed.State, t.feed.Failure, t.feed.Unsaved, t.feed.Asked = e.To, written(e.Error), written(e.Unsaved), time.Time{}
		if e.To == stale {
			t.feed.Asked = e.At.Add(-e.Age)
		}
	case event.ModeSwitched:
		t.modes = &e
	default:
		return
	}
	t.changed = true
}

// stale is the state of an instance that has lost touch with its feed.
const stale = "stale"

// apply remembers the policy that holds. A feed that has given it, or has it again, has nothing else that is refused.
func (t *told) apply(e *event.PolicyApplied) {
	if e.Again || e.Origin == "feed" {
		t.feed.Refused = nil
	}
	if e.Again {
		return
	}
	t.policies = append(t.policies, Policy{
		Revision: e.Revision, Hash: e.Hash, Author: pseudonym.Written(e.Author), Reason: written(e.Reason), Published: e.Published,
		Applied: e.At, Origin: e.Origin,
	})
	if len(t.policies) > policiesKnown {
		t.policies = append(t.policies[:0], t.policies[1:]...)
	}
}

// news reports whether something came since add was called last.
func (t *told) news() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.changed
}

// policy returns the newest policy of a number. It has nothing but the number if none was applied.
func (t *told) policy(revision uint64) Policy {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := len(t.policies) - 1; i >= 0; i-- {
		if t.policies[i].Revision == revision {
			return t.policies[i]
		}
	}
	return Policy{Revision: revision}
}

// add adds the newest policy, what is known of its feed, and the mode switches that are in force to an activity.
func (t *told) add(a *Activity) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changed = false
	if n := len(t.policies); n > 0 {
		policy, feed := t.policies[n-1], t.feed
		// A follower that has its feed from the start on has no other state to tell.
		feed.State = cmp.Or(feed.State, event.PolicyCurrent)
		a.Policy, a.Feed = &policy, &feed
	}
	if t.modes == nil {
		return
	}
	a.Modes = &Modes{State: t.modes.State}
	for _, one := range t.modes.InForce[:min(len(t.modes.InForce), maxModes)] {
		if a.To.Before(one.Until) {
			one.Tenant, one.Operation = pseudonym.Written(one.Tenant), pseudonym.Written(one.Operation)
			one.By, one.Reason = pseudonym.Written(one.By), pseudonym.Written(one.Reason)
			a.Modes.InForce = append(a.Modes.InForce, one)
		}
	}
}
