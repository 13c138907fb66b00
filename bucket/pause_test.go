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

// pauseLength is how long a server stands still, and pauseSpare how long before its end the deadline of the last take has to be over: until then the
// server would run in time what it was sent, and charge it rightly.
const (
	pauseLength = 1500 * time.Millisecond
	pauseSpare  = 500 * time.Millisecond
	// mostPauses is how often a busy machine may be too late.
	mostPauses = 40
)

// pausedTakes are takes into a server that stands still.
type pausedTakes struct {
	*testing.T
	store *bucket.Redis
	take  bucket.Take
	// lost are the claims of takes that have left and of which nothing was heard. Takes without a claim are lost as well.
	lost []*idempotency.Claim
	// inTime says that they were all over in time, and that some had left. On a busy machine they may not be.
	inTime bool
}

// ask takes twice without a claim and twice with one from a server that stands still from begin on.
func (p *pausedTakes) ask(begin time.Time) {
	p.Helper()
	p.lost = nil
	ambiguous, admitted := 0, 0
	for range 2 {
		keyed := p.take
		keyed.Claim = &idempotency.Claim{Attempt: idempotency.NewAttemptID()}
		keyed.Claim.Key = idempotency.Key(fmt.Sprintf("%x", keyed.Claim.Attempt))
		for _, take := range []bucket.Take{p.take, keyed} {
			_, err := p.store.Take(p.Context(), take)
			switch {
			case err == nil:
				admitted++
			case !errors.Is(err, bucket.ErrAmbiguous):
				requireNothingHappened(p, err)
			case take.Claim != nil:
				p.lost = append(p.lost, take.Claim)
			default:
				ambiguous++
			}
		}
	}
	p.inTime = time.Since(begin) < pauseLength-pauseSpare && ambiguous > 0 && len(p.lost) > 0
	if p.inTime {
		require.Zero(p, admitted, "a server that stands still admits nothing")
	}
}

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
			year := bucket.Limit{Name: "year", Capacity: 1000, Refill: 1, Period: time.Hour}
			buckets := []bucket.Bucket{{Limits: compile(t, year)}}
			take := bucket.Take{Tenant: "acme", Buckets: buckets, Amounts: points(1)}
			// The clock of the server is known from the first call on.
			require.Eventually(t, func() bool {
				_, err := store.Take(ctx, take)
				return err == nil
			}, patience, time.Millisecond)
			patient := newRedisStore(t, client)
			paused := &pausedTakes{T: t, store: store, take: take}
			for attempts := 0; !paused.inTime; attempts++ {
				require.Less(t, attempts, mostPauses, "no take is lost")
				// Each take that is lost loses its connection, and a new one says hello to a server that does not answer.
				warm(t, client)
				before, err := patient.Peek(ctx, "acme", buckets)
				require.NoError(t, err)
				begin := time.Now()
				require.NoError(t, admin.Do(ctx, "client", "pause", pauseLength.Milliseconds(), mode).Err())
				paused.ask(begin)
				// It comes last of those that the server has postponed.
				result, err := patient.Take(ctx, take)
				require.NoError(t, err)
				require.Equal(t, bucket.Admitted, result.Verdict)
				after, err := patient.Peek(ctx, "acme", buckets)
				require.NoError(t, err)
				if paused.inTime {
					require.EqualValues(t, 1, before[0].Remaining-after[0].Remaining, "only the last one is charged")
				}
			}
			for _, claim := range paused.lost {
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
	// On a busy machine the time may be over before anything is sent.
	require.Eventually(t, func() bool {
		_, err = store.Take(ctx, take)
		return !errors.Is(err, bucket.ErrUnavailable) && !errors.Is(err, bucket.ErrBusy)
	}, patience, time.Millisecond)
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
