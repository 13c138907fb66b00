package bucket

import (
	"context"

	"github.com/gqlgen-ratelimit/ratelimit/internal/lease"
	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// exchange brings what is given back to the store and fetches more. The caller has begun the flight; the lock is not held.
func (t *leasedTenant) exchange(ctx context.Context, cause leaseCause, leaving bool) {
	t.mu.Lock()
	message, ok := t.holder.Pending()
	if ok && message.Number > 1 && !t.holder.Alive(t.store.now()) {
		// What nobody has answered until the end of the lease is not waited for.
		t.store.stats.lost.Add(1)
		t.holder.Lose(t.store.now())
		ok = false
	}
	if ok {
		cause = causeRepeat
	} else {
		message, ok = t.holder.Begin(t.store.now(), leaving)
	}
	sent := t.store.now()
	policy := []Bucket{t.policy}
	under := []Bucket{{Owner: t.policy.Owner, Limits: t.limits}}
	e := Exchange{
		tenant: t.name, buckets: policy, under: under, message: message, clock: sent / lease.Millisecond,
		places: []int{t.place},
	}
	t.sent = sent
	t.tries++
	t.mu.Unlock()
	if !ok {
		t.done()
		return
	}
	t.store.stats.exchanges[cause].Add(1)
	answer, err := t.store.Exchange(ctx, e)
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.ends()
	if err != nil {
		t.store.stats.failed.Add(1)
		return
	}
	t.tries = 0
	t.receive(&e, sent, &answer)
}

// done ends a flight that nothing came of.
func (t *leasedTenant) done() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ends()
}

// receive takes in what the store has answered.
func (t *leasedTenant) receive(e *Exchange, sent int64, x *Exchanged) {
	now := t.store.now()
	t.offset = x.now - now/lease.Millisecond
	t.records, t.until = x.records, forever
	governed := x.governed.buckets[0].Limits
	if x.governed.until < maxDate {
		// By the clock of this process, which may run slower: it ends a thousandth sooner.
		t.until = sent + max(0, x.governed.until-x.now)*(lease.Millisecond-1)
	}
	switch {
	case x.governed.blocked != nil:
		// The store says so to whoever asks: nothing is leased of who is blocked.
		t.bar()
		return
	case len(x.answers) == 0:
		// The records have made other limits of it.
		t.be(governed)
		return
	case governed != t.limits && !t.under(t.policy.Limits, governed):
		t.bar()
		return
	}
	a := &x.answers[0]
	switch a.Status {
	case state.Exchanged:
		t.place = a.Place
	case state.OtherHoldings, state.NoHolding:
		// Under another policy, or too many: the store decides until the others have gone.
		t.bar()
		return
	default:
		t.store.stats.lost.Add(1)
	}
	if t.holder.Receive(now, sent, &e.message, a, x.now) {
		t.judgeRefusals(a, now)
	}
}

// judgeRefusals counts what was refused here while the store had it: what has come back since it was refused is not counted.
func (t *leasedTenant) judgeRefusals(a *state.ExchangeAnswer, now int64) {
	for i := range t.refused {
		r := &t.refused[i]
		unit, _, rate := t.limits.rules[i].Leasing()
		has := a.Given[i].Left + a.Given[i].Level - state.Product(rate, (now-r.at)/lease.Millisecond+1)
		if r.amount > 0 && has/unit >= r.amount {
			t.store.stats.falseRefusals.Add(1)
		}
		*r = refusedAmount{}
	}
}
