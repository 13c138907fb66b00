package tiers_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// sharing is a policy with a tier that has an enforcement, and a limit in mode shadow.
func sharing(t *testing.T, enforcement string) *tiers.Snapshot {
	t.Helper()
	s, err := tiers.Load([]byte("version: 1\ndefault: free\ntiers:\n  free: {enforcement: "+enforcement+
		", limits: {minute: {capacity: 10, per: minute}, day: {capacity: 100, per: day, mode: shadow}}}\n"+
		"tenants: {spared: {mode: shadow}, larger: {times: 2}}\n"), 7)
	require.NoError(t, err)
	return s
}

// enforced returns whether the limit of a day is enforced for a tenant.
func enforced(t *testing.T, s *tiers.Snapshot, tenant string) bool {
	t.Helper()
	rules := s.Rules(tiers.Subject{Tenant: tenant}, tiers.Selection{})
	require.Equal(t, rules.Buckets, s.SharedRules(tiers.Subject{Tenant: tenant}).Buckets)
	modes := map[string]bucket.Mode{}
	for _, l := range rules.Buckets[0].Limits.All() {
		modes[l.Name] = l.Mode
	}
	require.Equal(t, bucket.Enforce, modes["minute"], "it was enforced before")
	return modes["day"] == bucket.Enforce
}

func TestShareOfTenants(t *testing.T) {
	t.Parallel()
	const tenants = 10_000
	had := map[string]bool{}
	for _, percent := range []int{0, 1, 10, 20, 50, 99, 100} {
		document := fmt.Sprintf("{share: %d, seed: november}", percent)
		s, again := sharing(t, document), sharing(t, document)
		has := 0
		for i := range tenants {
			tenant := fmt.Sprint("tenant-", i)
			in := enforced(t, s, tenant)
			require.Equal(t, in, enforced(t, again, tenant), "every instance says the same")
			require.False(t, had[tenant] && !in, "nobody leaves a share that grows")
			if in {
				had[tenant] = true
				has++
			}
		}
		require.InDelta(t, tenants/100*percent, has, 200)
		require.False(t, percent == 0 && has > 0)
		require.False(t, percent == 100 && has < tenants)
	}
}

func TestShareBeginsWithOthersUnderAnotherSeed(t *testing.T) {
	t.Parallel()
	one, two := sharing(t, "{share: 10, seed: november}"), sharing(t, "{share: 10, seed: december}")
	both := 0
	for i := range 10_000 {
		tenant := fmt.Sprint("tenant-", i)
		if enforced(t, one, tenant) && enforced(t, two, tenant) {
			both++
		}
	}
	require.InDelta(t, 100, both, 50, "a tenth of a tenth")
}

func TestShareSparesTenantsWithAModeOfTheirOwn(t *testing.T) {
	t.Parallel()
	s := sharing(t, "{share: 100}")
	require.True(t, enforced(t, s, "larger"), "another exception changes nothing")
	rules := s.Rules(tiers.Subject{Tenant: "spared"}, tiers.Selection{})
	require.Equal(t, bucket.Shadow, rules.Mode)
	record, err := tiers.ParseRecord([]byte(`{"mode": "warn"}`))
	require.NoError(t, err)
	rules = s.Rules(tiers.Subject{Tenant: "recorded"}, tiers.Selection{Record: record})
	require.Equal(t, bucket.Warn, rules.Mode)
}

func TestShareEnforcesShadowAndWarn(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]bucket.Mode{"off": bucket.Off, "shadow": bucket.Enforce, "warn": bucket.Enforce, "enforce": bucket.Enforce} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			s, err := tiers.Load([]byte("version: 1\ndefault: free\ntiers: {free: {mode: '"+mode+"', enforcement: {share: 100}, maxCost: 5,"+
				" limits: {minute: {capacity: 10, per: minute}}}}\n"), 1)
			require.NoError(t, err)
			subject := tiers.Subject{Tenant: "acme"}
			rules := s.Rules(subject, tiers.Selection{})
			require.Equal(t, want, rules.Mode)
			require.Equal(t, want, rules.Buckets[0].Limits.All()[0].Mode)
			require.Equal(t, want == bucket.Enforce, rules.MaxCost.Enforce == 5)
			if mode == "shadow" || mode == "warn" {
				require.Equal(t, "tiers.free.enforcement.share", rules.Provenance(subject).Mode)
			}
			rules = s.AtMost(bucket.Shadow).Rules(subject, tiers.Selection{})
			require.Equal(t, max(want, bucket.Shadow), rules.Mode, "a switch eases the share as well")
		})
	}
}

func TestShareAddsNoAllocation(t *testing.T) {
	s := sharing(t, "{share: 50}")
	subjects := [...]tiers.Subject{{Tenant: "acme"}, {Tenant: "globex"}, {Tenant: "initech"}, {Tenant: "umbrella"}}
	require.Zero(t, testing.AllocsPerRun(200, func() {
		for i := range subjects {
			_ = s.Rules(subjects[i], tiers.Selection{})
		}
	}))
}
