package bucket_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

// A tenant lives in a store by generation 3, while a mover of generation 2, who is late, forgets what it has carried away from there.
func TestATenantThatArrivesLosesNothingToAMoverOfBefore(t *testing.T) {
	t.Parallel()
	c := newClock()
	server := redistest.Start(t)
	between := func() {}
	now := func() int64 {
		between()
		return c.unixMilli()
	}
	arrives, late := newRedisStore(t, patientClient(t, server.Addr)), newRedisStore(t, patientClient(t, server.Addr))
	require.NoError(t, arrives.SetTestClock(now))
	require.NoError(t, late.SetTestClock(c.unixMilli))
	ctx := t.Context()
	limits, err := bucket.Compile(bucket.Limit{Name: "day", Capacity: 100, Period: 24 * time.Hour})
	require.NoError(t, err)
	buckets := []bucket.Bucket{{Limits: limits}}
	belongings := bucket.BelongingsOf(buckets)
	seen := 0
	for at := 1; at <= seen+1; at++ {
		tenant := fmt.Sprint("tenant ", at)
		_, err = late.Take(ctx, bucket.Take{Tenant: tenant, Buckets: buckets, Amounts: bucket.Amounts{{Unit: bucket.Points, N: 60}}})
		require.NoError(t, err)
		carried, err := late.Leave(ctx, tenant, belongings, 2)
		require.NoError(t, err)
		calls := 0
		between = func() {
			if calls++; calls == at {
				require.NoError(t, late.Forget(ctx, tenant, carried))
			}
		}
		require.NoError(t, arrives.Arrive(ctx, tenant, []*bucket.Parcel{carried}, 3))
		between = func() {}
		seen = max(seen, calls)
		states, err := arrives.Peek(ctx, tenant, buckets)
		require.NoError(t, err)
		require.EqualValues(t, 40, states[0].Remaining, "it is forgotten before call %d", at)
	}
	require.GreaterOrEqual(t, seen, 2, "it reads and writes")
}
