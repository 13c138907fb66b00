package web_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

func TestUsageIsWhatBudgetsHaveNowAndSaysThatItIsNoCount(t *testing.T) {
	t.Parallel()
	s := newScene(t, plenty).start().publish()
	policy, err := tiers.Load([]byte(document), 1)
	require.NoError(t, err)
	rules := policy.Snapshot().Rules(tiers.Subject{Tenant: "acme", User: "jo"}, tiers.Selection{})
	_, err = s.budgets.Take(t.Context(), bucket.Take{Tenant: "acme", Buckets: rules.Buckets, Amounts: bucket.Amounts{{Unit: bucket.Points, N: 40}}})
	require.NoError(t, err)
	var usage struct {
		Tenant, Grade, Tier, TierFrom, Mode string
		Revision                            int
		Blocked, Unlimited                  bool
		At                                  time.Time
		Budgets                             []struct {
			Level, Name, Limit, Unit, Period, Mode string
			Capacity, Used, Remaining, Overdraft   int64
			FullAt                                 time.Time
		}
	}
	s.read(s.want(http.StatusOK, s.ask(http.MethodGet, "/v1/orgs/acme/ratelimit/usage?user=jo", s.admin, nil, "")), &usage)
	require.Equal(t, "budget", usage.Grade)
	require.Equal(t, []any{"acme", "free", "default", "enforce", 1, false, false},
		[]any{usage.Tenant, usage.Tier, usage.TierFrom, usage.Mode, usage.Revision, usage.Blocked, usage.Unlimited})
	require.Len(t, usage.Budgets, 3, "of the tenant, of the user, and of the operation that has one")
	for i, want := range []struct {
		level, name, unit string
		capacity          int64
	}{{"tenant", "", "points", 1000}, {"user", "jo", "points", 100}, {"operation", "Mutation.createOrder", "requests", 10}} {
		b := usage.Budgets[i]
		require.Equal(t, want.level, b.Level)
		require.Equal(t, want.name, b.Name)
		require.Equal(t, want.unit, b.Unit)
		require.Equal(t, want.capacity, b.Capacity)
		require.Equal(t, b.Capacity, b.Used+b.Remaining)
		require.Equal(t, "minute", b.Period)
		require.Equal(t, want.unit == "points", b.FullAt.After(usage.At), "what is spent comes back")
	}
	require.Positive(t, usage.Budgets[0].Used)
	s.budgets.away.Store(true)
	p := s.problem(http.StatusServiceUnavailable, s.ask(http.MethodGet, "/v1/orgs/acme/ratelimit/usage", s.admin, nil, ""))
	require.Equal(t, "Redis does not answer", p.Title)
}
