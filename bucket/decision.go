package bucket

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// maxTTL bounds the durations of a claim, so that no sum of dates leaves the exact integers.
const maxTTL = MaxPeriod

// maxInFlightRetry is the longest wait that is told to a client whose first attempt is running: most
// operations end long before their lease does.
const maxInFlightRetry = time.Second

// checkContext returns the error of a call whose caller has gone before anything was done.
func checkContext(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return nil
}

// Check returns what is wrong with the take, as an error that matches [ErrInvalid]. Every store calls it.
func (t *Take) Check() error {
	if err := checkBuckets(t.Buckets); err != nil {
		return err
	}
	if err := checkAmounts(t.Amounts); err != nil {
		return err
	}
	if err := t.Candidate.check(); err != nil {
		return err
	}
	return checkClaim(t.Claim)
}

func checkBuckets(buckets []Bucket) error {
	limits := 0
	for i := range buckets {
		b := &buckets[i]
		switch {
		case b.Limits == nil:
			return fmt.Errorf("%w: the bucket of a %v has no compiled limits", ErrInvalid, b.Owner.Level)
		case b.Owner.Level > Operation:
			return fmt.Errorf("%w: unknown %v", ErrInvalid, b.Owner.Level)
		case b.Owner.Level == Tenant && b.Owner.Name != "":
			return fmt.Errorf("%w: the owner at the level of the tenant has a name", ErrInvalid)
		}
		for j := range i {
			if buckets[j].Owner == b.Owner {
				return fmt.Errorf("%w: two buckets of one %v", ErrInvalid, b.Owner.Level)
			}
		}
		limits += len(b.Limits.rules)
		// Buckets without limits count as well, since each is a key to be named.
		if limits > MaxLimits || i >= MaxLimits {
			return fmt.Errorf("%w: more than %d limits in one call", ErrInvalid, MaxLimits)
		}
	}
	return nil
}

func checkAmounts(amounts Amounts) error {
	for i := range amounts {
		if amounts[i].N < 0 {
			return fmt.Errorf("%w: %d of %.64q", ErrInvalid, amounts[i].N, amounts[i].Unit)
		}
		for j := range i {
			if amounts[j].Unit == amounts[i].Unit {
				return fmt.Errorf("%w: two amounts of %.64q", ErrInvalid, amounts[i].Unit)
			}
		}
	}
	return nil
}

func checkClaim(claim *idempotency.Claim) error {
	switch {
	case claim == nil:
		return nil
	case claim.Lease < 0 || claim.Lease > maxTTL:
		return fmt.Errorf("%w: a lease of %v", ErrInvalid, claim.Lease)
	case claim.TTL < 0 || claim.TTL > maxTTL:
		return fmt.Errorf("%w: a claim that lives %v", ErrInvalid, claim.TTL)
	case claim.FreeRepeats < -1 || claim.FreeRepeats > 255:
		return fmt.Errorf("%w: %d free repeats", ErrInvalid, claim.FreeRepeats)
	}
	return nil
}

// check returns what is wrong with the settlement, wrapped in ErrInvalid.
func (s *Settlement) check() error {
	if err := checkAmounts(s.Actual); err != nil {
		return err
	}
	c := s.Claim
	switch {
	case c == nil:
		return nil
	case c.Claim == nil:
		return fmt.Errorf("%w: the settlement of a claim without the claim", ErrInvalid)
	case c.Outcome != idempotency.Done && c.Outcome != idempotency.Released:
		return fmt.Errorf("%w: unknown outcome %d", ErrInvalid, c.Outcome)
	case !s.Receipt.IsZero() && c.Tenant != s.Receipt.tenant:
		return fmt.Errorf("%w: the receipt and the claim are of different tenants", ErrInvalid)
	}
	return checkClaim(c.Claim)
}

// leaseAndTTL returns the durations of a claim in milliseconds, the defaults filled in.
func leaseAndTTL(claim *idempotency.Claim) (lease, ttl int64) {
	lease, ttl = claim.Lease.Milliseconds(), claim.TTL.Milliseconds()
	if claim.Lease == 0 {
		lease = idempotency.DefaultLease.Milliseconds()
	}
	if claim.TTL == 0 {
		ttl = idempotency.DefaultMutationTTL.Milliseconds()
	}
	// Less than a millisecond is still some time.
	return max(lease, 1), max(ttl, 1)
}

// judge returns the verdict on a take from buckets that have spent so much, and the limits that an
// admission charges nothing because they do not have the amount.
func judge(buckets []Bucket, spends *spentArray, amounts Amounts, now int64) (Verdict, state.Shortfall) {
	judging := state.Judging{Outcome: state.Admitted}
	k := 0
	for i := range buckets {
		rules := buckets[i].Limits.rules
		for j := range rules {
			judging.Limit(k, rules[j].Rule, spends[k], amounts.Of(rules[j].limit.Unit), now)
			k++
		}
	}
	verdict, _ := verdictOf(judging.Outcome)
	if verdict != Admitted {
		judging.Short = state.Shortfall{}
	}
	return verdict, judging.Short
}

