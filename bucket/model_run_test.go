package bucket_test

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/big"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

// modelReceipt is a receipt of both stores, with what it stands for.
type modelReceipt struct {
	stores  [2]bucket.Receipt
	takenAt int64
	// whole is what the take asked for where an owner had no amount of its own.
	whole int64
	// buckets and limits are those of the take, asked and charged what each of the limits was asked for and charged.
	buckets        []bucket.Bucket
	limits         [][]modelLimit
	asked, charged []int64
}

// run is one random sequence of calls on two stores and the model.
type run struct {
	*rapid.T
	stores  [2]bucket.Store
	redis   *bucket.Redis
	client  *redis.Client
	clock   *clock
	tenant  string
	buckets []bucket.Bucket
	owners  []*modelOwner
	// halves, if not negative, says that the user is asked for so many halves of what the tenant is.
	halves   *int64
	receipts []modelReceipt
	calls    *atomic.Int64
	// records are the override records in the order of their changes.
	records []bucket.Override
	// trial has the buckets and owners under a candidate policy, whose id is its candidate.
	trial     *run
	candidate string
}

// both makes the call on both stores and returns the answers, which must be the same.
func both[A any](r *run, call func(i int, store bucket.Store) (A, error)) A {
	var answers [2]A
	for i, store := range r.stores {
		answer, err := call(i, store)
		require.NoError(r, err)
		answers[i] = answer
	}
	r.calls.Add(1)
	require.Equal(r, answers[0], answers[1], "memory and Redis agree")
	return answers[0]
}

// compare checks the answer of the stores, field by field.
func (r *run) compare(want, got []bucket.LimitState, what string) {
	require.Len(r, got, len(want), what)
	for i := range got {
		// The limit of a store is the compiled one.
		want[i].Limit = got[i].Limit
		require.Equal(r, want[i], got[i], "%s: limit %d, %+v", what, i, *got[i].Limit)
	}
}

// take takes under the live policy, and beside it under the candidate if it is to be tried.
func (r *run) take(amount int64, try bool) {
	var receipt modelReceipt
	var candidate *bucket.Candidate
	if try {
		candidate = &bucket.Candidate{ID: r.trial.candidate, Buckets: r.trial.asking(amount)}
	}
	result := both(r, func(i int, store bucket.Store) (bucket.Result, error) {
		result, err := store.Take(context.Background(), bucket.Take{
			Tenant: r.tenant, Buckets: r.asking(amount), Amounts: bucket.Amounts{{Unit: bucket.Points, N: amount}},
			Candidate: candidate,
		})
		receipt.stores[i], result.Receipt = result.Receipt, bucket.Receipt{}
		result.ForgetRecords()
		return result, err
	})
	if r.override() {
		require.True(r, result.BlockedBy().Blocked)
		require.Empty(r, result.Limits)
		// A blocked take looks at no bucket, so that the memory store has not forgotten what has expired,
		// and would know it again if the clock were set back.
		r.stores[0].(*bucket.Memory).ForgetExpired()
		return
	}
	r.judge(&result, amount, receipt)
	if !try {
		require.Nil(r, result.Candidate)
		return
	}
	require.NotNil(r, result.Candidate)
	r.trial.records = r.records
	r.trial.override()
	r.trial.judge(&bucket.Result{
		Verdict: result.Candidate.Verdict, RetryAfter: result.Candidate.RetryAfter, Limits: result.Candidate.Limits,
	}, amount, modelReceipt{})
}

