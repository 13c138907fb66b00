package bucket

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/lease"
	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// debited is what became of a take of what is leased.
type debited uint8

const (
	// elsewhere says that the store decides.
	elsewhere debited = iota
	// debitedHere says that the amounts are taken.
	debitedHere
	// missing says that too little is held, or nothing any more.
	missing
	// blockedHere says that an override record blocks the take.
	blockedHere
	// neverHere says that the amounts are more than a whole limit.
	neverHere
)

// debit is one take of what is leased.
type debit struct {
	// at is the bucket of the tenant among those of the take, and buckets are these as override records make them.
	at      int
	buckets []Bucket
	// made is nil of a tenant without records.
	made *governing
	// short has a bit for each limit that was charged nothing.
	short uint64
	mark  lease.Mark
	now   int64
	// takes knows which takes of the lease were settled, and number is that of this one.
	takes  *settledTakes
	number int64
	// held says that the amounts may be declined by whoever asked.
	held bool
}

// take decides a take of the tenant, and sets the answer.
func (t *leasedTenant) take(ctx context.Context, take *Take, d *debit, result *Result) (err error) {
	switch was, alone := t.decide(ctx, take, d, result); {
	case was == debitedHere && !alone:
		*result, err = t.takeRest(ctx, take, d)
	case was == elsewhere:
		*result, err = t.takeElsewhere(ctx, take)
	}
	return err
}

// decide decides by what is leased, and sets the answer, unless the store decides, or something else than what is leased: alone says that nothing does.
func (t *leasedTenant) decide(ctx context.Context, take *Take, d *debit, result *Result) (was debited, alone bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	was = t.debit(take, d)
	if was == missing {
		t.store.stats.misses.Add(1)
		if t.wait(ctx) {
			was = t.debit(take, d)
		}
	}
	if was == missing {
		was = t.lacking(take, d)
	}
	if was == missing && take.Claim != nil {
		// The store has what the key was used for, and answers that whatever is left.
		was = elsewhere
	}
	switch was {
	case debitedHere:
		alone = d.alone(take)
		t.number++
		d.takes, d.number = t.settled, t.number
		if d.held = take.Declinable; d.held || !alone {
			t.holder.Hold(t.charged(take, d))
		}
		if alone {
			t.admitted(take, d, result)
		}
	case missing:
		t.refusal(take, d, result)
	case blockedHere:
		*result = Result{Verdict: Blocked, blockedBy: d.made.blocked, records: t.records, now: t.storeTime(d.now)}
	case neverHere:
		t.never(take, d, result)
	case elsewhere:
	}
	return was, alone
}

// debit takes the amounts, if it holds them.
func (t *leasedTenant) debit(take *Take, d *debit) debited {
	d.now = t.store.now()
	if take.Lease == LeaseOff {
		// The policy has changed.
		t.ended = true
	}
	if t.ended {
		return elsewhere
	}
	if d.now >= t.until {
		return missing
	}
	policy := take.Buckets[d.at].Limits
	d.buckets = take.Buckets
	if t.records != nil {
		made := t.records.govern(d.buckets, len(d.buckets), take.Owners, t.storeTime(d.now))
		d.made = &made
		if d.made.blocked != nil {
			return blockedHere
		}
		d.buckets = d.made.buckets
	}
	b := &d.buckets[d.at]
	if b.Limits != t.limits && !t.under(policy, b.Limits) {
		t.ended = true
		return elsewhere
	}
	for i := range t.limits.rules {
		r := &t.limits.rules[i]
		n := b.asked(take.Amounts, r.limit.Unit)
		if n > r.Capacity {
			return t.tooLarge(take, d)
		}
		t.amounts[i] = n
	}
	t.takes++
	short, ok := t.holder.Take(d.now, t.amounts, t.store.now)
	d.short, d.mark = short, t.holder.Mark()
	if !ok {
		return missing
	}
	return debitedHere
}

