package bucket

import (
	"context"
	"errors"
	"slices"

	"github.com/gqlgen-ratelimit/ratelimit/internal/lease"
	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// Take implements [Store].
func (s *Sharded) Take(ctx context.Context, take Take) (Result, error) {
	if take.Lease != LeaseAlways || !s.allowed.Load() || s.ended.Load() {
		return s.home.Take(ctx, take)
	}
	if err := take.Check(); err != nil {
		return Result{}, err
	}
	d := shardedTake{at: shardable(&take)}
	var t *shardedTenant
	if d.at >= 0 {
		t = s.tenant(take.Tenant)
	}
	if t == nil {
		return s.home.Take(ctx, take)
	}
	b := &take.Buckets[d.at]
	d.amounts = make([]int64, b.Limits.Len())
	for i := range d.amounts {
		r := &b.Limits.rules[i]
		d.amounts[i] = b.asked(take.Amounts, r.limit.Unit)
		d.large, d.never = d.large || d.amounts[i] > r.Capacity, d.never || d.amounts[i] > r.Capacity && !r.Lenient
	}
	if d.large && (!d.never || !d.alone(&take)) {
		return t.takeHome(ctx, &take, nil)
	}
	return t.take(ctx, &take, &d)
}

// shardedTake is one take of a tenant that is shared.
type shardedTake struct {
	// at is the bucket of the tenant among those of the take, and amounts what is asked of its limits.
	at      int
	amounts []int64
	// large says that an amount is more than a whole limit, and never that such a limit refuses it.
	large, never bool
	answer       ShardAnswer
}

// shardable returns which bucket of a take a shard can hold parts of, or -1.
func shardable(take *Take) int {
	at := slices.IndexFunc(take.Buckets, func(b Bucket) bool { return b.Owner.Level == Tenant })
	if at < 0 || take.Buckets[at].Limits.Len() == 0 || len(take.Buckets) > MaxLimits {
		return -1
	}
	b := &take.Buckets[at]
	for i := range b.Limits.rules {
		if r := &b.Limits.rules[i]; !r.Shardable() {
			return -1
		}
	}
	return at
}

// take asks the shard, exchanges if it is told to, and has home decide what the shard cannot.
func (t *shardedTenant) take(ctx context.Context, take *Take, d *shardedTake) (Result, error) {
	if err := t.ask(ctx, take, d); err != nil {
		return t.away(ctx, take, err)
	}
	if d.answer.Due {
		if d.answer.Status == state.ShardDone {
			t.mu.Lock()
			t.due = true
			t.mu.Unlock()
			t.store.queue(t)
		} else if t.fetch(ctx) {
			if err := t.ask(ctx, take, d); err != nil {
				return t.away(ctx, take, err)
			}
		}
	}
	switch {
	case d.answer.Status == state.ShardDone && d.never:
		return t.never(take, d), nil
	case d.answer.Status == state.ShardDone && d.alone(take):
		return t.admitted(ctx, take, d), nil
	case d.answer.Status == state.ShardDone:
		return t.takeRest(ctx, take, d)
	case d.answer.Status == state.ShardShort && take.Claim == nil && t.isBarren(take.Buckets[d.at].Limits, d):
		// Who has a key asks home, which has what that was used for, and answers it whatever is left.
		return t.refused(take, d), nil
	default:
		return t.takeHome(ctx, take, d)
	}
}

// away is what becomes of a take that the shard has not answered: home decides. The shard may have charged it as well, which is too much and never too little.
func (t *shardedTenant) away(ctx context.Context, take *Take, err error) (Result, error) {
	if !isAway(err) && !errors.Is(err, ErrAmbiguous) {
		return Result{}, err
	}
	return t.takeHome(ctx, take, nil)
}

// ask takes from the shard, nothing if no limit can hold it: who holds something knows the rules.
func (t *shardedTenant) ask(ctx context.Context, take *Take, d *shardedTake) error {
	limits, amounts := take.Buckets[d.at].Limits, d.amounts
	if d.never {
		amounts = nil
	}
	t.mu.Lock()
	now := t.store.now()
	t.limits, t.used = limits, now
	says := t.says(now)
	t.mu.Unlock()
	var err error
	d.answer, err = t.store.shard.Shard(ctx, ShardCall{
		tenant: t.name, kind: state.ShardTake, says: says, limits: limitsOfShard(limits, amounts), n: limits.Len(),
	})
	if err == nil && (d.answer.Status == state.ShardDone || d.answer.Status == state.ShardShort) {
		t.learn(d.answer.Holder, d.answer.Number, d.answer.now)
	}
	return err
}

// alone reports whether nothing but the shard decides about the take.
func (d *shardedTake) alone(take *Take) bool {
	whole := debit{at: d.at, buckets: take.Buckets}
	return whole.alone(take)
}

// isBarren reports whether home has too little as well, by what it said last.
func (t *shardedTenant) isBarren(limits *Limits, d *shardedTake) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := len(t.barren.amounts) == len(d.amounts) && t.store.now() < t.barren.until
	for i := range d.answer.Levels {
		if l := &d.answer.Levels[i]; l.Short && !limits.rules[i].Lenient && l.Left < d.amounts[i]*unitOf(limits, i) {
			return true
		}
		known = known && d.amounts[i] >= t.barren.amounts[i]
	}
	return known
}

