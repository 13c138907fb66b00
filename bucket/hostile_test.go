package bucket_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

// hostileBuckets are a fast owner and one with every kind of window.
func hostileBuckets(t testing.TB) []bucket.Bucket {
	t.Helper()
	return []bucket.Bucket{
		{Limits: compile(t, bucket.Limit{Name: "minute", Capacity: 10, Period: time.Minute}, bucket.Limit{Name: "day", Capacity: 100, Period: 24 * time.Hour})},
		{Owner: bucket.Owner{Level: bucket.User, Name: "ann"}, Limits: compile(t,
			bucket.Limit{Name: "minute", Capacity: 10, Period: time.Minute},
			bucket.Limit{Name: "fixed", Capacity: 10, Period: time.Minute, Window: bucket.Window{Kind: bucket.FixedWindow}},
			bucket.Limit{Name: "sliding", Capacity: 10, Period: time.Minute, Window: bucket.Window{Kind: bucket.SlidingWindow}},
			bucket.Limit{Name: "month", Capacity: 10, Window: bucket.Window{Kind: bucket.MonthWindow}})},
	}
}

func FuzzReplies(f *testing.F) {
	f.Add("")
	f.Add("\x01\x00\x00\x00\x00\x00\x01")
	take := &bucket.Take{Buckets: hostileBuckets(f), Amounts: points(1)}
	ctx := context.Background()
	client := patientClient(f, redistest.Start(f).Addr)
	store := newRedisStore(f, client)
	client.AddHook(replies(func(text string) { f.Add(text) }))
	for _, amount := range []int64{1, 9, 11} {
		result, err := store.Take(ctx, bucket.Take{Tenant: "acme", Buckets: take.Buckets, Amounts: points(amount)})
		require.NoError(f, err)
		_, err = store.Settle(ctx, bucket.Settlement{Receipt: result.Receipt, Actual: points(2)})
		require.NoError(f, err)
		_, err = store.Peek(ctx, "acme", take.Buckets)
		require.NoError(f, err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, taken, settled := bucket.ReadReply(take, text)
		for _, err := range []error{taken, settled} {
			if err != nil {
				require.ErrorIs(t, err, bucket.ErrAmbiguous)
			}
		}
	})
}

func TestARefusalThatTheStatesContradictIsUnreadable(t *testing.T) {
	t.Parallel()
	const admitted, limited, never = 1, 2, 3
	client := patientClient(t, redistest.Start(t).Addr)
	store := newRedisStore(t, client)
	var reply string
	client.AddHook(replies(func(text string) { reply = text }))
	live := hostileBuckets(t)
	for _, c := range []struct {
		amount   int64
		outcome  byte
		readable string
	}{
		{1, admitted, string([]byte{admitted})},
		{10, limited, string([]byte{admitted, limited})}, // an admission is believed
		{11, never, string([]byte{admitted, limited, never})},
	} {
		take := bucket.Take{Tenant: "acme", Buckets: live, Amounts: points(c.amount)}
		_, err := store.Take(t.Context(), take)
		require.NoError(t, err)
		require.Equal(t, c.outcome, reply[0])
		for _, outcome := range []byte{admitted, limited, never} {
			_, taken, _ := bucket.ReadReply(&take, string(outcome)+reply[1:])
			if strings.IndexByte(c.readable, outcome) >= 0 {
				require.NoError(t, taken, "%d as %d", c.outcome, outcome)
				continue
			}
			require.ErrorIs(t, taken, bucket.ErrAmbiguous, "%d as %d", c.outcome, outcome)
		}
	}
}

func TestATakeWithoutAKeyIsToldNothingOfOne(t *testing.T) {
	t.Parallel()
	client := patientClient(t, redistest.Start(t).Addr)
	store := newRedisStore(t, client)
	var reply string
	client.AddHook(replies(func(text string) { reply = text }))
	take := bucket.Take{Tenant: "acme", Buckets: hostileBuckets(t), Amounts: points(1)}
	_, err := store.Take(t.Context(), take)
	require.NoError(t, err)
	for outcome := byte(4); outcome < 16; outcome++ {
		_, taken, _ := bucket.ReadReply(&take, string(outcome)+reply[1:])
		require.ErrorIs(t, taken, bucket.ErrAmbiguous, outcome)
	}
}

