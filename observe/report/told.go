package report

import (
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

// told is what a reporter was told of policies and mode switches. It is safe for concurrent use.
type told struct {
	mu sync.Mutex
	// policies are those that were applied, the newest last.
	policies []Policy
	modes    *event.ModeSwitched
	// changed says that something came since now was called last.
	changed bool
}

// apply remembers who has published a policy.
func (t *told) apply(e *event.PolicyApplied) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.policies = append(t.policies, Policy{
		Revision: e.Revision, Hash: e.Hash, Author: pseudonym.Written(e.Author), Reason: reason(e.Reason), Published: e.Published,
		Applied: e.At, Origin: e.Origin,
	})
	t.changed = true
	if len(t.policies) > policiesKnown {
		t.policies = append(t.policies[:0], t.policies[1:]...)
	}
}

// switchModes remembers the mode switches that are applied.
func (t *told) switchModes(e *event.ModeSwitched) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.modes, t.changed = e, true
}

// news reports whether something came since now was called last.
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

// now returns the newest policy and the mode switches that are in force at a time, nil where there are none.
func (t *told) now(now time.Time) (*Policy, *Modes) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changed = false
	var policy *Policy
	if n := len(t.policies); n > 0 {
		newest := t.policies[n-1]
		policy = &newest
	}
	if t.modes == nil {
		return policy, nil
	}
	modes := &Modes{State: t.modes.State}
	for _, one := range t.modes.InForce[:min(len(t.modes.InForce), maxModes)] {
		if now.Before(one.Until) {
			one.Tenant, one.Operation = pseudonym.Written(one.Tenant), pseudonym.Written(one.Operation)
			one.By, one.Reason = pseudonym.Written(one.By), pseudonym.Written(one.Reason)
			modes.InForce = append(modes.InForce, one)
		}
	}
	return policy, modes
}
