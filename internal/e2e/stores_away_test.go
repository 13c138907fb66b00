package e2e_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimittest"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

func TestEachStoreIsJudgedForWhileItIsAwayByWhatItHasSaid(t *testing.T) {
	t.Parallel()
	policy, err := tiers.Compile(tiers.Policy{Default: "free", Tiers: map[string]tiers.Tier{
		"free": {FailMode: "local", Limits: map[string]*tiers.Limit{"minute": {Capacity: 100, Per: tiers.Minute}}},
		"pro":  {FailMode: "local", Store: "big", Limits: map[string]*tiers.Limit{"minute": {Capacity: 1000, Per: tiers.Minute}}},
	}, Tenants: map[string]tiers.Exception{"pro": {Tier: "pro"}}})
	require.NoError(t, err)
	big := ratelimittest.NewStore(nil)
	a := newAbsent(t, tiers.Tier{}, func(cfg *ratelimit.Config) {
		cfg.Policy, cfg.Stores = policy, map[string]bucket.Store{"big": big}
	})
	for _, tenant := range []string{"free", "pro"} {
		require.Equal(t, http.StatusOK, a.post(request{Query: `{ __typename }`, Tenant: tenant}).Status)
	}
	big.Fail(bucket.ErrUnavailable)
	require.EqualValues(t, 700-22, a.post(request{Query: half, Tenant: "pro"}).rateLimit(t)["remaining"])
	require.NotContains(t, a.post(request{Query: half}).rateLimit(t), "storeUnavailable")
	require.Equal(t, []string{"store_away [store=big result=unavailable]"}, a.events())
	big.Fail(nil)
	a.post(request{Query: half})
	require.Empty(t, big.Settlements())
	a.post(request{Query: half, Tenant: "pro"})
	require.Len(t, big.Settlements(), 1)
	require.Empty(t, a.store.Settlements())
	require.Len(t, a.events(), 1)
	require.Equal(t, map[string]float64{"big": 22}, a.sums("ratelimit.local.settled", "ratelimit.store.name"))
}
