package bucket

import (
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// fastLimits is how many limits a take of the fast kind has at most, so that their debts fit a small
// array.
const fastLimits = 16

// takeFast does the fast take: of token buckets that have the amount, from owners who are known and
// were charged by the same policy before. It does what load, judge, charge and fill do, limit by limit.
// It reports whether it did; if not, it changed nothing but the room for the answer.
func (s *shard) takeFast(take *Take, tenant tenantKey, now int64, result *Result) bool {
	var entries [fastLimits]*entry
	var debts [fastLimits]int64
	limits := countLimits(take.Buckets)
	if limits > fastLimits || len(take.Buckets) > fastLimits {
		return false
	}
	states := take.scratch(limits)
	k, charged := 0, false
	for i := range take.Buckets {
		b := &take.Buckets[i]
		e := s.bucket(tenant, &b.Owner)
		if e == nil || e.expires <= now || !e.ledger.IsFast(b.Limits.compiled, now) {
			return false
		}
		n := k + len(b.Limits.rules)
		amount, ok := b.tryFast(&e.ledger, debts[k:n], states[k:n], take.Amounts, now)
		if !ok {
			return false
		}
		if amount {
			entries[i], charged = e, true
		}
		k = n
	}
	if !charged {
		return false
	}
	k = 0
	for i := range take.Buckets {
		n := len(take.Buckets[i].Limits.rules)
		if e := entries[i]; e != nil {
			e.charge(debts[k:k+n], states[k:k+n], now)
		}
		k += n
	}
	result.Verdict, result.Limits, result.now = Admitted, states, now
	result.Receipt.issue(take, now, state.Shortfall{})
	return true
}

// tryFast sets the debts and states after a charge, and reports whether there was anything to charge.
// It returns false if a limit does not have the amount.
func (b *Bucket) tryFast(l *state.Owner, debts []int64, states []LimitState, amounts Amounts, now int64) (charged, ok bool) {
	for j := range b.Limits.rules {
		rule, e := &b.Limits.rules[j], &l.Entries[j]
		debt, amount := rule.Decay(e.Debt, now-e.Date), amounts.Of(rule.limit.Unit)
		if amount > 0 {
			if amount > rule.Capacity || rule.Over(debt, amount) > 0 {
				return false, false
			}
			debt += amount * rule.P
			charged = true
		}
		debts[j] = debt
		// Field by field, because the whole would be made elsewhere and copied.
		shown := &states[j]
		shown.Owner, shown.Limit, shown.Overridden, shown.Charged = b.Owner, rule.limit, rule.overridden, amount
		shown.Remaining, shown.Overdraft = rule.Remaining(debt), rule.Overdraft(debt)
		shown.ResetAfter, shown.WindowEnd = milliseconds(rule.Wait(debt)), 0
		shown.Exceeded, shown.Never, shown.RetryAfter = false, false, 0
	}
	return charged, true
}

// charge sets the debts, which the states show.
func (e *entry) charge(debts []int64, states []LimitState, now int64) {
	longest := time.Duration(0)
	for j := range debts {
		e.ledger.Entries[j].Debt, e.ledger.Entries[j].Date = debts[j], now
		longest = max(longest, states[j].ResetAfter)
	}
	e.expires = now + int64(longest/time.Millisecond)
}