func TestARefusalThatIsReadHasALimitThatRefuses(t *testing.T) {
	t.Parallel()
	client := patientClient(t, redistest.Start(t).Addr)
	store := newRedisStore(t, client)
	var reply string
	client.AddHook(replies(func(text string) { reply = text }))
	refuses := func(verdict bucket.Verdict, limits []bucket.LimitState) bool {
		return verdict != bucket.Limited && verdict != bucket.Never ||
			slices.ContainsFunc(limits, func(l bucket.LimitState) bool { return l.Exceeded && (l.Never || verdict == bucket.Limited) })
	}
	live, readable := hostileBuckets(t), 0
	for _, amount := range []int64{1, 9, 10, 11} {
		take := bucket.Take{Tenant: "acme", Buckets: live, Amounts: points(amount), Candidate: &bucket.Candidate{ID: "next", Buckets: live[:1]}}
		_, err := store.Take(t.Context(), take)
		require.NoError(t, err)
		for at := range reply {
			for outcome := range byte(4) {
				result, err, _ := bucket.ReadReply(&take, reply[:at]+string([]byte{outcome})+reply[at+1:])
				if err != nil {
					continue
				}
				readable++
				require.True(t, refuses(result.Verdict, result.Limits), "%d at %d", outcome, at)
				if c := result.Candidate; c != nil {
					require.True(t, refuses(c.Verdict, c.Limits), "%d at %d of the candidate", outcome, at)
				}
			}
		}
	}
	require.Greater(t, readable, 100)
}

func TestAStateOfAnyBytesIsReadOrRefusedAndNeverCrashes(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := patientClient(t, redistest.Start(t).Addr)
	store := newRedisStore(t, client)
	buckets := hostileBuckets(t)
	for i := range buckets {
		_, err := store.Take(ctx, bucket.Take{Tenant: "acme", Buckets: buckets[i : i+1], Amounts: points(3)})
		require.NoError(t, err)
	}
	var seeds []string
	for i := range buckets {
		state, err := client.Get(ctx, store.BucketKey("acme", buckets[i].Owner)).Result()
		require.NoError(t, err)
		seeds = append(seeds, state)
	}
	runs := 0
	rapid.Check(t, func(t *rapid.T) {
		runs++
		tenant := fmt.Sprint("tenant-", runs)
		for i := range buckets {
			state := []byte(rapid.SampledFrom(append(seeds, strings.Repeat("\xff", 60), "\x02", "")).Draw(t, "state"))
			for range rapid.IntRange(0, 8).Draw(t, "changes") {
				if len(state) > 0 {
					state[rapid.IntRange(0, len(state)-1).Draw(t, "place")] = rapid.Byte().Draw(t, "byte")
				}
			}
			state = state[:len(state)-rapid.IntRange(0, len(state)).Draw(t, "cut")*rapid.IntRange(0, 1).Draw(t, "cuts")]
			state = append(state, rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "rest")...)
			require.NoError(t, client.Set(ctx, store.BucketKey(tenant, buckets[i].Owner), state, time.Hour).Err())
		}
		check := func(states []bucket.LimitState, err error) {
			if err != nil {
				require.ErrorIs(t, err, bucket.ErrUnavailable)
				return
			}
			for _, state := range states {
				require.True(t, state.Remaining >= 0 && state.Remaining <= state.Limit.Capacity, "%+v", state)
				require.True(t, state.Overdraft >= 0 && state.Overdraft <= 3*state.Limit.Capacity, "%+v", state)
			}
		}
		check(store.Peek(ctx, tenant, buckets))
		result, err := store.Take(ctx, bucket.Take{Tenant: tenant, Buckets: buckets, Amounts: points(2)})
		check(result.Limits, err)
		settled, err := store.Settle(ctx, bucket.Settlement{Receipt: result.Receipt, Actual: points(1)})
		check(settled.Limits, err)
		check(store.Grant(ctx, tenant, buckets, points(1)))
	})
}
