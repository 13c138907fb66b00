package bucket

import "github.com/gqlgen-ratelimit/ratelimit/internal/state"

// So many limits and owners a take of the fast kind has at most, so that their debts and entries fit small
// arrays.
const (
	fastLimits = 16
	fastOwners = 8
)

// isFast reports whether the take may be a fast one, which has no account of what it does.
func (t *Take) isFast() bool {
	return t.Claim == nil && t.Candidate == nil && len(t.Buckets) <= fastOwners && countLimits(t.Buckets) <= fastLimits
}

// takeFast does the fast take: of a tenant without override records, from few owners who were charged by the same policy
// before or owe nothing, and have the amount or refuse. It does what fast.lua does, on the stored states themselves.
// It reports whether it did; if not, it changed nothing but the room for the answer.
func (s *shard) takeFast(tenant tenantKey, take *Take, result *Result, now int64) bool {
	var entries [fastOwners]entry
	var debts [fastLimits]int64
	var charges [fastOwners]uint16
	states := take.scratch(countLimits(take.Buckets))
	k, charged, removed := 0, uint16(0), s.removed
	for i := range take.Buckets {
		b := &take.Buckets[i]
		key := s.bucketKey(tenant, &b.Owner)
		_, e := s.find(&key, now)
		n := k + len(b.Limits.rules)
		if !b.Limits.compiled.ReadTokens(s.valueOf(e), debts[k:n], now) {
			return false
		}
		changed, ok := b.tryFast(debts[k:n], states[k:n], take.Amounts)
		if !ok {
			return s.refuseFast(tenant, take, result, now)
		}
		entries[i], charges[i] = e, changed
		charged |= changed
		k = n
	}
	if charged == 0 {
		return false
	}
	k = 0
	for i := range take.Buckets {
		b := &take.Buckets[i]
		n := k + len(b.Limits.rules)
		if charges[i] != 0 {
			if s.removed != removed {
				// What has expired, or made room, was somewhere before.
				key := s.bucketKey(tenant, &b.Owner)
				_, entries[i] = s.lookup(&key)
			}
			s.charge(tenant, b, entries[i], debts[k:n], states[k:n], charges[i], now)
		}
		k = n
	}
	if take.Usage != nil {
		s.countTake(tenant, take, now)
	}
	if s.pools[bucketPool].latest != 0 || take.Usage != nil {
		s.makeRoom()
	}
	result.Verdict, result.Limits, result.HoldsFor, result.now = Admitted, states, milliseconds(maxDate-now), now
	result.Receipt.issue(take, now, state.Shortfall{})
	return true
}

// refuseFast answers a take that is refused, from owners of whom all could be read for a fast one. It reports whether that is so.
func (s *shard) refuseFast(tenant tenantKey, take *Take, result *Result, now int64) bool {
	var debts [fastLimits]int64
	var spends spentArray
	k := 0
	for i := range take.Buckets {
		b := &take.Buckets[i]
		key := s.bucketKey(tenant, &b.Owner)
		_, e := s.find(&key, now)
		n := len(b.Limits.rules)
		if !b.Limits.compiled.ReadTokens(s.valueOf(e), debts[:n], now) {
			return false
		}
		for j, debt := range debts[:n] {
			spends[k+j].Debt = debt
		}
		k += n
	}
	verdict := judge(take.Buckets, &spends, take.Amounts, now)
	if verdict == Admitted {
		// A limit that refuses nothing does not have the amount.
		return false
	}
	result.Verdict = verdict
	result.judged(take, &spends, state.Shortfall{}, now)
	return true
}

// tryFast sets the debts and states after a charge, and returns a bit for each limit that there is anything to charge.
// It returns false if a limit does not have the amount.
func (b *Bucket) tryFast(debts []int64, states []LimitState, amounts Amounts) (changed uint16, ok bool) {
	for j := range b.Limits.rules {
		rule, debt := &b.Limits.rules[j], debts[j]
		amount := b.asked(amounts, rule.limit.Unit)
		if amount > 0 {
			if amount > rule.Capacity || rule.Over(debt, amount) > 0 {
				return 0, false
			}
			debt += amount * rule.P
			changed |= 1 << j
		}
		debts[j] = debt
		// Field by field, because the whole would be made elsewhere and copied.
		shown := &states[j]
		shown.Owner, shown.Limit, shown.Overridden, shown.Asked, shown.Charged = b.Owner, rule.limit, rule.overridden, amount, amount
		shown.Remaining, shown.Overdraft = rule.Remaining(debt), rule.Overdraft(debt)
		shown.ResetAfter, shown.WindowEnd = milliseconds(rule.Wait(debt)), 0
		shown.Exceeded, shown.Never, shown.Mixed, shown.Approximate, shown.RetryAfter = false, false, false, false, 0
	}
	return changed, true
}

// charge keeps the debts of an owner, which the states show.
func (s *shard) charge(tenant tenantKey, b *Bucket, e entry, debts []int64, states []LimitState, changed uint16, now int64) {
	longest := int64(0)
	for j := range debts {
		longest = max(longest, states[j].ResetAfter.Milliseconds())
	}
	compiled, stored := b.Limits.compiled, s.valueOf(e)
	if compiled.WriteTokens(stored, debts, uint64(changed), now) {
		e.expireAt(now + longest)
		return
	}
	key := s.bucketKey(tenant, &b.Owner)
	at, _ := s.lookup(&key)
	s.fresh = compiled.AppendTokens(s.fresh[:0], stored, debts, uint64(changed), now)
	s.put(&key, at, own(&key, s.fresh), now+longest)
}
