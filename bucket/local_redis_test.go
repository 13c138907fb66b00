package bucket_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/fleet"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

// pollEvery is how often a test looks whether a server is there.
const pollEvery = 20 * time.Millisecond

// TestTwoInstancesAdmitNoMoreThanTheBudgetWhileRedisIsDown drains a budget through a real Redis, without it, and
// with it again, and compares what was admitted with the budget by the time of Redis.
func TestTwoInstancesAdmitNoMoreThanTheBudgetWhileRedisIsDown(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	admin := patientClient(t, server.Addr)
	const capacity, perSecond = 100_000, 10
	limit := bucket.Limit{Name: "hour", Capacity: capacity, Refill: perSecond, Period: time.Second, FailMode: bucket.FailLocal}
	b := bucket.Bucket{Limits: compile(t, limit)}
	var instances []*replica
	for range 2 {
		store := newRedisStore(t, patientClient(t, server.Addr))
		local, err := bucket.NewLocal(store, fleet.Config{Instances: 2, KnownFor: time.Hour})
		require.NoError(t, err)
		instances = append(instances, &replica{t: t, store: store, local: local})
	}
	admitted := int64(0)
	take := func(r *replica, n int64) bucket.Verdict {
		verdict := r.take(n, b).Verdict
		if verdict == bucket.Admitted {
			admitted += n
		}
		return verdict
	}
	started, err := admin.Time(ctx).Result()
	require.NoError(t, err)
	for _, n := range []int64{10_000, 0} {
		for _, r := range instances {
			require.Equal(t, bucket.Admitted, take(r, n))
		}
	}

	server.Kill()
	for _, r := range instances {
		before := admitted
		for range 30 {
			take(r, 1000)
		}
		require.GreaterOrEqual(t, admitted-before, int64(27_000), "0.7 of 80 000 for two instances")
		require.Less(t, admitted-before, int64(30_000))
		require.Equal(t, 1, r.local.Owing())
	}

	require.NoError(t, server.Restart())
	for _, r := range instances {
		require.Eventually(t, func() bool {
			// A client that has found nobody tries in the background for a while.
			_, _, err := r.local.Settle(ctx, "acme")
			return err == nil
		}, patience, pollEvery)
		require.Zero(t, r.local.Owing())
	}
	require.GreaterOrEqual(t, admitted, int64(74_000))
	for take(instances[0], 1000) == bucket.Admitted {
		continue
	}
	for take(instances[1], 100) == bucket.Admitted {
		continue
	}
	var ended time.Time
	require.Eventually(t, func() bool {
		ended, err = admin.Time(ctx).Result()
		return err == nil
	}, patience, pollEvery)
	budget := capacity + perSecond*(ended.Sub(started).Milliseconds()+1000)/1000
	require.LessOrEqual(t, admitted, budget)
	require.Greater(t, admitted, int64(capacity-2*perSecond*100), "what was settled is what was taken, and no more")
}

func TestARepeatedSettlementIsAppliedOnceInRedis(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := redistest.Start(t)
	store := newRedisStore(t, patientClient(t, server.Addr))
	lossy := &losesSettlements{Redis: store}
	local, err := bucket.NewLocal(lossy, fleet.Config{Instances: 1})
	require.NoError(t, err)
	b := bucket.Bucket{Limits: compile(t, bucket.Limit{Name: "day", Capacity: 1000, Period: 24 * time.Hour, FailMode: bucket.FailLocal})}
	r := &replica{t: t, store: store, local: local}
	require.Equal(t, bucket.Admitted, r.take(100, b).Verdict)
	take := bucket.Take{Tenant: "acme", Buckets: []bucket.Bucket{b}, Amounts: points(200)}
	require.Equal(t, bucket.Admitted, local.Take(&take, false).Verdict)
	lossy.lost = 2
	for range 2 {
		_, _, err := local.Settle(ctx, "acme")
		require.ErrorIs(t, err, bucket.ErrAmbiguous)
	}
	settled, _, err := local.Settle(ctx, "acme")
	require.NoError(t, err)
	require.Empty(t, settled, "the first was applied")
	require.Zero(t, local.Owing())
	states, err := store.Peek(ctx, "acme", []bucket.Bucket{b})
	require.NoError(t, err)
	require.EqualValues(t, 700, states[0].Remaining)
}

// losesSettlements is a store whose answers to settlements get lost.
type losesSettlements struct {
	*bucket.Redis
	lost int
}

func (s *losesSettlements) Settle(ctx context.Context, settlement bucket.Settlement) (bucket.Settled, error) {
	settled, err := s.Redis.Settle(ctx, settlement)
	if s.lost > 0 {
		s.lost--
		return bucket.Settled{}, bucket.ErrAmbiguous
	}
	return settled, err
}
