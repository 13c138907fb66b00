package bucket

import (
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// maxInFlightRetry is the longest wait that is told to a client whose first attempt is running: most
// operations end long before their lease does.
const maxInFlightRetry = time.Second

// judge returns the verdict on a take from buckets that have spent so much.
func judge(buckets []Bucket, spends *spentArray, amounts Amounts, now int64) Verdict {
	judging := state.Judging{Outcome: state.Admitted}
	k := 0
	for i := range buckets {
		rules := buckets[i].Limits.rules
		for j := range rules {
			judging.Limit(k, rules[j].Rule, spends[k], buckets[i].asked(amounts, rules[j].limit.Unit), now)
			k++
		}
	}
	verdict, _ := verdictOf(judging.Outcome)
	return verdict
}

// judged completes the result of a take that was judged.
func (r *Result) judged(take *Take, spends *spentArray, short state.Shortfall, now int64) {
	r.fill(take, spends, now, short, true)
	r.HoldsFor = milliseconds(maxDate - now)
	if r.Verdict == Admitted && (take.Usage != nil || r.charged()) {
		r.Receipt.issue(take, now, short)
	}
}

// keyed completes the result of a take on which the record of the key decides. tail is what the record tells with it.
// It returns false if the outcome is none of a key, or lacks its tail, or if the take has no key.
func (r *Result) keyed(take *Take, outcome state.Outcome, tail string) (ok bool) {
	if take.Claim == nil {
		return false
	}
	r.Verdict, ok = verdictOf(outcome)
	switch outcome {
	case state.Repeat:
		r.Repeat = true
	case state.Again:
		takenAt, sum, packed, held := state.Held(tail)
		short, known := state.ReadShortfall(packed, len(r.Limits))
		if !held || !known && sum == sumOf(take.Buckets) {
			return false
		}
		r.again(take, takenAt, sum, short)
	case state.Replayed:
		r.Answer = []byte(tail)
	case state.InFlight:
		if len(tail) != state.DateSize {
			return false
		}
		r.RetryAfter = max(0, min(milliseconds(state.ReadUint(tail, state.DateSize)-r.now), maxInFlightRetry))
	default:
		// The others have no tail.
	}
	return ok
}

// scratch returns room for the states of so many limits: that of the caller if it is large enough.
func (t *Take) scratch(limits int) []LimitState {
	if cap(t.States) < limits {
		return make([]LimitState, limits)
	}
	return t.States[:limits]
}

// fill sets the state of every limit in the result from what is spent after the decision. Limits that
// are short were over their budget. If the take was judged, what was admitted was charged.
func (r *Result) fill(take *Take, spends *spentArray, now int64, short state.Shortfall, judged bool) {
	r.now = now
	states := take.scratch(countLimits(take.Buckets))
	k := 0
	for i := range take.Buckets {
		b := &take.Buckets[i]
		for j := range b.Limits.rules {
			rule, s := &b.Limits.rules[j], spends[k]
			shown := &states[k]
			amount := b.asked(take.Amounts, rule.limit.Unit)
			*shown = LimitState{Owner: b.Owner, Limit: rule.limit, Overridden: rule.overridden, Asked: amount}
			if judged && r.Verdict == Admitted {
				shown.Charged = short.Of(k, amount)
			}
			k++
			// What an enforced limit admitted it had.
			if judged && amount > 0 && (shown.Charged < amount || rule.Soft) {
				r.exceed(shown, rule, rule.Before(s, shown.Charged, now), amount, now)
			}
			shown.show(rule, s, now)
		}
	}
	r.Limits = states
}

// charged reports whether any limit was charged.
func (r *Result) charged() bool {
	for k := range r.Limits {
		if r.Limits[k].Charged > 0 {
			return true
		}
	}
	return false
}

// exceed says in the state, and in the result if the limit refuses, what a limit answers that does not
// have the amount.
func (r *Result) exceed(shown *LimitState, limit *rule, before state.Spent, amount, now int64) {
	if amount > limit.Capacity {
		shown.Exceeded, shown.Never = true, true
		return
	}
	if limit.Over(limit.Level(before, now), amount) <= 0 {
		return
	}
	shown.Exceeded = true
	shown.RetryAfter = milliseconds(limit.Retry(before, amount, now))
	if r.Verdict == Limited && !limit.Lenient && !limit.Soft {
		r.RetryAfter = max(r.RetryAfter, shown.RetryAfter)
	}
}

// show sets the numbers of a limit that has spent so much.
func (s *LimitState) show(r *rule, spent state.Spent, now int64) {
	level := r.Level(spent, now)
	s.Remaining = r.Remaining(level)
	s.Overdraft = r.Overdraft(level)
	s.Mixed, s.Approximate = spent.Other != nil, spent.Held
	s.ResetAfter = milliseconds(r.Reset(spent, now))
	if s.WindowEnd = spent.End; spent.Other != nil && r.Tag != state.TokenBucket {
		e := spent.Other.At(now)
		s.WindowEnd = e.End
	}
}

// changed returns the states after a settlement or a grant. What was given back is counted in whole
// tokens, rounded towards zero.
func changed(buckets []Bucket, before, after *spentArray, now int64) []LimitState {
	states := slices.Grow([]LimitState(nil), countLimits(buckets))
	k := 0
	for i := range buckets {
		b := &buckets[i]
		for j := range b.Limits.rules {
			rule := &b.Limits.rules[j]
			was, is := rule.Level(before[k], now), rule.Level(after[k], now)
			state := LimitState{Owner: b.Owner, Limit: rule.limit, Overridden: rule.overridden, Charged: (is - was) / rule.P}
			state.show(rule, after[k], now)
			states = append(states, state)
			k++
		}
	}
	return states
}

// settleAmounts returns what a limit was charged and what it is worth. Both are equal where nothing
// is to be corrected.
func (s *Settlement) settleAmounts(k int, b *Bucket, r *rule) (charged, actual int64) {
	if s.Receipt.local != nil {
		// What is negative comes back.
		return max(0, -s.Receipt.local[k]), max(0, s.Receipt.local[k])
	}
	unit := r.limit.Unit
	asked := b.asked(s.Receipt.amounts.all(), unit)
	charged = s.Receipt.short.Of(k, asked)
	if charged == 0 && asked > 0 {
		// What was left uncharged stays so.
		return 0, 0
	}
	actual, corrected := s.actual(b, unit)
	if !corrected {
		return charged, charged
	}
	// A soft limit that was charged less than was asked for gives back what of its charge the operation did not
	// come to. It is charged on only what exceeds what was asked for.
	return charged, min(actual, charged) + max(0, actual-asked)
}

// actual returns what the operation was worth to a bucket in a unit, and whether anybody has said so.
func (s *Settlement) actual(b *Bucket, unit Unit) (n int64, said bool) {
	for i := range s.Actual {
		if s.Actual[i].Unit == unit {
			return b.worth(s.Receipt.amounts.all(), s.Actual[i]), true
		}
	}
	return 0, false
}

// worth returns what the bucket is worth in the end, if all others are worth an amount: as much of what was asked of itself
// as that is of what was asked of them, rounded up and at most math.MaxInt64. Where nothing was asked of them it is the amount.
func (b *Bucket) worth(amounts Amounts, actual Amount) int64 {
	own, whole := b.asked(amounts, actual.Unit), amounts.Of(actual.Unit)
	if own == whole || whole <= 0 {
		return actual.N
	}
	hi, lo := bits.Mul64(uint64(own), uint64(actual.N))
	lo, carry := bits.Add64(lo, uint64(whole-1), 0)
	if hi += carry; hi >= uint64(whole) {
		return math.MaxInt64
	}
	worth, _ := bits.Div64(hi, lo, uint64(whole))
	return int64(min(worth, math.MaxInt64))
}

// again tells the attempt that holds a claim what it was told before, with the limits as they are now. limits is
// the hash of those that were judged then.
func (r *Result) again(take *Take, takenAt int64, limits uint32, short state.Shortfall) {
	r.Verdict = Admitted
	if limits != sumOf(take.Buckets) {
		// An override record has switched one off or on: nobody knows what those of now were charged, so that
		// nothing is settled.
		return
	}
	for k := range r.Limits {
		state := &r.Limits[k]
		if state.Charged = short.Of(k, state.Asked); state.Charged < state.Asked {
			state.Exceeded = true
			state.Never = state.Asked > state.Limit.Capacity
		}
	}
	if take.Usage != nil || r.charged() {
		r.Receipt.issue(take, takenAt, short)
	}
}

// spentArray holds what each limit of a call has spent. It has a fixed size so that it can live on the
// stack.
type spentArray [MaxLimits]state.Spent

// verdicts are what the outcomes of a take mean.
var verdicts = [...]Verdict{
	state.Admitted: Admitted, state.Repeat: Admitted, state.Again: Admitted, state.Limited: Limited, state.Never: Never,
	state.Replayed: Replayed, state.InFlight: InFlight, state.Reused: KeyReused, state.NoAnswer: AnswerUnavailable,
	state.Unknown: OutcomeUnknown,
}

// verdictOf is what the outcome of a take means, false if it is none.
func verdictOf(outcome state.Outcome) (v Verdict, ok bool) {
	if int(outcome) < len(verdicts) {
		v = verdicts[outcome]
	}
	return v, v != 0
}
