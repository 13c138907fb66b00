package tiers_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

func TestWhatIsHiddenIsThatOfTheTenantOrElseOfItsTier(t *testing.T) {
	t.Parallel()
	open, closed := &tiers.Hide{}, &tiers.Hide{Cost: true, Owners: true}
	policy := tiers.Policy{
		Default: "free",
		Tiers: map[string]tiers.Tier{
			"free": {Unlimited: true, Hide: closed},
			"pro":  {Unlimited: true},
			"out":  {Blocked: true, Hide: closed},
		},
		Tenants: map[string]tiers.Exception{"partner": {Hide: open}, "guest": {Hide: &tiers.Hide{Limits: true}}},
	}
	s, err := tiers.Compile(policy)
	require.NoError(t, err)
	closed.Remaining = true // what is changed after compiling changes nothing
	for name, test := range map[string]struct {
		subject tiers.Subject
		want    tiers.Hide
	}{
		"the default tier":            {tiers.Subject{Tenant: "a"}, tiers.Hide{Cost: true, Owners: true}},
		"a tier that hides nothing":   {tiers.Subject{Tenant: "a", Tier: "pro"}, tiers.Hide{}},
		"a blocked tier":              {tiers.Subject{Tenant: "a", Tier: "out"}, tiers.Hide{Cost: true, Owners: true}},
		"an exception that shows all": {tiers.Subject{Tenant: "partner"}, tiers.Hide{}},
		"an exception replaces":       {tiers.Subject{Tenant: "guest"}, tiers.Hide{Limits: true}},
	} {
		require.Equal(t, test.want, s.Rules(test.subject, tiers.Selection{}).Hide, name)
	}
}

func TestEitherHides(t *testing.T) {
	t.Parallel()
	require.Equal(t, tiers.Hide{Cost: true, Limits: true, Remaining: true, Owners: true},
		tiers.Hide{Cost: true, Owners: true}.Or(tiers.Hide{Limits: true, Remaining: true}))
	require.Equal(t, tiers.Hide{Limits: true}, tiers.Hide{}.Or(tiers.Hide{Limits: true}))
}