// judge checks the verdict on a take, and does to the model what it does.
func (r *run) judge(result *bucket.Result, amount int64, receipt modelReceipt) {
	now := r.clock.unixMilli()
	want := bucket.Result{Verdict: bucket.Admitted}
	var views [][]modelSpent
	var stale []bool
	for i, owner := range r.owners {
		view, old := owner.view(now)
		views, stale = append(views, view), append(stale, old)
		amount := r.asked(i, amount)
		for j, limit := range owner.limits {
			state := bucket.LimitState{Owner: r.buckets[i].Owner, Overridden: limit.overridden, Asked: amount}
			if amount > 0 {
				limit.exceed(&state, view[j], amount, now)
			}
			want.Limits = append(want.Limits, state)
			if !state.Exceeded || limit.Mode != bucket.Enforce || limit.Soft {
				continue
			}
			if state.Never {
				want.Verdict, want.RetryAfter = bucket.Never, 0
			} else if want.Verdict != bucket.Never {
				want.Verdict, want.RetryAfter = bucket.Limited, max(want.RetryAfter, state.RetryAfter)
			}
		}
	}
	r.charge(&want, views, stale, amount, now, receipt)
	require.Equal(r, want.Verdict, result.Verdict)
	require.Equal(r, want.RetryAfter, result.RetryAfter)
	r.compare(want.Limits, result.Limits, "take")
	r.forget()
}

// charge does to the model what a take of that verdict does.
func (r *run) charge(want *bucket.Result, views [][]modelSpent, stale []bool, amount, now int64, receipt modelReceipt) {
	receipt.takenAt, receipt.whole = now, amount
	receipt.buckets = append(receipt.buckets, r.buckets...)
	k, charges := 0, false
	for i, owner := range r.owners {
		amount, changed := r.asked(i, amount), make([]bool, len(owner.limits))
		for j, limit := range owner.limits {
			state := &want.Limits[k]
			if want.Verdict == bucket.Admitted && amount > 0 && (!state.Exceeded || limit.Soft) {
				views[i][j], state.Charged = limit.take(views[i][j].copy(), amount, now)
				if limit.Soft {
					r.exceedSoft(state, limit, views[i][j], amount, now)
				}
				changed[j] = state.Charged > 0
				charges = charges || changed[j]
			}
			receipt.asked, receipt.charged = append(receipt.asked, amount), append(receipt.charged, state.Charged)
			limit.show(state, views[i][j], now)
			k++
		}
		if stale[i] || slices.Contains(changed, true) {
			owner.write(views[i], changed, now)
		}
		receipt.limits = append(receipt.limits, owner.limits)
	}
	if charges {
		r.receipts = append(r.receipts, receipt)
	}
}

// exceedSoft says by what a soft limit is exceeded, from what it has spent after the charge.
func (r *run) exceedSoft(state *bucket.LimitState, limit modelLimit, after modelSpent, amount, now int64) {
	before, charged := after.copy(), new(big.Rat).SetInt64(-state.Charged)
	switch {
	case state.Charged == 0:
	case after.entry != nil:
		e := after.entry.at(now)
		e.add(charged)
		before = limit.read(e, now)
	case limit.token():
		before.owed.Add(before.owed, charged)
	default:
		before.used -= state.Charged
	}
	state.RetryAfter = 0
	limit.exceed(state, before, amount, now)
}

// change does to owners, which may have been under other limits, what a settlement or a grant does.
func (r *run) change(
	buckets []bucket.Bucket, limits [][]modelLimit, states []bucket.LimitState, what string,
	to func(k int, limit modelLimit, s modelSpent, now int64) modelSpent,
) {
	now, k := r.clock.unixMilli(), 0
	var want []bucket.LimitState
	for i := range buckets {
		owner := r.owners[i]
		current := owner.limits
		owner.limits = limits[i]
		view, _ := owner.view(now)
		changed := make([]bool, len(owner.limits))
		for j, limit := range owner.limits {
			state := bucket.LimitState{Owner: buckets[i].Owner, Overridden: limit.overridden}
			after := to(k, limit, view[j].copy(), now)
			changed[j] = !after.equal(view[j])
			difference := new(big.Rat).Sub(limit.level(after, now), limit.level(view[j], now))
			if state.Charged = floorRat(difference); difference.Sign() < 0 {
				state.Charged = ceilRat(difference)
			}
			limit.show(&state, after, now)
			want, view[j] = append(want, state), after
			k++
		}
		if slices.Contains(changed, true) {
			owner.write(view, changed, now)
		}
		owner.limits = current
	}
	r.compare(want, states, what)
	r.forget()
}

