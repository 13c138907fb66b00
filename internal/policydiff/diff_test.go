package policydiff_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/internal/policydiff"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

func parse(t *testing.T, document string) *policydiff.Policy {
	t.Helper()
	snapshot, err := tiers.Load([]byte(document), 1)
	require.NoError(t, err)
	written, err := tiers.Parse([]byte(document))
	require.NoError(t, err)
	return &policydiff.Policy{Snapshot: snapshot, Written: &written}
}

const policy = `version: 1
default: free
parameters: {lang: {header: Lang}}
custom:
  lang:en: {limits: {minute: {capacity: 10, per: minute}}}
  lang:de: {limits: {minute: {capacity: 10, per: minute}}}
tiers:
  free:
    limits: {minute: {capacity: 100, per: minute, window: fixed}}
    users: {limits: {minute: {capacity: 10, per: minute}}, operations: {Mutation.login: {limits: {hour: {unit: requests, capacity: 9, per: hour}}}}}
  pro: {limits: {minute: {capacity: 1000, per: minute}}}
tenants:
  follows: {blocked: false, limits: {day: {capacity: 7, per: day}}}
  moves: {tier: pro}
  named: {users: {byName: {zoe: {limits: {minute: {capacity: 5, per: minute}}}}}}
`

const next = `version: 1
default: free
parameters: {lang: {header: Lang}}
custom:
  lang:en: {limits: {minute: {capacity: 20, refill: 5, per: minute, mode: warn}}}
  lang:de: {mode: warn, limits: {minute: {capacity: 10, per: minute}}}
tiers:
  free:
    maxCost: 50
    limits: {minute: {capacity: 100, per: minute, window: fixed, mode: shadow, soft: true, failMode: closed}}
    users: {limits: {minute: {capacity: 10, per: minute}}, operations: {Mutation.login: {limits: {hour: {unit: requests, capacity: 9, per: hour}}}}}
  pro: {limits: {minute: {capacity: 1000, per: minute}}}
tenants:
  follows: {blocked: false, limits: {day: {capacity: 7, per: day}}}
  moves: {tier: free}
  named: {users: {byName: {zoe: {limits: {minute: {capacity: 6, per: minute}}}}}, custom: {lang:fr: {limits: {minute: {capacity: 1, per: minute}}}}}
`

func TestWhatDiffersIsSaidOnceForWhomItIsAbout(t *testing.T) {
	t.Parallel()
	changes, following := policydiff.Compare(parse(t, policy), parse(t, next))
	const was, is = "100 points per minute, fixed window", "100 points per minute, fixed window, shadow, soft, fails closed"
	require.Equal(t, []policydiff.Change{
		{What: "custom limits of lang:de", Old: "minute: 10 points per minute, as it was", New: "minute: 10 points per minute, with other settings"},
		{What: "custom limits of lang:en", Old: "minute: 10 points per minute", New: "minute: 20 points, 5 per minute, warn"},
		{Tier: "free", What: "maximum cost (enforce)", New: "50 points"},
		{Tier: "free", What: "tenant limit minute", Old: was, New: is},
		{Tenant: "moves", What: "tier", Old: "pro", New: "free"},
		{Tenant: "moves", What: "each user limit minute", New: "10 points per minute"},
		{Tenant: "moves", What: "each user's Mutation.login limit hour", New: "9 requests per hour"},
		{Tenant: "moves", What: "maximum cost (enforce)", New: "50 points"},
		{Tenant: "moves", What: "tenant limit minute", Old: "1000 points per minute", New: is},
		{Tenant: "named", What: "maximum cost (enforce)", New: "50 points"},
		{Tenant: "named", What: "tenant limit minute", Old: was, New: is},
		{Tenant: "named", What: "user zoe limit minute", Old: "5 points per minute", New: "6 points per minute"},
		{Tenant: "named", What: "custom limits of lang:fr", New: "minute: 1 points per minute"},
	}, changes)
	require.Equal(t, 1, following)
	changes, following = policydiff.Compare(parse(t, policy), parse(t, policy+"# a comment\n"))
	require.Empty(t, changes)
	require.Zero(t, following)
	changes, _ = policydiff.Compare(
		parse(t, "{version: 1, default: a, tiers: {a: {unlimited: true}, b: {blocked: true}}}"),
		parse(t, "{version: 1, default: b, tiers: {b: {blocked: true}}}"))
	require.Equal(t, []policydiff.Change{
		{What: "default tier", Old: "a", New: "b"}, {Tier: "a", What: "unlimited", Old: "unlimited"},
	}, changes)
	changes, _ = policydiff.Compare(
		parse(t, "{version: 1, default: a, tiers: {a: {unlimited: true, usage: fields}}, tenants: {acme: {usage: totals}}}"),
		parse(t, "{version: 1, default: a, tiers: {a: {unlimited: true, usage: totals}}, tenants: {acme: {usage: none}}}"))
	require.Equal(t, []policydiff.Change{
		{Tier: "a", What: "usage", Old: "fields", New: "totals"}, {Tenant: "acme", What: "usage", Old: "totals"},
	}, changes)
}

func TestHowATierIsShedDiffersInWords(t *testing.T) {
	t.Parallel()
	const usual = "{version: 1, default: free, tiers: {free: {maxCost: 5}}}"
	const spared = "{version: 1, default: free, tiers: {free: {maxCost: 5, throttle: {order: 2}}}}"
	changes, _ := policydiff.Compare(parse(t, usual), parse(t, spared))
	require.Len(t, changes, 1)
	require.Equal(t, "throttle", changes[0].What)
	require.Empty(t, changes[0].Old)
	require.Equal(t, "a share is shed, place 2, at least 25 % stays", changes[0].New)
}

func TestShareOfATierDiffersInWords(t *testing.T) {
	t.Parallel()
	const before = "{version: 1, default: free, tiers: {free: {mode: shadow, maxCost: 5, enforcement: {share: 10, seed: november}}}}"
	const after = "{version: 1, default: free, tiers: {free: {mode: shadow, maxCost: 5, enforcement: {share: 20, seed: november}}}}"
	changes, _ := policydiff.Compare(parse(t, before), parse(t, after))
	require.Equal(t, []policydiff.Change{{
		Tier: "free", What: "enforcement", Old: `for 10 % of the tenants, seed "november"`, New: `for 20 % of the tenants, seed "november"`,
	}}, changes)
}

func TestWhatAllTenantsHaveTogetherDiffersInWords(t *testing.T) {
	t.Parallel()
	const before = "{version: 1, default: free, tiers: {free: {maxCost: 5}}, tenants: {acme: {maxCost: 6}}, backstop: {limits: {second: {capacity: 9, per: second}}}}"
	const after = "{version: 1, default: free, tiers: {free: {maxCost: 5}}, tenants: {acme: {maxCost: 6}}, backstop: {mode: shadow, limits: {second: {capacity: 8, per: second}}, " +
		"operations: {Mutation.*: {limits: {hour: {capacity: 7, per: hour, failMode: open}}}}}}"
	changes, _ := policydiff.Compare(parse(t, before), parse(t, after))
	require.Equal(t, []policydiff.Change{
		{What: "backstop limit second", Old: "9 points per second", New: "8 points per second, shadow"},
		{What: "backstop of Mutation.* limit hour", New: "7 points per hour, shadow, fails open"},
	}, changes)
}
