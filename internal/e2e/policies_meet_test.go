package e2e_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// newTwoTiers serves one customer who has a key in each of two tiers, whose limits of points differ by this window.
func newTwoTiers(t *testing.T, window string, settlement ratelimit.SettlementConfig) *fixture {
	t.Helper()
	policy, err := tiers.Parse([]byte(`
version: 1
default: small
tiers:
  small: {limits: {budget: {capacity: 600, ` + window + `}, requests: {unit: requests, capacity: 1000, per: minute}}}
  large: {limits: {budget: {capacity: 6000, ` + window + `}, requests: {unit: requests, capacity: 1000, per: minute}}}
`))
	require.NoError(t, err)
	snapshot, err := tiers.Compile(policy)
	require.NoError(t, err)
	now := time.Now()
	return newFixture(t, func(cfg *ratelimit.Config) {
		cfg.Policy, cfg.Store = snapshot, bucket.NewMemory(bucket.MemoryConfig{Clock: func() time.Time { return now }})
		cfg.Settlement = settlement
		cfg.Subject = func(_ context.Context, r *ratelimit.Request) (ratelimit.Subject, error) {
			return ratelimit.Subject{Tenant: "acme", Tier: r.Header.Get("X-Tier")}, nil
		}
	})
}

// spend sends a query under a tier until it is refused, and returns what was charged and kept.
func spend(t *testing.T, f *fixture, tier, query string) (points float64) {
	t.Helper()
	for {
		got := f.post(request{Query: query, Header: http.Header{"X-Tier": {tier}}})
		if got.Status != http.StatusOK {
			require.Equal(t, http.StatusTooManyRequests, got.Status)
			return points
		}
		signal := got.rateLimit(t)
		charged, _ := signal["charged"].(float64)
		refunded, _ := signal["refunded"].(float64)
		points += charged - refunded
	}
}

var budgetWindows = []string{"per: minute", "per: minute, window: fixed", "per: minute, window: sliding", "per: month, window: calendar"}

func TestTwoKeysOfOneCustomerInTwoTiersShareWhatTheLargerHas(t *testing.T) {
	t.Parallel()
	for _, window := range budgetWindows {
		t.Run(window, func(t *testing.T) {
			t.Parallel()
			f := newTwoTiers(t, window, ratelimit.SettlementConfig{})
			points := 0.0
			for range 5 {
				points += spend(t, f, "large", `{ users(first: 1400) { name } }`)
				free := f.post(request{Query: `{ __typename }`, Header: http.Header{"X-Tier": {"small"}}})
				require.Equal(t, http.StatusOK, free.Status, "what costs nothing passes")
			}
			require.InDelta(t, 5608, points, 0, "four of 1402 points fit 6000")
		})
	}
}

func TestARefundUnderASmallerTierGivesTheLargerOneItsPointsAndNoMore(t *testing.T) {
	t.Parallel()
	for _, window := range budgetWindows {
		t.Run(window, func(t *testing.T) {
			t.Parallel()
			f := newTwoTiers(t, window, ratelimit.SettlementConfig{Refund: true})
			running, gate, done := make(chan struct{}, 3), make(chan struct{}), make(chan reply, 3)
			f.resolver.OnExport = func(context.Context, int) error {
				running <- struct{}{}
				<-gate
				return nil
			}
			// Three operations of the small key are under way, each estimated at 118 points, of which it comes to 108.
			for range cap(done) {
				go func() {
					done <- f.post(request{Query: `{ users(first: 110) { name } export(rows: 1) }`, Header: http.Header{"X-Tier": {"small"}}})
				}()
				<-running
			}
			points := spend(t, f, "large", `{ users(first: 50) { name } }`)
			for range cap(done) {
				gate <- struct{}{}
				require.Equal(t, http.StatusOK, (<-done).Status)
				f.settled()
				points += spend(t, f, "large", `{ users(first: 50) { name } }`)
			}
			// What the small key has spent is missing.
			require.LessOrEqual(t, points, 6000.0-3*108)
			require.GreaterOrEqual(t, points, 6000.0-3*108-52)
		})
	}
}
