package tiers_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

const linedDocument = `version: 1
default: free
tiers:
  free:
    maxCost: 500
    limits:
      minute: {capacity: 100, per: 1m}
      day: {capacity: 1000, per: 24h}
    operations:
      Mutation.a: {limits: {minute: {capacity: 3, per: 1m, unit: requests}}}
tenants:
  acme:
    times: 2
    limits:
      "minute": {capacity: 40, per: 1m}
  "a b": {blocked: true}
`

func TestAProvenanceHasTheLineOfThePlaceThatHolds(t *testing.T) {
	t.Parallel()
	policy, err := tiers.Load([]byte(linedDocument), 3)
	require.NoError(t, err)
	line := func(tenant, limit string, owner bucket.Owner) int {
		subject := tiers.Subject{Tenant: tenant}
		rules := policy.Rules(subject, tiers.Selection{Fields: []string{"Mutation.a"}})
		require.Equal(t, uint64(3), rules.Generation())
		p, _ := rules.LimitProvenance(subject, owner, limit)
		return p.Line
	}
	require.Equal(t, 7, line("globex", "minute", bucket.Owner{}))
	require.Equal(t, 15, line("acme", "minute", bucket.Owner{}))
	require.Equal(t, 13, line("acme", "day", bucket.Owner{}), "the factor")
	require.Equal(t, 10, line("globex", "minute", bucket.Owner{Level: bucket.Operation, Name: "Mutation.a"}))
	require.Zero(t, line("globex", "year", bucket.Owner{}))

	blocked := tiers.Subject{Tenant: "a b"}
	rules := policy.Rules(blocked, tiers.Selection{})
	require.Equal(t, 16, rules.Provenance(blocked).Line)
	globex := tiers.Subject{Tenant: "globex"}
	rules = policy.Rules(globex, tiers.Selection{})
	p, found := rules.MaxCostProvenance(globex, tiers.Selection{}, 500, bucket.Enforce)
	require.True(t, found)
	require.Equal(t, 5, p.Line)
	eased := policy.AtMost(bucket.Shadow).Rules(globex, tiers.Selection{})
	p, _ = eased.LimitProvenance(globex, bucket.Owner{}, "minute")
	require.Equal(t, 7, p.Line, "a switch changes no place")
	require.Zero(t, (&tiers.Rules{}).Generation())
}

func TestWhatStandsInNoDocumentHasNoLine(t *testing.T) {
	t.Parallel()
	policy, err := tiers.Parse([]byte("version: 1\ndefault: free\ntiers: {free: {limits: {minute: {capacity: 1, per: 1m}}}}\n"))
	require.NoError(t, err)
	compiled, err := tiers.Compile(policy)
	require.NoError(t, err)
	subject := tiers.Subject{Tenant: "acme"}
	rules := compiled.Rules(subject, tiers.Selection{})
	p, found := rules.LimitProvenance(subject, bucket.Owner{}, "minute")
	require.True(t, found)
	require.Zero(t, p.Line)
}
