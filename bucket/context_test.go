package bucket_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

func TestACallerThatHasGoneIsToldFromAStoreThatIsAway(t *testing.T) {
	t.Parallel()
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	late, cancel := context.WithDeadline(context.Background(), time.Unix(0, 0))
	t.Cleanup(cancel)
	client := patientClient(t, redistest.Start(t).Addr)
	for name, store := range map[string]bucket.Store{
		"memory": bucket.NewMemory(bucket.MemoryConfig{}), "redis": newRedisStore(t, client),
	} {
		buckets := []bucket.Bucket{{Limits: compile(t, bucket.Limit{Name: "year", Capacity: 100, Refill: 1, Period: time.Hour})}}
		claim := &idempotency.Claim{Key: "12345678", Attempt: idempotency.NewAttemptID()}
		result, err := store.Take(context.Background(), bucket.Take{Tenant: "acme", Buckets: buckets, Amounts: points(10)})
		require.NoError(t, err)
		for want, ctx := range map[error]context.Context{context.Canceled: canceled, context.DeadlineExceeded: late} {
			for call, do := range map[string]func() error{
				"take": func() error {
					_, err := store.Take(ctx, bucket.Take{Tenant: "acme", Buckets: buckets, Amounts: points(1)})
					return err
				},
				"take with a key": func() error {
					_, err := store.Take(ctx, bucket.Take{Tenant: "acme", Buckets: buckets, Amounts: points(1), Claim: claim})
					return err
				},
				"settle": func() error {
					_, err := store.Settle(ctx, bucket.Settlement{Receipt: result.Receipt, Actual: points(0)})
					return err
				},
				"renew": func() error { _, err := store.Renew(ctx, "acme", claim); return err },
				"peek":  func() error { _, err := store.Peek(ctx, "acme", buckets); return err },
				"grant": func() error { _, err := store.Grant(ctx, "acme", buckets, points(1)); return err },
				"reset": func() error { return store.Reset(ctx, "acme", buckets) },
			} {
				err := do()
				require.ErrorIs(t, err, want, "%s: %s", name, call)
				require.ErrorIs(t, err, bucket.ErrUnavailable, "%s: %s", name, call)
				require.NotErrorIs(t, err, bucket.ErrAmbiguous, "%s: %s", name, call)
			}
		}
		states, err := store.Peek(context.Background(), "acme", buckets)
		require.NoError(t, err)
		require.EqualValues(t, 90, states[0].Remaining, "%s: nothing was done", name)
	}
	client = patientClient(t, "127.0.0.1:1")
	_, err := newRedisStore(t, client).Peek(context.Background(), "acme",
		[]bucket.Bucket{{Limits: fourLimits(t, 1)}})
	require.ErrorIs(t, err, bucket.ErrUnavailable)
	require.NotErrorIs(t, err, context.Canceled)
}
