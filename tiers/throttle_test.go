package tiers_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

const throttled = `
version: 1
default: free
tiers:
  free: {limits: {day: {capacity: 9, per: day}}}
  pro: {limits: {day: {capacity: 9, per: day}}, throttle: {order: 2}}
  enterprise: {limits: {day: {capacity: 9, per: day}}, throttle: {order: 3}}
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
		{Tenant: "a", Tier: "enterprise"}: {Order: 3, Floor: 50},
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
	require.Equal(t, "none", tiers.ThrottleNone.String())
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
		`6`, `acts "shed" is unknown; share or none fits`, "order 9; 1 (shed first) to 8 fit",
		"floor 101; 1 to 100 per cent fit", "unknown key; acts, order, floor fit", "order -1;",
	} {
		require.ErrorContains(t, err, text)
	}
}
