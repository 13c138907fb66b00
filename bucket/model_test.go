package bucket_test

import (
	"context"
	"fmt"
	"math/big"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

// modelLimit is a limit counted in fractions of any size: tokens owed, at a date.
type modelLimit struct {
	limit bucket.Limit
	owed  *big.Rat
}

// rate is what comes back each millisecond.
func (l *modelLimit) rate() *big.Rat {
	return big.NewRat(l.limit.Refill, l.limit.Period.Milliseconds())
}

// model is the state of one owner.
type model struct {
	last   int64
	limits []*modelLimit
}

func newModel(limits *bucket.Limits) *model {
	m := &model{}
	for _, limit := range limits.All() {
		m.limits = append(m.limits, &modelLimit{limit: limit, owed: new(big.Rat)})
	}
	return m
}

// empty reports whether the store has forgotten the owner: everything was paid back at the time, or
// there never was anything.
func (m *model) empty(now int64) bool {
	if m.last == 0 {
		return true
	}
	full := m.last
	for _, l := range m.limits {
		full = max(full, m.last+ceilRat(new(big.Rat).Quo(l.owed, l.rate())))
	}
	return full <= now
}

// forget drops the state that has expired at the time.
func (m *model) forget(now int64) {
	if !m.empty(now) {
		return
	}
	m.last = 0
	for _, l := range m.limits {
		l.owed = new(big.Rat)
	}
}

// at is what is owed at the time.
func (l *modelLimit) at(last, now int64) *big.Rat {
	back := new(big.Rat).Mul(l.rate(), new(big.Rat).SetInt64(max(0, now-last)))
	owed := new(big.Rat).Sub(l.owed, back)
	if owed.Sign() < 0 {
		owed.SetInt64(0)
	}
	return owed
}

// step moves the state to the time, as a call that writes does.
func (m *model) step(now int64) {
	for _, l := range m.limits {
		l.owed = l.at(m.last, now)
	}
	if now > m.last || m.last-now > 5000 {
		m.last = now
	}
}

func floorRat(r *big.Rat) int64 {
	return new(big.Int).Div(r.Num(), r.Denom()).Int64()
}

func ceilRat(r *big.Rat) int64 {
	return ceilQuotient(r.Num(), r.Denom()).Int64()
}

// shown is what a store has to show of a limit that owes so much.
func (l *modelLimit) shown(owed *big.Rat) (remaining int64, reset time.Duration) {
	left := new(big.Rat).Sub(new(big.Rat).SetInt64(l.limit.Capacity), owed)
	return max(0, floorRat(left)), time.Duration(ceilRat(new(big.Rat).Quo(owed, l.rate()))) * time.Millisecond
}

// settle is the correction of a charge.
func (l *modelLimit) settle(charged, actual, elapsed int64) {
	if actual >= charged {
		l.owed.Add(l.owed, new(big.Rat).SetInt64(actual-charged))
		if most := new(big.Rat).SetInt64(2 * l.limit.Capacity); l.owed.Cmp(most) > 0 {
			l.owed = most
		}
		return
	}
	repaid := new(big.Rat).Mul(l.rate(), new(big.Rat).SetInt64(max(0, elapsed)))
	back := new(big.Rat).Sub(new(big.Rat).SetInt64(charged), repaid)
	if difference := new(big.Rat).SetInt64(charged - actual); back.Cmp(difference) > 0 {
		back = difference
	}
	if back.Cmp(l.owed) > 0 {
		back = new(big.Rat).Set(l.owed)
	}
	if back.Sign() > 0 {
		l.owed.Sub(l.owed, back)
	}
}

// modelReceipt is a receipt of both stores, with what it stands for.
type modelReceipt struct {
	stores  [2]bucket.Receipt
	takenAt int64
	amount  int64
	// charged says which limits were charged.
	charged []bool
}

// run is one random sequence of calls on two stores and the model.
type run struct {
	*rapid.T
	stores   [2]bucket.Store
	redis    *bucket.Redis
	client   *redis.Client
	clock    *clock
	tenant   string
	buckets  []bucket.Bucket
	models   []*model
	receipts []modelReceipt
}

func (r *run) limits() []*modelLimit {
	var all []*modelLimit
	for _, m := range r.models {
		all = append(all, m.limits...)
	}
	return all
}

// owed is what each limit owes now.
func (r *run) owed() []*big.Rat {
	var owed []*big.Rat
	for _, m := range r.models {
		for _, l := range m.limits {
			owed = append(owed, l.at(m.last, r.clock.unixMilli()))
		}
	}
	return owed
}

func (r *run) compare(states []bucket.LimitState, what string) {
	all, owed := r.limits(), r.owed()
	require.Len(r, states, len(all), what)
	for i, state := range states {
		remaining, reset := all[i].shown(owed[i])
		require.Equal(r, remaining, state.Remaining, "%s: remaining of %d", what, i)
		require.Equal(r, reset, state.ResetAfter, "%s: reset of %d", what, i)
	}
}

// both makes the call on both stores and returns the answers, which must be the same.
func both[A any](r *run, call func(i int, store bucket.Store) (A, error)) A {
	var answers [2]A
	for i, store := range r.stores {
		answer, err := call(i, store)
		require.NoError(r, err)
		answers[i] = answer
	}
	require.Equal(r, answers[0], answers[1], "memory and Redis agree")
	return answers[0]
}

func (r *run) take(amount int64) {
	var receipt modelReceipt
	result := both(r, func(i int, store bucket.Store) (bucket.Result, error) {
		result, err := store.Take(context.Background(), bucket.Take{
			Tenant: r.tenant, Buckets: r.buckets, Amounts: bucket.Amounts{{Unit: bucket.Points, N: amount}},
		})
		receipt.stores[i], result.Receipt = result.Receipt, bucket.Receipt{}
		return result, err
	})
	now := r.clock.unixMilli()
	want, retry := bucket.Admitted, time.Duration(0)
	exceeded := make([]bool, len(result.Limits))
	owed := r.owed()
	for i, l := range r.limits() {
		over := new(big.Rat).Sub(owed[i], new(big.Rat).SetInt64(l.limit.Capacity-min(amount, l.limit.Capacity)))
		exceeded[i] = amount > 0 && (amount > l.limit.Capacity || over.Sign() > 0)
		if !exceeded[i] || l.limit.Mode == bucket.Shadow {
			continue
		}
		if amount > l.limit.Capacity {
			want = bucket.Never
		} else if want != bucket.Never {
			want = bucket.Limited
			retry = max(retry, time.Duration(ceilRat(new(big.Rat).Quo(over, l.rate())))*time.Millisecond)
		}
	}
	require.Equal(r, want, result.Verdict)
	if want == bucket.Limited {
		require.Equal(r, retry, result.RetryAfter)
	}
	r.charge(want, amount, now, exceeded, &receipt)
	for i, state := range result.Limits {
		require.Equal(r, exceeded[i], state.Exceeded, "exceeded %d", i)
	}
	r.forget()
	r.compare(result.Limits, "take")
}

// charge does to the model what a take of that verdict does.
func (r *run) charge(verdict bucket.Verdict, amount, now int64, exceeded []bool, receipt *modelReceipt) {
	i, charged := 0, false
	for _, m := range r.models {
		wrote := false
		for range m.limits {
			wrote = wrote || verdict == bucket.Admitted && amount > 0 && !exceeded[i]
			i++
		}
		if wrote || m.last-now > 5000 {
			m.step(now)
		}
		charged = charged || wrote
	}
	if !charged {
		return
	}
	receipt.takenAt, receipt.amount = now, amount
	for i, l := range r.limits() {
		receipt.charged = append(receipt.charged, !exceeded[i])
		if !exceeded[i] {
			l.owed.Add(l.owed, new(big.Rat).SetInt64(amount))
		}
	}
	r.receipts = append(r.receipts, *receipt)
}

func (r *run) settle(receipt modelReceipt, actual int64) {
	settled := both(r, func(i int, store bucket.Store) (bucket.Settled, error) {
		return store.Settle(context.Background(), bucket.Settlement{
			Receipt: receipt.stores[i], Actual: bucket.Amounts{{Unit: bucket.Points, N: actual}},
		})
	})
	now := r.clock.unixMilli()
	require.Equal(r, now-receipt.takenAt < bucket.MaxReceiptAge.Milliseconds(), settled.Applied)
	if !settled.Applied {
		return
	}
	i := 0
	for _, m := range r.models {
		// Whether the owner was written decides what date it has after a clock was set back.
		probe := &model{last: m.last}
		wrote := false
		for _, l := range m.limits {
			p := &modelLimit{limit: l.limit, owed: l.at(m.last, now)}
			before := new(big.Rat).Set(p.owed)
			if receipt.charged[i] {
				p.settle(receipt.amount, actual, now-receipt.takenAt)
			}
			wrote = wrote || p.owed.Cmp(before) != 0
			probe.limits = append(probe.limits, p)
			i++
		}
		if wrote {
			m.step(now)
			m.limits = probe.limits
		}
	}
	r.forget()
	r.compare(settled.Limits, "settle")
}

func (r *run) grant(amount int64) {
	states := both(r, func(_ int, store bucket.Store) ([]bucket.LimitState, error) {
		return store.Grant(context.Background(), r.tenant, r.buckets, bucket.Amounts{{Unit: bucket.Points, N: amount}})
	})
	now := r.clock.unixMilli()
	for _, m := range r.models {
		if amount == 0 || m.empty(now) {
			continue
		}
		m.step(now)
		for _, l := range m.limits {
			l.owed.Sub(l.owed, new(big.Rat).SetInt64(amount))
			if l.owed.Sign() < 0 {
				l.owed.SetInt64(0)
			}
		}
	}
	r.forget()
	r.compare(states, "grant")
}

// forget lets go what has expired, in the model and in Redis, whose own clock stands still. The
// memory store does it by itself.
func (r *run) forget() {
	for i, m := range r.models {
		m.forget(r.clock.unixMilli())
		key := r.redis.BucketKey(r.tenant, r.buckets[i].Owner)
		expiry, err := r.client.PExpireTime(context.Background(), key).Result()
		require.NoError(r, err)
		if expiry > 0 && expiry.Milliseconds() <= r.clock.unixMilli() {
			require.NoError(r, r.client.Del(context.Background(), key).Err())
		}
	}
}

func (r *run) peek() {
	r.compare(both(r, func(_ int, store bucket.Store) ([]bucket.LimitState, error) {
		return store.Peek(context.Background(), r.tenant, r.buckets)
	}), "peek")
}

func (r *run) reset() {
	both(r, func(_ int, store bucket.Store) (struct{}, error) {
		return struct{}{}, store.Reset(context.Background(), r.tenant, r.buckets)
	})
	for i, b := range r.buckets {
		r.models[i] = newModel(b.Limits)
	}
}

func TestMemoryRedisAndUnboundedFractionsAgree(t *testing.T) {
	t.Parallel()
	client := patientClient(t, redistest.Start(t).Addr)
	var runs atomic.Int64
	rapid.Check(t, func(t *rapid.T) {
		c := newClock()
		redisStore, err := bucket.NewRedis(bucket.RedisConfig{Client: client, Timeout: patience})
		require.NoError(t, err)
		require.NoError(t, redisStore.SetTestClock(c.unixMilli))
		r := &run{
			T: t, clock: c, redis: redisStore, client: client, tenant: fmt.Sprint("run-", runs.Add(1)),
			stores: [2]bucket.Store{bucket.NewMemory(bucket.MemoryConfig{Clock: c.now}), redisStore},
		}
		for _, owner := range []bucket.Owner{{}, {Level: bucket.User, Name: "ann"}} {
			limits := drawLimits(t)
			r.buckets = append(r.buckets, bucket.Bucket{Owner: owner, Limits: limits})
			r.models = append(r.models, newModel(limits))
		}
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) { r.take(rapid.Int64Range(0, 120).Draw(t, "amount")) },
			"settle": func(t *rapid.T) {
				if len(r.receipts) == 0 {
					return
				}
				i := rapid.IntRange(0, len(r.receipts)-1).Draw(t, "receipt")
				receipt := r.receipts[i]
				r.receipts = append(r.receipts[:i:i], r.receipts[i+1:]...)
				r.settle(receipt, rapid.Int64Range(0, 250).Draw(t, "actual"))
			},
			"grant": func(t *rapid.T) { r.grant(rapid.Int64Range(0, 50).Draw(t, "amount")) },
			"reset": func(*rapid.T) { r.reset() },
			"forward": func(t *rapid.T) {
				c.ms.Add(rapid.OneOf(rapid.Int64Range(0, 50), rapid.Int64Range(0, 20_000)).Draw(t, "ms"))
				r.forget()
			},
			"back": func(t *rapid.T) {
				c.ms.Add(-rapid.OneOf(rapid.Int64Range(0, 50), rapid.Int64Range(4_990, 5_010), rapid.Int64Range(0, 60_000)).Draw(t, "ms"))
			},
			"": func(*rapid.T) { r.peek() },
		})
	})
}

func drawLimits(t *rapid.T) *bucket.Limits {
	var limits []bucket.Limit
	for i := range rapid.IntRange(1, 4).Draw(t, "limits") {
		limits = append(limits, bucket.Limit{
			Name:     fmt.Sprint("limit-", i),
			Capacity: rapid.Int64Range(1, 200).Draw(t, "capacity"),
			Refill:   rapid.Int64Range(1, 300).Draw(t, "refill"),
			Period:   time.Duration(rapid.Int64Range(1, 30_000).Draw(t, "period")) * time.Millisecond,
			Mode:     rapid.SampledFrom([]bucket.Mode{bucket.Enforce, bucket.Enforce, bucket.Shadow}).Draw(t, "mode"),
		})
	}
	compiled, err := bucket.Compile(limits...)
	require.NoError(t, err)
	return compiled
}