// wait brings or awaits an exchange, and reports whether there was one. The lock is held before and after, and not between.
func (t *leasedTenant) wait(ctx context.Context) bool {
	flight, mine := t.begun()
	if flight == nil {
		return false
	}
	t.mu.Unlock()
	defer t.mu.Lock()
	if mine {
		t.exchange(ctx, causeMiss, false)
		return true
	}
	timer := time.NewTimer(t.store.cfg.Patience)
	defer timer.Stop()
	select {
	case <-flight:
	case <-timer.C:
	case <-ctx.Done():
	}
	return true
}

// lacking finds out who decides about a take that what is held does not suffice for: the store, if it had enough when it was asked last, or if nothing is
// held at all. What no holder can have is kept by the store for those who ask it.
func (t *leasedTenant) lacking(take *Take, d *debit) debited {
	now := t.store.now()
	if t.ended || !t.holder.Alive(now) || now >= t.until {
		return elsewhere
	}
	b, large := &d.buckets[d.at], false
	for i := range t.limits.rules {
		r := &t.limits.rules[i]
		if t.amounts[i] = b.asked(take.Amounts, r.limit.Unit); r.Lenient {
			continue
		}
		level := t.holder.Level(i, now)
		if level.Tokens < t.amounts[i] && level.Left >= t.amounts[i] {
			return elsewhere
		}
		large = large || t.amounts[i] > t.holder.Capacity(i, now)
	}
	if large {
		t.holder.Want(t.amounts)
	}
	return missing
}

// alone reports whether nothing but what is leased decides about the take.
func (d *debit) alone(take *Take) bool {
	if take.Claim != nil || take.Candidate != nil {
		return false
	}
	for i := range d.buckets {
		if i != d.at && d.buckets[i].Limits.Len() > 0 {
			return false
		}
	}
	return true
}

// admitted sets the answer to a take that was admitted here.
func (t *leasedTenant) admitted(take *Take, d *debit, result *Result) {
	t.admissions++
	result.Verdict, result.now = Admitted, t.storeTime(d.now)
	result.changedBy(d.made, t.records)
	states := take.scratch(t.limits.Len())
	t.show(states, d, result.now, true)
	result.Limits = states
	if take.Usage != nil {
		t.usage.admit(take, result.now)
	}
	if take.Usage != nil || result.charged() {
		// The take is the caller's own copy.
		take.Buckets = d.buckets
		result.Receipt.issue(take, result.now, d.shortfall(result.Limits))
		result.Receipt.leasedBy(d, take.Usage != nil)
	}
}

// changedBy notes what override records have changed, if there are any.
func (r *Result) changedBy(made *governing, records *overrideSet) {
	r.records = records
	if made != nil {
		r.unused = made.unused
	}
}

// refusal sets the answer to a take that was refused here.
func (t *leasedTenant) refusal(take *Take, d *debit, result *Result) {
	t.store.stats.refused.Add(1)
	d.now = t.store.now()
	result.Verdict, result.now = Limited, t.storeTime(d.now)
	result.changedBy(d.made, t.records)
	states := take.scratch(t.limits.Len())
	t.show(states, d, result.now, false)
	for i := range states {
		if states[i].Exceeded && !t.limits.rules[i].Lenient {
			if r := &t.refused[i]; r.amount == 0 || states[i].Asked < r.amount {
				*r = refusedAmount{states[i].Asked, d.now}
			}
			result.RetryAfter = max(result.RetryAfter, states[i].RetryAfter)
		}
	}
	result.Limits = states
}

// show sets the states of the limits, at a time of the store.
func (t *leasedTenant) show(states []LimitState, d *debit, now int64, charged bool) {
	b := &d.buckets[d.at]
	for i := range t.limits.rules {
		r := &t.limits.rules[i]
		level := t.holder.Level(i, d.now)
		s := &states[i]
		*s = LimitState{}
		s.Owner, s.Limit, s.Overridden, s.Asked = b.Owner, r.limit, r.overridden, t.amounts[i]
		switch short := d.short>>i&1 == 1; {
		case charged && !short:
			s.Charged = s.Asked
		case short:
			t.exceed(s, i, d.now)
		}
		s.show(r, r.leftover(min(r.Capacity, level.Tokens+level.Left), level.Window), now)
		s.Approximate = true
		s.Held = max(0, min(level.Tokens, s.Remaining))
	}
}

