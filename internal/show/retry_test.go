package show_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
	"github.com/gqlgen-ratelimit/ratelimit/internal/show"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

const (
	wait    = time.Minute
	someEnd = 1_800_000_000_000
)

func later(tenant, user string, end int64, length time.Duration) time.Duration {
	d := &decision.Decision{Subject: tiers.Subject{Tenant: tenant}}
	return show.RetryAfter(d, &decision.Refusal{
		Owner: bucket.Owner{Level: bucket.User, Name: user}, WindowEnd: end, RetryAfter: wait,
		Limit: &bucket.Limit{Name: "day", Unit: bucket.Points, Window: bucket.Window{Kind: bucket.FixedWindow}, Period: length},
	}) - wait
}

func TestAClientIsToldTheEndOfAWindowUpwardOnlyAndAlwaysTheSame(t *testing.T) {
	t.Parallel()
	for i := range 1000 {
		tenant := fmt.Sprint("tenant-", i)
		spread := later(tenant, "ann", someEnd, 10*time.Minute)
		require.GreaterOrEqual(t, spread, time.Duration(0))
		require.Less(t, spread, 30*time.Second, "a twentieth of the window")
		require.Equal(t, spread, later(tenant, "ann", someEnd, 10*time.Minute))
		require.Less(t, later(tenant, "ann", someEnd, 24*time.Hour), time.Minute)
	}
}

func TestTenantsWhoseWindowsEndTogetherAreSpreadEvenly(t *testing.T) {
	t.Parallel()
	const tenants, slots = 10_000, 20
	var counts [slots]int
	for i := range tenants {
		counts[later(fmt.Sprint("tenant-", i), "", someEnd, slots*slots*time.Second)/time.Second]++
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
			for _, end := range []int64{someEnd, someEnd + 86_400_000} {
				spreads[later(tenant, user, end, time.Hour)] = true
			}
		}
	}
	require.Len(t, spreads, 18)
}

func TestWhatComesBackContinuouslyAndWhatNeverDoesIsNotSpread(t *testing.T) {
	t.Parallel()
	require.Zero(t, later("a", "", 0, time.Hour))
	require.Zero(t, later("a", "", someEnd, time.Nanosecond))
	limit := &bucket.Limit{Name: "day", Unit: bucket.Points, Window: bucket.Window{Kind: bucket.FixedWindow}, Period: time.Hour}
	require.Zero(t, show.RetryAfter(&decision.Decision{}, &decision.Refusal{Limit: limit, WindowEnd: someEnd}))
	require.Equal(t, wait, show.RetryAfter(&decision.Decision{}, &decision.Refusal{WindowEnd: someEnd, RetryAfter: wait}))
}
