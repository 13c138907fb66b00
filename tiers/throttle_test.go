package tiers_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

const throttled = `
version: 1
default: free
tiers:
  free: {limits: {day: {capacity: 9, per: day}}}
  pro: {limits: {day: {capacity: 9, per: day}}, throttle: {order: 2}}
  enterprise: {limits: {day: {capacity: 9, per: day}}, throttle: {order: 3, acts: limits}}
  internal: {unlimited: true, throttle: {acts: none}}
tenants:
  careful: {throttle: {order: 8, floor: 100}}
  plain: {tier: pro, throttle: {}}
`

func TestATierSaysInWhichOrderAndHowItIsShed(t *testing.T) {
	t.Parallel()
	p, err := tiers.Load([]byte(throttled), 1)
	require.NoError(t, err)
	for name, want := range map[tiers.Subject]tiers.Shedding{
		{Tenant: "a"}:                     {Order: 1, Floor: 10},
		{Tenant: "a", Tier: "pro"}:        {Order: 2, Floor: 25},
		{Tenant: "a", Tier: "enterprise"}: {Acts: tiers.ThrottleLimits, Order: 3, Floor: 50},
		{Tenant: "a", Tier: "internal"}:   {Acts: tiers.ThrottleNone, Order: 1, Floor: 10},
		{Tenant: "careful"}:               {Order: 8, Floor: 100},
		{Tenant: "plain"}:                 {Order: 1, Floor: 10},
	} {
		require.Equal(t, want, p.Snapshot().Rules(name, tiers.Selection{}).Throttle, name)
	}
	record, err := tiers.ParseRecord([]byte(`{"throttle": {"order": 4, "acts": "share", "floor": 60}}`))
	require.NoError(t, err)
	rules := p.Snapshot().Rules(tiers.Subject{Tenant: "b"}, tiers.Selection{Record: record})
	require.Equal(t, tiers.Shedding{Order: 4, Floor: 60}, rules.Throttle)
	require.Equal(t, "limits", tiers.ThrottleLimits.String())
	require.Equal(t, "a share is shed, place 4, at least 60 % stays", rules.Throttle.String())
	require.False(t, rules.Throttle.Usual())
	require.True(t, tiers.Shedding{Order: 1, Floor: 10}.Usual())
}

func TestAThrottleThatIsWrongIsRefusedWithItsLine(t *testing.T) {
	t.Parallel()
	_, err := tiers.Load([]byte(`version: 1
default: free
tiers:
  free:
    maxCost: 5
    throttle: {acts: shed, order: 9, floor: 101, florr: 1}
tenants:
  a: {throttle: {order: -1}}
`), 1)
	for _, text := range []string{
		`6`, `acts "shed" is unknown; share, limits or none fits`, "order 9; 1 (shed first) to 8 fit",
		"floor 101; 1 to 100 per cent fit", "unknown key; acts, order, floor fit", "order -1;",
	} {
		require.ErrorContains(t, err, text)
	}
}

func TestOnlyLimitsOfAMinuteThatRefuseShrink(t *testing.T) {
	t.Parallel()
	p, err := tiers.Load([]byte(`version: 1
default: free
tiers:
  free:
    limits:
      second: {capacity: 100, per: second, window: fixed}
      minute: {capacity: 640, refill: 64, per: minute}
      warned: {capacity: 640, per: minute, mode: warn, enforceFrom: "2100-01-01", unit: exports}
      soft: {capacity: 640, per: minute, soft: true, unit: requests}
      hour: {capacity: 640, per: hour}
    users: {limits: {minute: {capacity: 1, per: minute}}}
`), 1)
	require.NoError(t, err)
	rules := p.Snapshot().Rules(tiers.Subject{Tenant: "a", User: "u"}, tiers.Selection{})
	capacities := func(r *tiers.Rules) map[string]int64 {
		all := map[string]int64{}
		for _, b := range r.Buckets {
			for _, l := range b.Limits.All() {
				all[b.Owner.Level.String()+" "+l.Name] = l.Capacity
			}
		}
		return all
	}
	before := capacities(&rules)
	half := rules.Shrunk(0.5)
	require.Equal(t, before, capacities(&rules), "the rules are shared, and stay")
	want := capacities(&rules)
	want["tenant second"], want["tenant minute"] = 50, 320
	require.Equal(t, want, capacities(&half))
	for _, l := range half.Buckets[0].Limits.All() {
		if l.Name == "minute" {
			require.EqualValues(t, 32, l.Refill)
		}
	}
	again := rules.Shrunk(0.503)
	require.Same(t, half.Buckets[0].Limits, again.Buckets[0].Limits, "a step is compiled once")
	require.Equal(t, time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC), half.LimitEnforcedFrom(bucket.Owner{}, "warned"))
	for _, share := range []float64{0, -1, 0.001} {
		same := rules.Shrunk(share)
		require.Equal(t, before, capacities(&same), "%v", share)
	}
	least := rules.Shrunk(math.Inf(1))
	require.EqualValues(t, 10, capacities(&least)["tenant minute"], "a 64th stays")
	for i := range 10_000 {
		some := rules.Shrunk(float64(i) / 10_000)
		require.Positive(t, capacities(&some)["tenant second"])
	}
}
