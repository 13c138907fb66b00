package bucket_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

func TestWhatAPausedServerRunsAfterItsCallersHaveGoneChargesNothing(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"all", "write"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			server := redistest.Start(t)
			client, admin := patientClient(t, server.Addr), patientClient(t, server.Addr)
			store, err := bucket.NewRedis(bucket.RedisConfig{Client: client, Timeout: 50 * time.Millisecond, Patience: time.Millisecond})
			require.NoError(t, err)
			year := bucket.Limit{Name: "year", Capacity: 100, Refill: 1, Period: time.Hour}
			buckets := []bucket.Bucket{{Limits: compile(t, year)}}
			take := bucket.Take{Tenant: "acme", Buckets: buckets, Amounts: points(1)}
			// The clock of the server is known from the first call on.
			require.Eventually(t, func() bool {
				_, err := store.Take(ctx, take)
				return err == nil
			}, patience, time.Millisecond)
			patient := newRedisStore(t, client)
			before, err := patient.Peek(ctx, "acme", buckets)
			require.NoError(t, err)

			require.NoError(t, admin.Do(ctx, "client", "pause", "400", mode).Err())
			ambiguous, admitted := 0, 0
			var lost []*idempotency.Claim
			for admitted == 0 {
				keyed := take
				keyed.Claim = &idempotency.Claim{Attempt: idempotency.NewAttemptID()}
				keyed.Claim.Key = idempotency.Key(fmt.Sprintf("%x", keyed.Claim.Attempt))
				for _, take := range []bucket.Take{take, keyed} {
					_, err := store.Take(ctx, take)
					switch {
					case err == nil:
						admitted++
					case errors.Is(err, bucket.ErrAmbiguous):
						ambiguous++
						if take.Claim != nil {
							lost = append(lost, take.Claim)
						}
					default:
						requireNothingHappened(t, err)
					}
				}
			}
			require.Positive(t, ambiguous, "what was sent may be applied")

			after, err := patient.Peek(ctx, "acme", buckets)
			require.NoError(t, err)
			require.EqualValues(t, admitted, before[0].Remaining-after[0].Remaining)
			for _, claim := range lost {
				exists, err := client.Exists(ctx, store.RecordKey("acme", claim)).Result()
				require.NoError(t, err)
				require.Zero(t, exists)
			}
		})
	}
}

func TestWhatACutNetworkDeliversAfterItsCallersHaveGoneChargesNothing(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server.Addr)
	store, err := bucket.NewRedis(bucket.RedisConfig{Client: patientClient(t, proxy.Addr), Timeout: 100 * time.Millisecond, Patience: time.Millisecond})
	require.NoError(t, err)
	year := bucket.Limit{Name: "year", Capacity: 100, Refill: 1, Period: time.Hour}
	buckets := []bucket.Bucket{{Limits: compile(t, year)}}
	take := bucket.Take{Tenant: "acme", Buckets: buckets, Amounts: points(1)}
	// The connection is there, and the clock of the server is known.
	require.Eventually(t, func() bool {
		_, err := store.Take(ctx, take)
		return err == nil
	}, patience, time.Millisecond)
	admin := patientClient(t, server.Addr)
	patient := newRedisStore(t, admin)
	before, err := patient.Peek(ctx, "acme", buckets)
	require.NoError(t, err)
	calls := scriptCalls(t, admin)

	proxy.Cut()
	_, err = store.Take(ctx, take)
	require.ErrorIs(t, err, bucket.ErrAmbiguous)
	require.Equal(t, calls, scriptCalls(t, admin))
	// The clock of the server is known to within the time of a call: what is late by less may still be in time.
	gone, err := admin.Time(ctx).Result()
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		now, err := admin.Time(ctx).Result()
		return err == nil && now.Sub(gone) > 200*time.Millisecond
	}, patience, time.Millisecond)
	proxy.Heal()
	require.Eventually(t, func() bool { return scriptCalls(t, admin) == calls+1 }, patience, time.Millisecond, "it arrives")

	after, err := patient.Peek(ctx, "acme", buckets)
	require.NoError(t, err)
	require.Equal(t, before[0].Remaining, after[0].Remaining)
}

// requireNothingHappened requires the error of a call that the store surely did not see, whoever it is that was too slow: on
// a busy machine that is this process.
func requireNothingHappened(t testing.TB, err error) {
	t.Helper()
	require.NotEqual(t, errors.Is(err, bucket.ErrUnavailable), errors.Is(err, bucket.ErrBusy), "%v", err)
	require.NotErrorIs(t, err, bucket.ErrAmbiguous)
}
