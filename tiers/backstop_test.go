package tiers_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

const withBackstop = `
version: 1
default: free
mode: %MODE
backstop:
  limits: {second: {capacity: 900, per: second}}
  operations:
    Mutation.checkout: {limits: {second: {capacity: 50, per: second, unit: requests}}}
    Mutation.*: {mode: shadow, limits: {minute: {capacity: 800, per: minute}}}
tiers:
  free: {limits: {day: {capacity: 9, per: day}}}
  internal: {unlimited: true}
  tried: {mode: shadow, limits: {day: {capacity: 9, per: day}}}
tenants:
  acme: {limits: {day: {capacity: 8, per: day}}}
`

func backstopOf(t *testing.T, mode string) *tiers.Snapshot {
	t.Helper()
	p, err := tiers.Load([]byte(strings.ReplaceAll(withBackstop, "%MODE", mode)), 1)
	require.NoError(t, err)
	return p
}

func TestTheBackstopIsTheSameForEveryTenant(t *testing.T) {
	t.Parallel()
	p := backstopOf(t, "enforce")
	for _, subject := range []tiers.Subject{{Tenant: "a"}, {Tenant: "acme"}, {Tenant: "a", Tier: "internal"}, {Tenant: "a", Tier: "tried"}, {Tenant: "a", User: "jo"}} {
		for _, selected := range []tiers.Selection{{}, {Fields: []string{"Query.me"}}} {
			rules := p.Rules(subject, selected)
			require.Len(t, rules.Backstop, 1, subject)
			require.Equal(t, bucket.Owner{}, rules.Backstop[0].Owner)
			require.Equal(t, int64(900), rules.Backstop[0].Limits.All()[0].Capacity)
			require.Equal(t, bucket.Enforce, rules.Backstop[0].Limits.All()[0].Mode, "the mode of a tenant is not that of all")
		}
	}
	require.Nil(t, p.Rules(tiers.Subject{Tenant: "a", Exempt: true}, tiers.Selection{}).Backstop)
}

func TestSingleOperationsHaveABackstopToo(t *testing.T) {
	t.Parallel()
	p := backstopOf(t, "enforce")
	require.Nil(t, p.SharedRules(tiers.Subject{Tenant: "a"}), "it differs with what is asked for")
	rules := p.Rules(tiers.Subject{Tenant: "a"}, tiers.Selection{
		Fields: []string{"Mutation.checkout"}, Calls: tiers.Counted{"Mutation.checkout", "Mutation.checkout", "Mutation.checkout"},
	})
	require.Len(t, rules.Backstop, 3)
	require.Equal(t, bucket.Owner{Level: bucket.Operation, Name: "Mutation.*"}, rules.Backstop[1].Owner)
	require.Equal(t, bucket.Shadow, rules.Backstop[1].Limits.All()[0].Mode)
	require.Equal(t, bucket.Owner{Level: bucket.Operation, Name: "Mutation.checkout"}, rules.Backstop[2].Owner)
	require.Equal(t, bucket.Amounts{{Unit: bucket.Requests, N: 3}}, rules.Backstop[2].Amounts, "each call is one")
	require.Len(t, rules.Buckets, 1, "the tenant has no such rule")
	require.Len(t, p.Rules(tiers.Subject{Tenant: "a"}, tiers.Selection{Fields: []string{"Mutation.login"}}).Backstop, 2)
}

func TestWithoutOperationsTheRulesOfABackstopAreShared(t *testing.T) {
	t.Parallel()
	p, err := tiers.Load([]byte("version: 1\ndefault: free\nbackstop: {limits: {second: {capacity: 9, per: second}}}\ntiers: {free: {unlimited: true}}\n"), 1)
	require.NoError(t, err)
	shared := p.SharedRules(tiers.Subject{Tenant: "a"})
	require.NotNil(t, shared)
	require.Len(t, shared.Backstop, 1)
	require.Same(t, shared, p.SharedRules(tiers.Subject{Tenant: "b"}))
}

func TestABackstopFollowsTheModeOfThePolicyAndTheSwitch(t *testing.T) {
	t.Parallel()
	mode := func(p *tiers.Snapshot) bucket.Mode {
		return p.Rules(tiers.Subject{Tenant: "a"}, tiers.Selection{}).Backstop[0].Limits.All()[0].Mode
	}
	require.Equal(t, bucket.Shadow, mode(backstopOf(t, "shadow")))
	require.Equal(t, bucket.Enforce, mode(backstopOf(t, "enforce")))
	require.Equal(t, bucket.Shadow, mode(backstopOf(t, "enforce").AtMost(bucket.Shadow)))
	dated := backstopOf(t, "warn\nenforceFrom: 2100-01-01")
	require.Equal(t, bucket.Warn, mode(dated))
	require.Equal(t, bucket.Enforce, mode(dated.At(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC))))
}

func TestWhatABackstopCannotBeIsSaid(t *testing.T) {
	t.Parallel()
	for backstop, problem := range map[string]string{
		"{}": "an empty backstop",
		"{mode: warn, limits: {a: {capacity: 9, per: second}}}":                                                           "none is warned",
		"{failMode: closed, limits: {a: {capacity: 9, per: second}}}":                                                     "takes the API down",
		"{limits: {a: {capacity: 9, per: second, failMode: local}}}":                                                      "takes the API down",
		"{limits: {a: {capacity: 9, per: second, mode: warn}}}":                                                           "none is warned",
		"{limits: {a: {capacity: 9, per: second, soft: true}}}":                                                           "mode: shadow fits",
		"{limits: {a: {capacity: 9, per: second, unit: exports}}}":                                                        "points or requests fits",
		"{operations: {Query.me: {}}}":                                                                                    "limits fit",
		"{operations: {Query.me: {limits: {a: {capacity: 9, per: second, unit: requests, by: id}}}}}":                     "a backstop is one budget",
		"{operations: {nothing: {limits: {a: {capacity: 9, per: second}}}}}":                                              "nothing",
		"{operations: {'document:" + tiers.DocumentID("{ me { id } }") + "': {limits: {a: {capacity: 9, per: second}}}}}": "",
		"{limits: {a: {capacity: 0, per: second}}}":                                                                       "a capacity of at least 1",
	} {
		_, err := tiers.Load([]byte("version: 1\ndefault: free\ntiers: {free: {unlimited: true}}\nbackstop: "+backstop+"\n"), 1)
		require.ErrorContains(t, err, problem, backstop)
		require.ErrorContains(t, err, "backstop", backstop)
	}
}

func TestABackstopBelowTheMaximumCostIsOdd(t *testing.T) {
	t.Parallel()
	p, err := tiers.Load([]byte("version: 1\ndefault: free\nbackstop: {limits: {second: {capacity: 9, per: second}}}\n"+
		"tiers: {free: {maxCost: 10, limits: {day: {capacity: 50, per: day}}}}\n"), 1)
	require.NoError(t, err)
	require.Len(t, p.Warnings(), 1)
	require.Equal(t, "backstop.limits.second.capacity", p.Warnings()[0].Path)
}
