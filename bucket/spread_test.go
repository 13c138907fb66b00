package bucket_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

func spreadOf(tenant, user string, end int64, most time.Duration) time.Duration {
	return bucket.Spread(tenant, &bucket.LimitState{
		Owner: bucket.Owner{Level: bucket.User, Name: user}, WindowEnd: end,
		Limit: &bucket.Limit{Name: "day", Unit: bucket.Points},
	}, most)
}

func TestTheEndOfAWindowIsToldUpwardOnlyAndAlwaysTheSame(t *testing.T) {
	t.Parallel()
	for i := range 1000 {
		tenant := fmt.Sprint("tenant-", i)
		spread := spreadOf(tenant, "ann", 1_800_000_000_000, 30*time.Second)
		require.GreaterOrEqual(t, spread, time.Duration(0))
		require.Less(t, spread, 30*time.Second)
		require.Equal(t, spread, spreadOf(tenant, "ann", 1_800_000_000_000, 30*time.Second))
	}
}

func TestTenantsWhoseWindowsEndTogetherAreSpreadEvenly(t *testing.T) {
	t.Parallel()
	const tenants, slots = 10_000, 20
	var counts [slots]int
	for i := range tenants {
		counts[spreadOf(fmt.Sprint("tenant-", i), "", 1_800_000_000_000, slots*time.Second)/time.Second]++
	}
	for slot, n := range counts {
		// Ten standard deviations of an even spread.
		require.InDelta(t, tenants/slots, n, 220, "second %d", slot)
	}
}

func TestTheSpreadDiffersByTenantOwnerAndWindow(t *testing.T) {
	t.Parallel()
	spreads := map[time.Duration]bool{}
	for _, tenant := range []string{"a", "b", "ab"} {
		for _, user := range []string{"", "b", "ba"} {
			for _, end := range []int64{1_800_000_000_000, 1_800_086_400_000} {
				spreads[spreadOf(tenant, user, end, time.Hour)] = true
			}
		}
	}
	require.Len(t, spreads, 18)
}

func TestWhatComesBackContinuouslyIsNotSpread(t *testing.T) {
	t.Parallel()
	require.Zero(t, spreadOf("a", "", 0, time.Hour))
	require.Zero(t, spreadOf("a", "", 1_800_000_000_000, 0))
	require.Zero(t, spreadOf("a", "", 1_800_000_000_000, -time.Second))
	require.Zero(t, bucket.Spread("a", &bucket.LimitState{WindowEnd: 1}, time.Hour))
}
