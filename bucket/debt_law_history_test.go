package bucket_test

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"reflect"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// A law is what holds of any history, whatever policies its calls are made under: a debt comes back as the policy says
// that charged it, or the one that charges it now, and no call makes it less but by what that gives back. So nobody is
// admitted more than the largest capacity and what the fastest refill brings, and nobody waits for longer than
// the policy that made the debt says.

// lawLimit is the name of the limit that the policies of a history share.
const lawLimit = "limit"

// lawReceipt is a charge that may be settled.
type lawReceipt struct {
	receipts []bucket.Receipt
	// charged is what the limit was charged, and asked what was asked for.
	charged, asked int64
}

// lawRun is one random history on stores that have to agree.
type lawRun struct {
	random   *rand.Rand
	family   string
	clock    *clock
	stores   []bucket.Store
	redis    *bucket.Redis
	client   *redis.Client
	tenant   string
	policies []lawPolicy
	receipts []lawReceipt
	live     *account
	trial    *account
	calls    int
	// outside says that only what callers are told is looked at, and not what is stored.
	outside bool
	// after is done to a store after each call of a kind: a mutant.
	after func(store bucket.Store, call, tenant string, buckets []bucket.Bucket)
}

// lawCall makes a call on all stores, whose answers have to be the same.
func lawCall[A any](r *lawRun, call string, buckets []bucket.Bucket, do func(i int, store bucket.Store) (A, error)) (answer A, err error) {
	r.calls++
	for i, store := range r.stores {
		other, err := do(i, store)
		if err != nil {
			return answer, err
		}
		if r.after != nil {
			r.after(store, call, r.tenant, buckets)
		}
		if i == 0 {
			answer = other
		} else if !reflect.DeepEqual(answer, other) {
			return answer, fmt.Errorf("%s: the stores disagree: %+v and %+v", call, answer, other)
		}
	}
	return answer, nil
}

// stored returns what the first store has stored of the limit.
func (r *lawRun) stored() (bucket.Stored, error) {
	if memory, ok := r.stores[0].(*bucket.Memory); ok {
		return memory.Stored(r.tenant, bucket.Owner{}, bucket.Points, lawLimit), nil
	}
	text, err := r.client.Get(context.Background(), r.redis.BucketKey(r.tenant, bucket.Owner{})).Result()
	if errors.Is(err, redis.Nil) {
		return bucket.Stored{}, nil
	}
	if err != nil {
		return bucket.Stored{}, err
	}
	return bucket.ReadStored(text, bucket.Points, lawLimit)
}

// lawDone says what a call did: whether it charged the limit, and the limit under which it judged it, or nil.
type lawDone struct {
	charged bool
	limit   *bucket.Limit
}

// observe makes a call and checks what it has done to what is stored of the limit: gives is what it may give back.
func (r *lawRun) observe(gives int64, call func() (lawDone, error)) error {
	now := r.clock.unixMilli()
	if r.outside {
		_, err := call()
		return err
	}
	before, err := r.stored()
	if err != nil {
		return err
	}
	done, err := call()
	if err != nil {
		return err
	}
	after, err := r.stored()
	if err != nil {
		return err
	}
	if !done.charged && gives == 0 {
		return r.stayed(now, before, after)
	}
	return r.fell(now, before, after, done, gives)
}

// stayed checks that a call that did not charge the limit left it as it was, then and later.
func (r *lawRun) stayed(now int64, before, after bucket.Stored) error {
	for _, later := range []int64{0, 1, 1000, 100_000} {
		if was, is := before.Level(now+later), after.Level(now+later); was.Cmp(is) != 0 {
			return fmt.Errorf("at %d a call that did not charge the limit made %s of %s tokens, %d ms later", now, is.FloatString(3), was.FloatString(3), later)
		}
	}
	return nil
}

// fell checks that a debt is no less after a call than the faster refill of its own policy and that of the call has left
// of it, but for what the call gave back; that it is not gone later if nothing was charged; and that it keeps its terms
// if it is above the capacity of who charges. Windows are left to the account.
func (r *lawRun) fell(now int64, before, after bucket.Stored, done lawDone, gives int64) error {
	if r.family != "token" {
		return nil
	}
	was, is := before.Level(now), after.Level(now)
	if done.charged && done.limit != nil {
		was = before.LevelUnder(done.limit, now)
	}
	if least := new(big.Rat).Sub(was, new(big.Rat).SetInt64(gives)); is.Cmp(least) < 0 {
		return fmt.Errorf("at %d a call that gave back %d made %s of %s tokens", now, gives, is.FloatString(3), was.FloatString(3))
	}
	if !done.charged && after.Gone() > before.Gone() {
		return fmt.Errorf("at %d a call that charged nothing had %s tokens gone %d ms later", now, was.FloatString(3), after.Gone()-before.Gone())
	}
	keeps := !done.charged || done.limit == nil || was.Cmp(new(big.Rat).SetInt64(done.limit.Capacity)) > 0
	if keeps && is.Sign() > 0 && !after.SameTerms(before) {
		return fmt.Errorf("at %d a call changed the terms of %s tokens", now, was.FloatString(3))
	}
	return nil
}

