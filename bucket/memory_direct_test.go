package bucket_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
)

// twoWays are two stores that are asked the same: one of them makes the call of a script of each take.
type twoWays struct {
	t             *testing.T
	clock         *clock
	random        *rand.Rand
	direct, calls *bucket.Memory
	verdicts      map[bucket.Verdict]int
}

func newTwoWays(t *testing.T, seed uint64) *twoWays {
	t.Helper()
	c := newClock()
	config := bucket.MemoryConfig{Clock: c.now}
	return &twoWays{
		t: t, clock: c, random: rand.New(rand.NewPCG(seed, 17)), verdicts: map[bucket.Verdict]int{},
		direct: bucket.NewMemory(config), calls: bucket.NewMemory(config),
	}
}

// limits are up to seven of any kind and mode, some of them those of other policies under the same name.
func (w *twoWays) limits() *bucket.Limits {
	var limits []bucket.Limit
	kinds := []bucket.WindowKind{
		bucket.TokenBucket, bucket.TokenBucket, bucket.FixedWindow, bucket.SlidingWindow, bucket.HourWindow, bucket.DayWindow, bucket.MonthWindow,
	}
	first, most := w.random.IntN(3), 1+w.random.IntN(7)
	for i := range most {
		limit := bucket.Limit{
			Name: strconv.Itoa(first + i), Capacity: 1 + w.random.Int64N(40), Window: bucket.Window{Kind: kinds[w.random.IntN(len(kinds))]},
		}
		if !limit.Window.Kind.Calendar() {
			limit.Period = time.Duration(1+w.random.IntN(20_000)) * time.Millisecond
		}
		if w.random.IntN(3) == 0 {
			limit.Unit = bucket.Requests
		}
		limit.Mode = []bucket.Mode{bucket.Enforce, bucket.Enforce, bucket.Enforce, bucket.Shadow, bucket.Off}[w.random.IntN(5)]
		limit.Soft = w.random.IntN(8) == 0 && limit.Mode == bucket.Enforce
		limits = append(limits, limit)
	}
	return compile(w.t, limits...)
}

func (w *twoWays) buckets() []bucket.Bucket {
	all := []bucket.Bucket{
		{Limits: w.limits()},
		{Owner: bucket.Owner{Level: bucket.Team, Name: "core"}, Limits: w.limits()},
		{Owner: bucket.Owner{Level: bucket.User, Name: "ann/" + strconv.Itoa(w.random.IntN(2))}, Limits: w.limits()},
		{Owner: bucket.Owner{Level: bucket.Operation, Name: "Query.a", Part: strconv.Itoa(w.random.IntN(2))}, Limits: w.limits()},
	}
	all[3].Amounts = points(w.random.Int64N(6))
	first := w.random.IntN(len(all))
	return all[first : first+1+w.random.IntN(len(all)-first)]
}

func (w *twoWays) take(tenant string, buckets []bucket.Bucket) bucket.Take {
	take := bucket.Take{Tenant: tenant, Buckets: buckets, Amounts: points(w.random.Int64N(8))}
	if w.random.IntN(2) == 0 {
		take.Amounts = append(take.Amounts, bucket.Amount{Unit: bucket.Requests, N: 1})
	}
	if w.random.IntN(20) == 0 {
		take.Amounts = points(1 << 60)
	}
	if w.random.IntN(3) == 0 {
		take.Candidate = &bucket.Candidate{ID: "next", Buckets: buckets[:w.random.IntN(1+len(buckets))]}
	}
	if w.random.IntN(3) == 0 {
		take.Claim = &idempotency.Claim{
			Key: idempotency.Key(fmt.Sprintf("key-%06d", w.random.IntN(4))), Attempt: idempotency.AttemptID{byte(1 + w.random.IntN(3))},
			Fingerprint: idempotency.Fingerprint{byte(w.random.IntN(8) / 7)}, Lease: time.Second, TTL: time.Minute,
			RunAgain: w.random.IntN(2) == 0, RefuseAbandoned: w.random.IntN(4) == 0,
		}
	}
	return take
}