func unitOf(limits *Limits, i int) int64 {
	unit, _, _ := limits.rules[i].Leasing()
	return unit
}

// admitted is the answer to a take that the shard alone has admitted.
func (t *shardedTenant) admitted(ctx context.Context, take *Take, d *shardedTake) Result {
	t.store.stats.admitted.Add(1)
	result := Result{Verdict: Admitted, now: d.answer.now, Limits: take.scratch(len(d.amounts))}
	d.show(take, result.Limits, true)
	if take.Usage != nil {
		t.note(ctx, func(u *leasedUsage) { u.admit(take, result.now) })
	}
	if take.Usage != nil || result.charged() {
		result.Receipt.issue(take, result.now, shortOf(result.Limits))
		result.Receipt.leased = d.charge(take.Usage != nil)
	}
	return result
}

// charge is what a receipt knows of it.
func (d *shardedTake) charge(counted bool) leasedCharge {
	return leasedCharge{place: uint8(d.at + 1), counted: counted, shard: d.answer.Holder, number: d.answer.Number, at: d.answer.now}
}

// refused is the answer to a take that the shard has refused, and home would.
func (t *shardedTenant) refused(take *Take, d *shardedTake) Result {
	t.store.stats.refused.Add(1)
	result := Result{Verdict: Limited, now: d.answer.now, Limits: take.scratch(len(d.amounts))}
	d.show(take, result.Limits, false)
	for i := range result.Limits {
		if s := &result.Limits[i]; s.Exceeded && !take.Buckets[d.at].Limits.rules[i].Lenient {
			result.RetryAfter = max(result.RetryAfter, s.RetryAfter)
		}
	}
	return result
}

// show sets the states of the limits of the tenant.
func (d *shardedTake) show(take *Take, states []LimitState, charged bool) {
	b := &take.Buckets[d.at]
	for i := range states {
		r, l, unit := &b.Limits.rules[i], &d.answer.Levels[i], unitOf(b.Limits, i)
		s := &states[i]
		*s = LimitState{Owner: b.Owner, Limit: r.limit, Overridden: r.overridden, Asked: d.amounts[i], Approximate: true}
		if charged && !l.Short {
			s.Charged = s.Asked
		} else if l.Short {
			s.exceeds(r, l, unit)
		}
		s.show(r, r.leftover(min(r.Capacity, l.Level/unit+l.Left/unit), 0), d.answer.now)
	}
}

// exceeds says of a limit that a shard does not have what it was asked for, and when it has.
func (s *LimitState) exceeds(r *rule, l *state.ShardLevel, unit int64) {
	s.Exceeded = true
	if s.Never = s.Asked > r.Capacity; s.Never {
		return
	}
	wait, missing := int64(lease.Beat/lease.Millisecond), s.Asked*unit-l.Level
	if l.Rate > 0 && s.Asked*unit <= l.Capacity {
		wait = missing/l.Rate + 1
	}
	s.RetryAfter = milliseconds(max(1, wait))
}