// judged completes the result of a take that was judged.
func (r *Result) judged(take *Take, spends *spentArray, short state.Shortfall, now int64) {
	r.fill(take, spends, now, short, true)
	r.observed(take, spends, now)
	if r.Verdict == Admitted && r.charged() {
		r.Receipt.issue(take, now, short)
	}
}

// keyed completes the result of a take on which the record of the key decides. tail is what the record tells with it.
// It returns false if the outcome is none of a key, or lacks its tail.
func (r *Result) keyed(take *Take, outcome state.Outcome, tail string) (ok bool) {
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
	}
	return ok
}

// room returns room for the states of so many limits: that of the caller if it is large enough.
func (t *Take) room(limits int) []LimitState {
	if cap(t.States) < limits {
		return make([]LimitState, limits)
	}
	return t.States[:limits]
}

// fill sets the state of every limit in the result from what is spent after the decision. Limits that
// are short were over their budget. If the take was judged, what was admitted was charged.
func (r *Result) fill(take *Take, spends *spentArray, now int64, short state.Shortfall, judged bool) {
	r.now = now
	states := take.room(countLimits(take.Buckets))
	k := 0
	for i := range take.Buckets {
		b := &take.Buckets[i]
		for j := range b.Limits.rules {
			rule, s := &b.Limits.rules[j], spends[k]
			shown := &states[k]
			*shown = LimitState{Owner: b.Owner, Limit: rule.limit, Overridden: rule.overridden}
			amount := take.Amounts.Of(rule.limit.Unit)
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
func (r *Result) exceed(shown *LimitState, rule *rule, before state.Spent, amount, now int64) {
	if amount > rule.Capacity {
		shown.Exceeded, shown.Never = true, true
		return
	}
	if rule.Over(rule.Level(before, now), amount) <= 0 {
		return
	}
	shown.Exceeded = true
	shown.RetryAfter = milliseconds(rule.Retry(before, amount, now))
	if r.Verdict == Limited && !rule.Lenient && !rule.Soft {
		r.RetryAfter = max(r.RetryAfter, shown.RetryAfter)
	}
}

// show sets the numbers of a limit that has spent so much.
func (s *LimitState) show(rule *rule, spent state.Spent, now int64) {
	level := rule.Level(spent, now)
	s.Remaining = rule.Remaining(level)
	s.Overdraft = rule.Overdraft(level)
	s.ResetAfter = milliseconds(rule.Reset(spent, now))
	if s.WindowEnd = spent.End; spent.Other != nil && rule.Tag != state.TokenBucket {
		e := spent.Other.At(now)
		s.WindowEnd = e.End
	}
}

// changed returns the states after a settlement or a grant. What was given back is counted in whole
// tokens, rounded towards zero.
func changed(buckets []Bucket, before, after *spentArray, now int64) []LimitState {
	var states []LimitState
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
func (s *Settlement) settleAmounts(k int, rule *rule) (charged, actual int64) {
	if s.Receipt.local != nil {
		return 0, s.Receipt.local[k]
	}
	unit := rule.limit.Unit
	asked := s.Receipt.amounts.all().Of(unit)
	charged = s.Receipt.short.Of(k, asked)
	if charged == 0 && asked > 0 {
		// What was left uncharged stays so.
		return 0, 0
	}
	for i := range s.Actual {
		if s.Actual[i].Unit != unit {
			continue
		}
		// A soft limit that was charged less than was asked for gives back what of its charge the operation did not
		// come to. It is charged on only what exceeds what was asked for.
		actual = s.Actual[i].N
		return charged, min(actual, charged) + max(0, actual-asked)
	}
	return charged, charged
}

// milliseconds is a duration of so many, at most the longest that there is: 292 years.
func milliseconds(n int64) time.Duration {
	return time.Duration(min(n, int64(math.MaxInt64/time.Millisecond))) * time.Millisecond
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
		amount := take.Amounts.Of(state.Limit.Unit)
		if state.Charged = short.Of(k, amount); state.Charged < amount {
			state.Exceeded = true
			state.Never = amount > state.Limit.Capacity
		}
	}
	if r.charged() {
		r.Receipt.issue(take, takenAt, short)
	}
}

func checkRenewal(claim *idempotency.Claim) error {
	if claim == nil {
		return fmt.Errorf("%w: the renewal of no claim", ErrInvalid)
	}
	return checkClaim(claim)
}