// lasts checks that the limit refuses for no longer than something is owed under the terms in which it was charged.
func (r *lawRun) lasts(now int64, states []bucket.LimitState) error {
	for i := range states {
		if states[i].Limit.Name != lawLimit || states[i].RetryAfter == 0 || states[i].Charged > 0 || r.outside {
			continue
		}
		stored, err := r.stored()
		if left := stored.Gone() - now; err != nil || states[i].RetryAfter.Milliseconds() > left {
			return errors.Join(err, fmt.Errorf("at %d a refusal lasts %v, and the tokens %d ms", now, states[i].RetryAfter, left))
		}
	}
	return nil
}

// judging is the limit under which it was judged, or nil.
func judging(states []bucket.LimitState) *bucket.Limit {
	for i := range states {
		if states[i].Limit.Name == lawLimit {
			return states[i].Limit
		}
	}
	return nil
}

// take takes under a policy, and beside it under a candidate if there is one, and says what the limit was charged.
func (r *lawRun) take(policy int, amount int64, candidate *lawPolicy) (charged int64, err error) {
	buckets := r.policies[policy].buckets
	take := bucket.Take{
		Tenant: r.tenant, Buckets: buckets,
		Amounts: bucket.Amounts{{Unit: bucket.Points, N: amount}, {Unit: bucket.Requests, N: 1}, {Unit: "unit-0", N: int64(r.pick(3))}},
	}
	if candidate != nil {
		take.Candidate = &bucket.Candidate{ID: "next", Buckets: candidate.buckets}
	}
	now := r.clock.unixMilli()
	err = r.observe(0, func() (lawDone, error) {
		receipts := make([]bucket.Receipt, len(r.stores))
		result, err := lawCall(r, "take", buckets, func(i int, store bucket.Store) (bucket.Result, error) {
			result, err := store.Take(context.Background(), take)
			receipts[i], result.Receipt = result.Receipt, bucket.Receipt{}
			result.ForgetRecords()
			return result, err
		})
		if err != nil {
			return lawDone{}, err
		}
		if result.Candidate != nil {
			note(r.trial, now, result.Candidate.Limits)
		}
		if err := r.lasts(now, result.Limits); err != nil {
			return lawDone{}, err
		}
		if charged = note(r.live, now, result.Limits); !receipts[0].IsZero() {
			r.receipts = append(r.receipts, lawReceipt{receipts, charged, amount})
		}
		return lawDone{charged > 0, judging(result.Limits)}, nil
	})
	return charged, err
}

// drain takes nearly all that a policy has.
func (r *lawRun) drain(policy int) error {
	amount := max(1, r.policies[policy].capacity)
	for range 12 {
		charged, err := r.take(policy, amount, nil)
		if err != nil {
			return err
		}
		if charged < amount {
			amount = max(1, amount/4)
		}
	}
	return nil
}

// settle settles a charge, and gives back at most what that was.
func (r *lawRun) settle() error {
	if len(r.receipts) == 0 {
		return nil
	}
	i := max(0, len(r.receipts)-1-r.pick(6))
	receipt := r.receipts[i]
	r.receipts = append(r.receipts[:i:i], r.receipts[i+1:]...)
	actual := r.random.Int64N(receipt.asked + receipt.asked/2 + 2)
	gives := max(0, receipt.charged-actual)
	return r.observe(gives, func() (lawDone, error) {
		settled, err := lawCall(r, "settle", bucket.BucketsOf(receipt.receipts[0]), func(i int, store bucket.Store) (bucket.Settled, error) {
			return store.Settle(context.Background(), bucket.Settlement{Receipt: receipt.receipts[i], Actual: points(actual)})
		})
		return lawDone{actual > receipt.asked, judging(settled.Limits)}, errors.Join(err, r.live.corrected(r.clock.unixMilli(), gives, settled.Limits))
	})
}

