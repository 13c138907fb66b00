package bucket

import "github.com/gqlgen-ratelimit/ratelimit/internal/state"

// fastLimits is how many limits a take of the fast kind has at most, so that their debts fit a small
// array.
const fastLimits = 16

// isFast reports whether the take may be a fast one, which has no account of what it does.
func (t *Take) isFast() bool {
	return t.Claim == nil && t.Candidate == nil && !t.ObserveAdmitted && len(t.Buckets) <= fastLimits && countLimits(t.Buckets) <= fastLimits
}

// takeFast does the fast take: of a tenant without override records, from owners who were charged by the same policy
// before or owe nothing, and have the amount. It does what fast.lua does, on the stored states themselves.
// It reports whether it did; if not, it changed nothing but the room for the answer.
func (m *Memory) takeFast(take *Take, result *Result) bool {
	if !take.isFast() {
		return false
	}
	s, tenant, now := m.lock(take.Tenant)
	defer s.mu.Unlock()
	if s.overridesOf(tenant) != nil {
		return false
	}
	var entries [fastLimits]*entry
	var debts [fastLimits]int64
	var charges [fastLimits]uint64
	states := take.scratch(countLimits(take.Buckets))
	k, charged := 0, uint64(0)
	for i := range take.Buckets {
		b := &take.Buckets[i]
		key := s.bucketKey(tenant, &b.Owner)
		e := s.find(&key, now)
		n := k + len(b.Limits.rules)
		if !b.Limits.compiled.ReadTokens(e.state(), debts[k:n], now) {
			return false
		}
		changed, ok := b.tryFast(debts[k:n], states[k:n], take.Amounts)
		if !ok {
			return false
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
		n := k + len(take.Buckets[i].Limits.rules)
		if charges[i] != 0 {
			s.charge(tenant, &take.Buckets[i], entries[i], debts[k:n], states[k:n], charges[i], now)
		}
		k = n
	}
	result.Verdict, result.Limits, result.now = Admitted, states, now
	result.Receipt.issue(take, now, state.Shortfall{})
	return true
}

// state is what is kept of an owner, nil if the entry is.
func (e *entry) state() []byte {
	if e == nil {
		return nil
	}
	return e.value
}

// tryFast sets the debts and states after a charge, and returns a bit for each limit that there is anything to charge.
// It returns false if a limit does not have the amount, or would have no entry any more.
func (b *Bucket) tryFast(debts []int64, states []LimitState, amounts Amounts) (changed uint64, ok bool) {
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
		if debt == 0 && !b.Limits.compiled.Fast {
			return 0, false
		}
		debts[j] = debt
		// Field by field, because the whole would be made elsewhere and copied.
		shown := &states[j]
		shown.Owner, shown.Limit, shown.Overridden, shown.Asked, shown.Charged = b.Owner, rule.limit, rule.overridden, amount, amount
		shown.Remaining, shown.Overdraft = rule.Remaining(debt), rule.Overdraft(debt)
		shown.ResetAfter, shown.WindowEnd = milliseconds(rule.Wait(debt)), 0
		shown.Exceeded, shown.Never, shown.RetryAfter = false, false, 0
	}
	return changed, true
}

// charge keeps the debts of an owner, which the states show.
func (s *shard) charge(tenant tenantKey, b *Bucket, e *entry, debts []int64, states []LimitState, changed uint64, now int64) {
	// One that was found may have made room since for another of this call.
	if e == nil || e.weight == 0 {
		key := s.bucketKey(tenant, &b.Owner)
		fresh := s.obtain(&key, now)
		fresh.value = e.state()
		e = fresh
	}
	e.value = b.Limits.compiled.WriteTokens(e.value, debts, changed, now)
	longest := int64(0)
	for j := range debts {
		longest = max(longest, states[j].ResetAfter.Milliseconds())
	}
	e.expires = now + longest
}
