package bucket

import "github.com/gqlgen-ratelimit/ratelimit/internal/state"

// tooLarge finds out who decides about a take of more than a whole limit. Where a limit refuses that, and nothing else has a say, the store would answer [Never] whatever is left, by the
// rules of the last exchange: so who holds something answers it. A client that asks for nothing else costs the store a few exchanges and not a call each.
func (t *leasedTenant) tooLarge(take *Take, d *debit) debited {
	b, never := &d.buckets[d.at], false
	for i := range t.limits.rules {
		r := &t.limits.rules[i]
		t.amounts[i] = b.asked(take.Amounts, r.limit.Unit)
		never = never || t.amounts[i] > r.Capacity && !r.Lenient
	}
	if !never || !d.alone(take) {
		return elsewhere
	}
	t.takes++
	if !t.holder.Alive(d.now) {
		// Nobody knows the rules of now. An exchange tells them.
		return missing
	}
	return neverHere
}

// never sets the answer to a take of more than a whole limit. It is no demand: nobody can have it.
func (t *leasedTenant) never(take *Take, d *debit, result *Result) {
	t.store.stats.refused.Add(1)
	result.Verdict, result.now = Never, t.storeTime(d.now)
	result.changedBy(d.made, t.records)
	d.short = 0
	for i := range t.limits.rules {
		if level := t.holder.Level(i, d.now); t.amounts[i] > min(t.limits.rules[i].Capacity, level.Tokens+level.Left) {
			d.short |= 1 << i
		}
	}
	result.Limits = take.scratch(t.limits.Len())
	t.show(result.Limits, d, result.now, false)
}

// exceed says of a limit that it does not have what it was asked for, and when it has.
func (t *leasedTenant) exceed(s *LimitState, limit int, now int64) {
	s.Exceeded = true
	if s.Never = s.Asked > t.limits.rules[limit].Capacity; !s.Never {
		s.RetryAfter = milliseconds(max(1, t.holder.Wait(limit, now, s.Asked)))
	}
}

// leftover is what is spent of a limit of which so many tokens are left.
func (r *rule) leftover(tokens, window int64) state.Spent {
	return state.Spent{Debt: (r.Capacity - tokens) * r.Unit(), End: window}
}