// local settles what was taken while a store was away.
func (r *lawRun) local(policy int) error {
	buckets := r.policies[policy].buckets
	taken := make([]int64, buckets[0].Limits.Len())
	for i := range taken {
		taken[i] = r.size(3)
	}
	receipt := bucket.LocalReceipt(r.tenant, r.clock.unixMilli(), buckets, taken)
	return r.observe(0, func() (lawDone, error) {
		settled, err := lawCall(r, "settle", buckets, func(_ int, store bucket.Store) (bucket.Settled, error) {
			return store.Settle(context.Background(), bucket.Settlement{Receipt: receipt})
		})
		return lawDone{true, judging(settled.Limits)}, errors.Join(err, r.live.corrected(r.clock.unixMilli(), 0, settled.Limits))
	})
}

func (r *lawRun) grant(policy int) error {
	amount, buckets := r.size(3), r.policies[policy].buckets
	return r.observe(amount, func() (lawDone, error) {
		states, err := lawCall(r, "adjust", buckets, func(_ int, store bucket.Store) ([]bucket.LimitState, error) {
			return store.Grant(context.Background(), r.tenant, buckets, points(amount))
		})
		return lawDone{false, judging(states)}, errors.Join(err, r.live.corrected(r.clock.unixMilli(), amount, states))
	})
}

// override sets a record of the limit, or takes it away.
func (r *lawRun) override() error {
	record := bucket.Override{Limit: lawLimit, Reason: "law", Actor: "test"}
	modes := []bucket.Mode{bucket.Enforce, bucket.Shadow, bucket.Off}
	switch r.pick(4) {
	case 0:
		record.Mode = &modes[r.pick(len(modes))]
	case 1:
		record.Unlimited = true
	default:
		record.Capacity = min(r.size(5), 80_000)
		if r.family == "token" && r.pick(2) == 0 {
			limit := r.token()
			record.Refill, record.Period = limit.Refill, limit.Period
		}
	}
	remove := r.pick(2) == 0
	return r.observe(0, func() (lawDone, error) {
		_, err := lawCall(r, "override", nil, func(_ int, store bucket.Store) (struct{}, error) {
			var err error
			if records, _ := store.(bucket.OverrideStore); remove {
				_, err = records.DeleteOverride(context.Background(), r.tenant, bucket.Owner{}, lawLimit)
			} else {
				_, err = records.SetOverride(context.Background(), r.tenant, record)
			}
			return struct{}{}, err
		})
		return lawDone{}, err
	})
}

// advance lets time pass, and Redis, whose own clock stands still, forget.
func (r *lawRun) advance() error {
	most := []int64{50, 2000, 20_000, 4_000_000}[r.pick(4)]
	r.clock.ms.Add(r.random.Int64N(most))
	if r.client == nil {
		return nil
	}
	for _, key := range []string{r.redis.BucketKey(r.tenant, bucket.Owner{}), r.redis.CandidateKey(r.tenant, "next", bucket.Owner{})} {
		expires, err := r.client.PExpireTime(context.Background(), key).Result()
		if err != nil {
			return err
		}
		if expires > 0 && expires.Milliseconds() <= r.clock.unixMilli() {
			if err := r.client.Del(context.Background(), key).Err(); err != nil {
				return err
			}
		}
	}
	return nil
}

// step makes one random call.
func (r *lawRun) step() error {
	policy := r.pick(len(r.policies))
	var err error
	switch n := r.pick(100); {
	case n < 20:
		_, err = r.take(policy, 0, nil)
	case n < 40:
		_, err = r.take(policy, r.size(4), nil)
	case n < 45:
		_, err = r.take(policy, r.size(4), &r.policies[r.pick(len(r.policies))])
	case n < 55:
		err = r.drain(policy)
	case n < 67:
		err = r.settle()
	case n < 72:
		err = r.local(policy)
	case n < 76:
		err = r.grant(policy)
	case n < 82:
		err = r.override()
	default:
		err = r.advance()
	}
	return err
}

// run makes a history of that many steps and returns what breaks the law.
func (r *lawRun) run(steps int) error {
	r.live, r.trial = newAccount(), newAccount()
	for range 2 + r.pick(3) {
		policy, err := r.policy()
		if err != nil {
			return err
		}
		r.policies = append(r.policies, policy)
	}
	for i := range steps {
		if err := r.step(); err != nil {
			return fmt.Errorf("step %d of %s: %w", i, r.family, err)
		}
	}
	return errors.Join(r.live.check(r.family), r.trial.check(r.family))
}