// same takes from both stores, and settles some of it.
func (w *twoWays) same(take bucket.Take) {
	is, err := w.direct.Take(w.t.Context(), take)
	require.NoError(w.t, err)
	want, err := w.calls.TakeByCall(w.t.Context(), take)
	require.NoError(w.t, err)
	require.Equal(w.t, want.WithoutID(), is.WithoutID())
	w.verdicts[is.Verdict]++
	if w.random.IntN(3) > 0 {
		return
	}
	w.clock.advance(time.Duration(w.random.Int64N(500)) * time.Millisecond)
	var end *bucket.ClaimSettlement
	if take.Claim != nil {
		end = &bucket.ClaimSettlement{Tenant: take.Tenant, Claim: take.Claim, Outcome: idempotency.Done}
		switch w.random.IntN(3) {
		case 0:
			end.Outcome = idempotency.Released
		case 1:
			end.Answer = make([]byte, w.random.IntN(3000))
		}
	}
	actual := points(w.random.Int64N(12))
	settled, err := w.direct.Settle(w.t.Context(), bucket.Settlement{Receipt: is.Receipt, Actual: actual, Claim: end})
	require.NoError(w.t, err)
	same, err := w.calls.Settle(w.t.Context(), bucket.Settlement{Receipt: want.Receipt, Actual: actual, Claim: end})
	require.NoError(w.t, err)
	require.Equal(w.t, same, settled)
}

func TestATakeThatMakesNoCallAnswersAndStoresWhatTheCallDoes(t *testing.T) {
	t.Parallel()
	verdicts := map[bucket.Verdict]int{}
	for seed := range uint64(1) {
		w := newTwoWays(t, seed)
		var buckets []bucket.Bucket
		for i := range 3000 {
			if i%10 == 0 {
				buckets = w.buckets()
			}
			w.clock.ms.Add(w.random.Int64N(1500))
			if w.random.IntN(50) == 0 {
				w.clock.ms.Add(-w.random.Int64N(20_000))
			}
			w.same(w.take(strconv.Itoa(i/200), buckets))
			// What has expired is forgotten, so that a clock that is set back finds the same in both.
			w.direct.ForgetExpired()
			w.calls.ForgetExpired()
			if i%100 == 99 {
				require.Equal(t, w.calls.Dump(), w.direct.Dump(), "call %d", i)
			}
		}
		for verdict, n := range w.verdicts {
			verdicts[verdict] += n
		}
	}
	t.Log(verdicts)
	for _, verdict := range []bucket.Verdict{
		bucket.Admitted, bucket.Limited, bucket.Never, bucket.Replayed, bucket.InFlight, bucket.KeyReused, bucket.AnswerUnavailable, bucket.OutcomeUnknown,
	} {
		require.Greater(t, verdicts[verdict], 20, verdict)
	}
}

// TestAStateThatNoSlabHasRoomForIsThatOfItsOwnerAlone has what owners owe under two policies of as many limits as there can be.
func TestAStateThatNoSlabHasRoomForIsThatOfItsOwnerAlone(t *testing.T) {
	t.Parallel()
	store := bucket.NewMemory(bucket.MemoryConfig{Clock: newClock().now})
	var policies [2]*bucket.Limits
	for i := range policies {
		var limits []bucket.Limit
		for j := range bucket.MaxLimits {
			limits = append(limits, bucket.Limit{Name: fmt.Sprint(i, " ", j), Capacity: 100, Period: time.Hour, Window: bucket.Window{Kind: bucket.SlidingWindow}})
		}
		policies[i] = compile(t, limits...)
	}
	user := func(i int, limits *bucket.Limits) []bucket.Bucket {
		return []bucket.Bucket{{Owner: bucket.Owner{Level: bucket.User, Name: strconv.Itoa(i)}, Limits: limits}}
	}
	for i := range 3 {
		for _, limits := range policies {
			_, err := store.Take(t.Context(), bucket.Take{Tenant: "acme", Buckets: user(i, limits), Amounts: points(int64(1 + i))})
			require.NoError(t, err)
		}
	}
	for i := range 3 {
		for _, limits := range policies {
			states, err := store.Peek(t.Context(), "acme", user(i, limits))
			require.NoError(t, err)
			require.EqualValues(t, 99-i, states[0].Remaining)
		}
	}
}
