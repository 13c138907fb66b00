package tiers_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

var perMinute = map[string]*tiers.Limit{"minute": {Capacity: 10, Per: tiers.Period(time.Minute)}}

func TestATenantHasTheStoreOfItsExceptionOrElseOfItsTier(t *testing.T) {
	t.Parallel()
	snapshot, err := tiers.Compile(tiers.Policy{
		Default: "free",
		Tiers: map[string]tiers.Tier{
			"free": {Limits: perMinute}, "pro": {Limits: perMinute, Store: "pro"}, "banned": {Blocked: true},
		},
		Tenants: map[string]tiers.Exception{
			"acme": {Tier: "pro"}, "bank": {Tier: "pro", Store: "bank"}, "lone": {Store: "eu"},
		},
	})
	require.NoError(t, err)
	for tenant, want := range map[string]string{"": "", "acme": "pro", "bank": "bank", "lone": "eu"} {
		require.Equal(t, want, snapshot.Rules(tiers.Subject{Tenant: tenant}, tiers.Selection{}).Store, tenant)
	}
	require.Equal(t, "pro", snapshot.Rules(tiers.Subject{Tenant: "other", Tier: "pro"}, tiers.Selection{}).Store)
	require.Equal(t, "bank", snapshot.Rules(tiers.Subject{Tenant: "bank", Exempt: true}, tiers.Selection{}).Store, "its claims are kept there")
	require.Equal(t, []string{"bank", "eu", "pro"}, snapshot.Stores())
	require.Equal(t, []string{"bank", "eu", "pro"}, snapshot.AtMost(bucket.Shadow).Stores())
}