// never is the answer to a take of more than a whole limit, by the rules of the last exchange. It is no demand: nobody can have it, and home is not asked.
func (t *shardedTenant) never(take *Take, d *shardedTake) Result {
	t.store.stats.refused.Add(1)
	result := Result{Verdict: Never, now: d.answer.now, Limits: take.scratch(len(d.amounts))}
	limits := take.Buckets[d.at].Limits
	for i := range d.answer.Levels {
		l := &d.answer.Levels[i]
		l.Short = d.amounts[i] > limits.rules[i].Capacity || d.amounts[i]*unitOf(limits, i) > l.Level+l.Left
	}
	d.show(take, result.Limits, false)
	return result
}

// takeHome has home decide. What it refuses others may have, so that its verdict is not remembered.
func (t *shardedTenant) takeHome(ctx context.Context, take *Take, d *shardedTake) (Result, error) {
	t.store.stats.central.Add(1)
	asked := *take
	asked.Observe, asked.ObserveAdmitted = false, false
	result, err := t.store.home.Take(ctx, asked)
	if err != nil {
		return result, err
	}
	for i := range result.Limits {
		if s := &result.Limits[i]; s.Owner.Level == Tenant {
			s.Approximate = true
		}
	}
	if d != nil && result.Verdict == Limited {
		t.mu.Lock()
		t.barren = barren{amounts: d.amounts, until: t.store.now() + min(result.RetryAfter.Microseconds(), lease.Beat)}
		t.mu.Unlock()
	}
	return result, nil
}

// takeRest asks home for what the shard does not hold, and puts back what was taken of it if home refuses.
func (t *shardedTenant) takeRest(ctx context.Context, take *Take, d *shardedTake) (Result, error) {
	t.store.stats.mixed.Add(1)
	rest := *take
	rest.Buckets = slices.Delete(slices.Clone(take.Buckets), d.at, d.at+1)
	rest.States, rest.Observe, rest.ObserveAdmitted = nil, false, false
	result, err := t.store.home.Take(ctx, rest)
	charged := err == nil && result.Verdict == Admitted && !result.Repeat
	own := make([]LimitState, len(d.amounts))
	d.show(take, own, true)
	if !charged && !errors.Is(err, ErrAmbiguous) {
		amounts := make([]int64, len(own))
		for i := range own {
			amounts[i] = own[i].Charged
		}
		var receipt Receipt
		receipt.name(d.answer.now)
		// What does not come back is lost, which is little: nobody is charged too little for it.
		_, _ = t.putBack(ctx, &receipt, take.Buckets[d.at].Limits, d.charge(false), amounts)
	}
	if err != nil {
		return Result{}, err
	}
	result.Judgment = nil
	if result.Verdict == Blocked {
		return result, nil
	}
	if !charged {
		d.show(take, own, false)
	}
	result.weave(take, own)
	if charged && (take.Usage != nil || result.charged()) {
		result.Receipt.weave(take, &debit{at: d.at, buckets: take.Buckets}, result.Limits, result.now)
		result.Receipt.leased = d.charge(false)
	}
	return result, nil
}

// putBack puts back amounts that a receipt was charged, once. It returns false if that was done before.
func (t *shardedTenant) putBack(ctx context.Context, receipt *Receipt, limits *Limits, charge leasedCharge, amounts []int64) (bool, error) {
	t.mu.Lock()
	says := t.says(t.store.now())
	t.mu.Unlock()
	if says.Holder != charge.shard {
		says.Least = 0
	}
	says.Holder, says.Number, says.Clock = charge.shard, charge.number, charge.at
	a, err := t.store.shard.Shard(ctx, ShardCall{
		tenant: t.name, kind: state.ShardBack, says: says, limits: limitsOfShard(limits, amounts), n: limits.Len(), marker: settledAddress(receipt),
	})
	return a.first, err
}