// worth is what a limit is worth that was asked for an amount of its own: its part, rounded up.
func (r *modelReceipt) worth(k int, actual int64) int64 {
	if r.whole == 0 {
		return actual
	}
	worth := new(big.Rat).Mul(big.NewRat(r.asked[k], r.whole), big.NewRat(actual, 1))
	if worth.Cmp(big.NewRat(math.MaxInt64, 1)) > 0 {
		return math.MaxInt64
	}
	return ceilRat(worth)
}

func (r *run) settle(receipt modelReceipt, actual int64) {
	settled := both(r, func(i int, store bucket.Store) (bucket.Settled, error) {
		return store.Settle(context.Background(), bucket.Settlement{
			Receipt: receipt.stores[i], Actual: bucket.Amounts{{Unit: bucket.Points, N: actual}},
		})
	})
	require.Equal(r, r.clock.unixMilli()-receipt.takenAt < maxReceiptAge.Milliseconds(), settled.Applied)
	if !settled.Applied {
		return
	}
	r.change(receipt.buckets, receipt.limits, settled.Limits, "settle",
		func(k int, limit modelLimit, s modelSpent, now int64) modelSpent {
			if receipt.charged[k] == 0 && receipt.asked[k] > 0 {
				return s
			}
			charged, worth := receipt.charged[k], receipt.worth(k, actual)
			return limit.settle(s, charged, min(worth, charged)+max(0, worth-receipt.asked[k]), receipt.takenAt, now)
		})
}

func (r *run) current() (limits [][]modelLimit) {
	for _, owner := range r.owners {
		limits = append(limits, owner.limits)
	}
	return limits
}

func (r *run) grant(amount int64) {
	states := both(r, func(_ int, store bucket.Store) ([]bucket.LimitState, error) {
		return store.Grant(context.Background(), r.tenant, r.buckets, bucket.Amounts{{Unit: bucket.Points, N: amount}})
	})
	r.override()
	r.change(r.buckets, r.current(), states, "grant", func(_ int, limit modelLimit, s modelSpent, now int64) modelSpent {
		return limit.grant(s, amount, now)
	})
}

func (r *run) peek() {
	states := both(r, func(_ int, store bucket.Store) ([]bucket.LimitState, error) {
		return store.Peek(context.Background(), r.tenant, r.buckets)
	})
	r.override()
	r.change(r.buckets, r.current(), states, "peek", func(_ int, _ modelLimit, s modelSpent, _ int64) modelSpent { return s })
}

func (r *run) reset() {
	both(r, func(_ int, store bucket.Store) (struct{}, error) {
		return struct{}{}, store.Reset(context.Background(), r.tenant, r.buckets)
	})
	for _, owner := range r.owners {
		owner.forget()
	}
}

// govern puts an owner under other limits.
func (r *run) govern(i int, limits *bucket.Limits) {
	r.buckets = append([]bucket.Bucket(nil), r.buckets...)
	r.buckets[i].Limits = limits
}

// forget lets go what has expired, in the model and in Redis, whose own clock stands still. The
// memory store does it by itself.
func (r *run) forget() {
	for i, owner := range r.owners {
		if owner.expires > 0 && owner.expires <= r.clock.unixMilli() {
			owner.forget()
			key := r.redis.BucketKey(r.tenant, r.buckets[i].Owner)
			if r.candidate != "" {
				key = r.redis.CandidateKey(r.tenant, r.candidate, r.buckets[i].Owner)
			}
			require.NoError(r, r.client.Del(context.Background(), key).Err())
		}
	}
	if r.trial != nil {
		r.trial.forget()
		r.forgetRecords()
	}
}

// modelCalls is how many calls the model has to check at least; `make test-long` asks for a million.
var modelCalls = flag.Int64("calls", 1000, "how many calls of each store the model checks at least")

