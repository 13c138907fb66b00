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

// A law is what holds of any history, whatever policies its calls are made under: no debt falls faster than the
// fastest refill in force, and so nobody is admitted more than the largest capacity and what that brings.

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
	// level is what was stored of the limit when a call had changed it last, in tokens.
	level *big.Rat
	at    int64
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

// observe makes a call and checks what it has done to what is stored of the limit: gives is what it may give back,
// and charges says whether it may charge at all.
func (r *lawRun) observe(gives int64, call func() (charged bool, err error)) error {
	now := r.clock.unixMilli()
	if r.outside {
		_, err := call()
		return err
	}
	before, err := r.stored()
	if err != nil {
		return err
	}
	charged, err := call()
	if err != nil {
		return err
	}
	after, err := r.stored()
	if err != nil {
		return err
	}
	changed := error(nil)
	for _, later := range []int64{0, 1, 1000, 100_000} {
		if was, is := before.Level(now+later), after.Level(now+later); was.Cmp(is) != 0 {
			changed = fmt.Errorf("at %d a call that did not charge the limit made %s of %s tokens, %d ms later", now, is.FloatString(3), was.FloatString(3), later)
		}
	}
	if changed == nil {
		return nil
	}
	if !charged && gives == 0 {
		return changed
	}
	return r.fell(now, after.Level(now), gives)
}

// fell checks that the debt fell no faster than the fastest refill in force, but for what was given back, since a
// call had changed it last. Windows fall at their ends as well.
func (r *lawRun) fell(now int64, level *big.Rat, gives int64) error {
	least := new(big.Rat).Mul(r.live.refill, new(big.Rat).SetInt64(now-r.at))
	least.Add(least, new(big.Rat).SetInt64(gives))
	if least.Sub(r.level, least); r.family == "token" && level.Cmp(least) < 0 {
		return fmt.Errorf("at %d, %d ms later, %s tokens owed have become %s", now, now-r.at, r.level.FloatString(3), level.FloatString(3))
	}
	r.level, r.at = level, now
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
	err = r.observe(0, func() (bool, error) {
		receipts := make([]bucket.Receipt, len(r.stores))
		result, err := lawCall(r, "take", buckets, func(i int, store bucket.Store) (bucket.Result, error) {
			result, err := store.Take(context.Background(), take)
			receipts[i], result.Receipt = result.Receipt, bucket.Receipt{}
			return result, err
		})
		if err != nil {
			return false, err
		}
		if result.Candidate != nil {
			note(r.trial, now, result.Candidate.Limits)
		}
		if charged = note(r.live, now, result.Limits); !receipts[0].IsZero() {
			r.receipts = append(r.receipts, lawReceipt{receipts, charged, amount})
		}
		return charged > 0, nil
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
	return r.observe(gives, func() (bool, error) {
		settled, err := lawCall(r, "settle", bucket.BucketsOf(receipt.receipts[0]), func(i int, store bucket.Store) (bucket.Settled, error) {
			return store.Settle(context.Background(), bucket.Settlement{Receipt: receipt.receipts[i], Actual: points(actual)})
		})
		return actual > receipt.asked, errors.Join(err, r.live.corrected(r.clock.unixMilli(), gives, settled.Limits))
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
	return r.observe(0, func() (bool, error) {
		settled, err := lawCall(r, "settle", buckets, func(_ int, store bucket.Store) (bucket.Settled, error) {
			return store.Settle(context.Background(), bucket.Settlement{Receipt: receipt})
		})
		return true, errors.Join(err, r.live.corrected(r.clock.unixMilli(), 0, settled.Limits))
	})
}

func (r *lawRun) grant(policy int) error {
	amount, buckets := r.size(3), r.policies[policy].buckets
	return r.observe(amount, func() (bool, error) {
		states, err := lawCall(r, "grant", buckets, func(_ int, store bucket.Store) ([]bucket.LimitState, error) {
			return store.Grant(context.Background(), r.tenant, buckets, points(amount))
		})
		return false, errors.Join(err, r.live.corrected(r.clock.unixMilli(), amount, states))
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
	return r.observe(0, func() (bool, error) {
		_, err := lawCall(r, "override", nil, func(_ int, store bucket.Store) (struct{}, error) {
			var err error
			if records, _ := store.(bucket.OverrideStore); remove {
				_, err = records.DeleteOverride(context.Background(), r.tenant, bucket.Owner{}, lawLimit)
			} else {
				_, err = records.SetOverride(context.Background(), r.tenant, record)
			}
			return struct{}{}, err
		})
		return false, err
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
	r.live, r.trial, r.level = newAccount(), newAccount(), new(big.Rat)
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