// shortfall is what of the limits was charged less than was asked for.
func (d *debit) shortfall(states []LimitState) (short state.Shortfall) {
	if d.short == 0 {
		return short
	}
	for k := range states {
		if states[k].Charged < states[k].Asked {
			short.Add(k, states[k].Charged)
		}
	}
	return short
}

// takeElsewhere asks the store for a take of a tenant of which something is leased: what it refuses others may have, so that its verdict is not
// remembered.
func (t *leasedTenant) takeElsewhere(ctx context.Context, take *Take) (Result, error) {
	t.store.stats.central.Add(1)
	result, err := t.store.LeaseStore.Take(ctx, *take)
	result.HoldsFor = 0
	if err != nil {
		return result, err
	}
	t.learn(&result)
	return result, nil
}

// learn takes in what the store has said of the limits, and adds what is held here to what is left there.
func (t *leasedTenant) learn(result *Result) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.store.now()
	for i, k := 0, 0; i < len(result.Limits) && k < t.limits.Len() && !t.ended; i++ {
		s := &result.Limits[i]
		if s.Owner != t.policy.Owner {
			continue
		}
		if s.Limit.Name == t.limits.rules[k].limit.Name {
			t.holder.Spent(k, s.Remaining)
			held := t.holder.Level(k, now).Tokens
			s.Remaining = min(s.Limit.Capacity, s.Remaining+held)
			s.Held = max(0, min(held, s.Remaining))
		}
		s.Approximate = true
		k++
	}
}

// takeRest asks the store for what is not leased, and gives back what was taken here if it refuses, as if it had never been taken.
func (t *leasedTenant) takeRest(ctx context.Context, take *Take, d *debit) (Result, error) {
	t.store.stats.mixed.Add(1)
	rest := *take
	rest.Buckets = slices.Delete(slices.Clone(take.Buckets), d.at, d.at+1)
	rest.States = nil
	result, err := t.store.LeaseStore.Take(ctx, rest)
	t.mu.Lock()
	defer t.mu.Unlock()
	d.now = t.store.now()
	charged := err == nil && result.Verdict == Admitted && !result.Repeat
	// Others may be the limits by now: what is held of them is of the same units.
	switch {
	case !charged && !errors.Is(err, ErrAmbiguous):
		t.holder.Decline(d.now, d.mark, t.charged(take, d))
	case !charged || !d.held:
		t.holder.Spend(d.now, d.mark, t.charged(take, d))
	}
	if err != nil {
		return Result{}, err
	}
	result.HoldsFor = 0
	own := make([]LimitState, t.limits.Len())
	if result.Verdict == Blocked || len(d.buckets) <= d.at || d.buckets[d.at].Limits != t.limits {
		return result, nil
	}
	for i := range t.limits.rules {
		t.amounts[i] = d.buckets[d.at].asked(take.Amounts, t.limits.rules[i].limit.Unit)
	}
	t.show(own, d, t.storeTime(d.now), charged)
	result.weave(take, own)
	if charged && (take.Usage != nil || result.charged()) {
		result.Receipt.weave(take, d, result.Limits, result.now)
	}
	return result, nil
}

// charged returns what a take has taken of each limit.
func (t *leasedTenant) charged(take *Take, d *debit) []int64 {
	b := &d.buckets[d.at]
	amounts := make([]int64, b.Limits.Len())
	for i := range amounts {
		if d.short>>i&1 == 0 {
			amounts[i] = b.asked(take.Amounts, b.Limits.rules[i].limit.Unit)
		}
	}
	return amounts
}

// weave puts the states of the bucket of the tenant where they belong among those of the rest.
func (r *Result) weave(take *Take, own []LimitState) {
	rest := r.Limits
	states := take.scratch(len(own) + len(rest))[:0]
	for i := range take.Buckets {
		owner := take.Buckets[i].Owner
		if owner.Level == Tenant {
			states = append(states, own...)
			continue
		}
		for len(rest) > 0 && rest[0].Owner == owner {
			states, rest = append(states, rest[0]), rest[1:]
		}
	}
	r.Limits = append(states, rest...)
}