// TestMemoryRedisAndUnboundedFractionsAgree makes random calls. `make test-long` makes a million.
func TestMemoryRedisAndUnboundedFractionsAgree(t *testing.T) {
	t.Parallel()
	client := patientClient(t, redistest.Start(t).Addr)
	var runs, calls atomic.Int64
	rapid.Check(t, func(t *rapid.T) {
		c := newClock()
		redisStore, err := bucket.NewRedis(bucket.RedisConfig{Client: client, Timeout: patience})
		require.NoError(t, err)
		require.NoError(t, redisStore.SetTestClock(c.unixMilli))
		halves := int64(-1)
		r := &run{
			T: t, clock: c, redis: redisStore, client: client, tenant: fmt.Sprint("run-", runs.Add(1)), calls: &calls, halves: &halves,
			stores: [2]bucket.Store{bucket.NewMemory(bucket.MemoryConfig{Clock: c.now}), redisStore},
		}
		r.trial = &run{T: t, clock: c, redis: redisStore, client: client, tenant: r.tenant, candidate: "next", halves: &halves}
		for _, owner := range []bucket.Owner{{}, {Level: bucket.User, Name: "ann"}} {
			for _, policy := range []*run{r, r.trial} {
				limits := drawLimits(t)
				policy.buckets = append(policy.buckets, bucket.Bucket{Owner: owner, Limits: limits})
				policy.owners = append(policy.owners, newModelOwner(limits))
			}
		}
		t.Repeat(r.actions())
	})
	t.Logf("%d calls of each store agreed with the model", calls.Load())
	require.GreaterOrEqual(t, calls.Load(), *modelCalls)
}

func (r *run) actions() map[string]func(*rapid.T) {
	amount := rapid.OneOf(rapid.Int64Range(0, 120), rapid.Int64Range(0, 120), rapid.SampledFrom([]int64{
		0, 1, 199, 200, 201, 999_999_999, 1_000_000_000, 1 << 51, 1 << 52, 1<<52 + 1, 1<<53 - 1, 1 << 53, math.MaxInt64,
	}))
	return map[string]func(*rapid.T){
		"take":  func(t *rapid.T) { r.take(amount.Draw(t, "amount"), false) },
		"take2": func(t *rapid.T) { r.take(amount.Draw(t, "amount"), false) },
		"try":   func(t *rapid.T) { r.take(amount.Draw(t, "amount"), true) },
		"propose": func(t *rapid.T) {
			r.trial.govern(rapid.IntRange(0, 1).Draw(t, "owner"), drawLimits(t))
		},
		"halve": func(t *rapid.T) { *r.halves = rapid.Int64Range(-1, 2).Draw(t, "halves") },
		"settle": func(t *rapid.T) {
			if len(r.receipts) == 0 {
				return
			}
			i := rapid.IntRange(0, len(r.receipts)-1).Draw(t, "receipt")
			receipt := r.receipts[i]
			r.receipts = append(r.receipts[:i:i], r.receipts[i+1:]...)
			r.settle(receipt, rapid.OneOf(rapid.Int64Range(0, 250), rapid.Just(int64(math.MaxInt64))).Draw(t, "actual"))
		},
		"override":  func(t *rapid.T) { r.setRecord(t) },
		"override2": func(t *rapid.T) { r.setRecord(t) },
		"lift":      func(t *rapid.T) { r.removeRecords(t) },
		"grant":     func(t *rapid.T) { r.grant(amount.Draw(t, "amount")) },
		"reset":     func(*rapid.T) { r.reset() },
		"policy": func(t *rapid.T) {
			r.govern(rapid.IntRange(0, 1).Draw(t, "owner"), drawLimits(t))
		},
		"forward": func(t *rapid.T) {
			r.clock.ms.Add(rapid.OneOf(rapid.Int64Range(0, 50), rapid.Int64Range(0, 20_000), rapid.Int64Range(0, 20_000),
				rapid.Int64Range(0, 40*24*3_600_000)).Draw(t, "ms"))
			r.forget()
			// What has expired of the candidate is forgotten when it is looked for, and no peek does that.
			r.take(0, true)
		},
		"back": func(t *rapid.T) {
			r.clock.ms.Add(-rapid.OneOf(rapid.Int64Range(0, 50), rapid.Int64Range(4_990, 5_010), rapid.Int64Range(0, 60_000)).Draw(t, "ms"))
		},
		"": func(*rapid.T) {
			r.peek()
			r.take(0, true)
		},
	}
}
