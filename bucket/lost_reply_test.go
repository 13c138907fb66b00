package bucket_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/lua"
)

func TestALostReplyIsAmbiguousUnlessAClaimMakesASecondTrySafe(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*bucket.Redis){
		"alone": alone, "in a batch": (*bucket.Redis).AlwaysQueue,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			loseReplies(t, prepare)
		})
	}
}

func loseReplies(t *testing.T, prepare func(*bucket.Redis)) {
	t.Helper()
	ctx := context.Background()
	proxy := redistest.StartProxy(t, redistest.Start(t).Addr)
	client := redis.NewClient(patientOptions(proxy.Addr))
	t.Cleanup(func() { _ = client.Close() })
	store := newRedisStore(t, client)
	prepare(store)
	buckets := []bucket.Bucket{{Limits: compile(t, bucket.Limit{Name: "year", Capacity: 1000, Refill: 1, Period: time.Hour})}}
	take := bucket.Take{Tenant: "acme", Buckets: buckets, Amounts: points(10)}
	left := func() int64 {
		states, err := store.Peek(ctx, "acme", buckets)
		require.NoError(t, err)
		return states[0].Remaining
	}
	// The server knows the script from now on.
	_, err := store.Take(ctx, take)
	require.NoError(t, err)

	proxy.LoseReply(lua.Load().Take.SHA)
	_, err = store.Take(ctx, take)
	require.ErrorIs(t, err, bucket.ErrAmbiguous)
	require.EqualValues(t, 1, proxy.Lost())
	require.EqualValues(t, 980, left(), "it was charged once, and nothing sent it again")

	proxy.LoseReply(lua.Load().Take.SHA)
	take.Claim = &idempotency.Claim{Key: "12345678", Attempt: idempotency.NewAttemptID()}
	result, err := store.Take(ctx, take)
	require.NoError(t, err)
	require.EqualValues(t, 2, proxy.Lost())
	require.Equal(t, bucket.Admitted, result.Verdict)
	require.False(t, result.Repeat)
	require.EqualValues(t, 10, result.Limits[0].Charged)
	require.EqualValues(t, 970, left(), "the second try was told the first verdict")

	// The receipt of the second try is that of the first charge.
	settled, err := store.Settle(ctx, bucket.Settlement{Receipt: result.Receipt, Actual: points(4), Claim: &bucket.ClaimSettlement{
		Tenant: "acme", Claim: take.Claim, Outcome: idempotency.Done, Answer: []byte("x"),
	}})
	require.NoError(t, err)
	require.True(t, settled.Applied)
	require.EqualValues(t, 976, left())
}

// noSecondTry is a hook that lets one command pass and no other get a connection.
type noSecondTry struct {
	replies
	n int
}

func (h *noSecondTry) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if h.n++; h.n == 1 {
			return next(ctx, cmd)
		}
		cmd.SetErr(redis.ErrPoolTimeout)
		return redis.ErrPoolTimeout
	}
}

func TestATryThatFailsAfterALostReplySaysNothingAboutTheFirst(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server.Addr)
	client := redis.NewClient(patientOptions(proxy.Addr))
	t.Cleanup(func() { _ = client.Close() })
	store := newRedisStore(t, client)
	buckets := []bucket.Bucket{{Limits: compile(t, bucket.Limit{Name: "year", Capacity: 1000, Refill: 1, Period: time.Hour})}}
	take := bucket.Take{Tenant: "acme", Buckets: buckets, Amounts: points(10)}
	_, err := store.Take(ctx, take)
	require.NoError(t, err)

	proxy.LoseReply(lua.Load().Take.SHA)
	tries := &noSecondTry{}
	client.AddHook(tries)
	take.Claim = &idempotency.Claim{Key: "12345678", Attempt: idempotency.NewAttemptID()}
	_, err = store.Take(ctx, take)
	require.Equal(t, 2, tries.n)
	require.EqualValues(t, 1, proxy.Lost())
	require.ErrorIs(t, err, bucket.ErrAmbiguous)
	require.NotErrorIs(t, err, bucket.ErrUnavailable)
	states, err := newRedisStore(t, patientClient(t, server.Addr)).Peek(ctx, "acme", buckets)
	require.NoError(t, err)
	require.EqualValues(t, 980, states[0].Remaining, "the first try was charged")
}
