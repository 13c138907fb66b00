package tiers_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// told are the limits that tenants have, in words.
func told(s *tiers.Snapshot) (all []string) {
	for of := range s.TenantLimits() {
		text := fmt.Sprintf("%s %q %v %d", of.Place, of.Store, of.Lease, of.Limits.All()[0].Capacity)
		if of.Least != nil {
			text += fmt.Sprintf(", at least %d", of.Least.All()[0].Capacity)
		}
		all = append(all, text)
	}
	return all
}

func TestTenantLimitsAreThoseOfTiersOfExceptionsAndOfTheBackstop(t *testing.T) {
	t.Parallel()
	s, err := tiers.Load([]byte(`version: 1
default: free
backstop: {limits: {second: {capacity: 900, per: second}}}
tiers:
  free: {limits: {minute: {capacity: 100, per: minute}}, users: {limits: {minute: {capacity: 10, per: minute}}}}
  blocked: {blocked: true}
  pro: {store: eu, lease: auto, throttle: {acts: limits, floor: 25}, limits: {minute: {capacity: 400, per: minute}}}
  whole: {unlimited: true}
tenants:
  acme: {limits: {minute: {capacity: 7, per: minute}}}
  moved: {tier: pro}
`), 1)
	require.NoError(t, err)
	want := []string{
		`backstop "" always 900`,
		`tiers.free "" off 100`,
		`tiers.pro "eu" auto 400, at least 100`,
		`tenants in the tier free "" off 7`,
		`tenants in the tier pro "eu" auto 7, at least 1`,
	}
	require.Equal(t, want, told(s))
	eased := tiers.NewModeSwitch(s)
	require.NoError(t, eased.Ease([]tiers.Easing{{Tenant: "acme", AtMost: bucket.Shadow, Until: time.Now().Add(time.Hour)}}))
	require.Equal(t, want, told(eased.Snapshot()), "whatever their mode is")
	for of := range s.TenantLimits() {
		require.Equal(t, "backstop", of.Place)
		break
	}
}

func TestTenantLimitsAreThoseOfBothPoliciesOfADocument(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{`tiers.free "" off 100`, `tiers.free "" off 50`, `tenants in the tier free "" off 100`},
		told(stagedAt(t, tiers.Stage{ID: "r1", Seed: "seed", Percent: 1})))
}
