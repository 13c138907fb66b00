package bucket_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

// load takes one point at a time, each under a key of its own, so that the store can be asked afterwards
// which of the takes it knows.
type load struct {
	store   *bucket.Redis
	tenant  string
	buckets []bucket.Bucket

	mu                            sync.Mutex
	acked, ambiguous, unavailable []*idempotency.Claim
	refused                       int
}

// loadCapacity is more than any load takes. Nothing comes back while it runs.
const loadCapacity = 80_000

func newLoad(t *testing.T, client redis.UniversalClient) *load {
	t.Helper()
	// Long enough for a busy machine. What takes longer is counted as it should be.
	store, err := bucket.NewRedis(bucket.RedisConfig{Client: client, Timeout: 200 * time.Millisecond})
	require.NoError(t, err)
	year := bucket.Limit{Name: "year", Capacity: loadCapacity, Refill: 1, Period: time.Hour}
	return &load{store: store, tenant: t.Name(), buckets: []bucket.Bucket{{Limits: compile(t, year)}}}
}

// run takes until the test ends the load, with a pause after each, and then returns.
func (l *load) run(t *testing.T) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			ticks := time.NewTicker(time.Millisecond)
			defer ticks.Stop()
			for {
				l.take()
				select {
				case <-ticks.C:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	end = sync.OnceFunc(func() { cancel(); callers.Wait() })
	t.Cleanup(end)
	return end
}

func (l *load) take() {
	claim := &idempotency.Claim{Subject: "ann", Attempt: idempotency.NewAttemptID()}
	claim.Key = idempotency.Key(fmt.Sprintf("%x", claim.Attempt))
	result, err := l.store.Take(context.Background(), bucket.Take{
		Tenant: l.tenant, Buckets: l.buckets, Amounts: points(1), Claim: claim,
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case errors.Is(err, bucket.ErrAmbiguous):
		l.ambiguous = append(l.ambiguous, claim)
	case err != nil:
		l.unavailable = append(l.unavailable, claim)
	case result.Verdict == bucket.Admitted:
		l.acked = append(l.acked, claim)
	default:
		l.refused++
	}
}

// waitFor waits until so many more takes have been answered.
func (l *load) waitFor(t *testing.T, more int) {
	t.Helper()
	count := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.acked)
	}
	want := count() + more
	require.Eventually(t, func() bool { return count() >= want }, never, time.Millisecond)
}

// audit compares what the callers were told with what the store knows now, and returns how many takes
// that were answered it has lost.
func (l *load) audit(t *testing.T, client redis.UniversalClient) (lost int) {
	t.Helper()
	ctx := context.Background()
	known := func(claims []*idempotency.Claim) int {
		n := 0
		for _, claim := range claims {
			found, err := client.Exists(ctx, l.store.RecordKey(l.tenant, claim)).Result()
			require.NoError(t, err)
			n += int(found)
		}
		return n
	}
	patient := newRedisStore(t, client)
	states, err := patient.Peek(ctx, l.tenant, l.buckets)
	require.NoError(t, err)
	spent := loadCapacity - int(states[0].Remaining)
	acked, ambiguous, unavailable := known(l.acked), known(l.ambiguous), known(l.unavailable)
	t.Logf("%d answered, of which the store knows %d; %d without an answer, of which it knows %d; %d unavailable",
		len(l.acked), acked, len(l.ambiguous), ambiguous, len(l.unavailable))
	require.Zero(t, l.refused)
	require.Zero(t, unavailable, "unavailable says that nothing was done")
	require.Equal(t, acked+ambiguous, spent, "each take is charged as often as its record says: once or not at all")
	return len(l.acked) - acked
}

func TestAFailoverDuringLoadLosesTheLastTakesWholeAndChargesNoneTwice(t *testing.T) {
	t.Parallel()
	const downAfter = 500 * time.Millisecond
	for name, start := range map[string]func(*testing.T, string) (redis.UniversalClient, *redistest.Server){
		"behind Sentinels": func(t *testing.T, _ string) (redis.UniversalClient, *redistest.Server) {
			t.Helper()
			group := redistest.StartSentinel(t, downAfter)
			return redis.NewFailoverClient(patientFailoverOptions(group)), group.Master
		},
		"in a cluster": func(t *testing.T, key string) (redis.UniversalClient, *redistest.Server) {
			t.Helper()
			cluster := redistest.StartReplicatedCluster(t, downAfter)
			return patientClusterClient(t, cluster.Addrs), cluster.Servers[redistest.Shard(cluster.Slot(t, key))]
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key := (&bucket.Redis{}).BucketKey(t.Name(), bucket.Owner{})
			client, master := start(t, key)
			t.Cleanup(func() { _ = client.Close() })
			l := newLoad(t, client)
			end := l.run(t)
			l.waitFor(t, 100)
			master.Kill()
			l.waitFor(t, 100)
			end()
			lost := l.audit(t, client)
			// A replica that was in step lacks what was written in the instant of the fault.
			require.Less(t, lost, len(l.acked)-100)
		})
	}
}

func TestASlotThatMovesDuringLoadLosesNoTakeAndChargesNoneTwice(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	client := patientClusterClient(t, cluster.Addrs)
	l := newLoad(t, client)
	end := l.run(t)
	slot := cluster.Slot(t, l.store.BucketKey(l.tenant, bucket.Owner{}))
	at := redistest.Shard(slot)
	for range 4 {
		l.waitFor(t, 50)
		next := (at + 1) % len(cluster.Servers)
		require.NoError(t, cluster.Move(context.Background(), slot, cluster.Servers[at], cluster.Servers[next]))
		at = next
	}
	l.waitFor(t, 50)
	end()
	require.Zero(t, l.audit(t, client))
}
