package tiers_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// What the documentation says.
const (
	maxDocument = 1 << 20
	maxTiers    = 64
	maxName     = 64
	maxCompiled = 1 << 19
)

// document is the policy of most tests.
const document = `
version: 1
default: free
tiers:
  free:
    mode: enforce
    failMode: bounded
    maxCost: 500
    limits:
      second: {capacity: 100, per: second}
      minute: {capacity: 1000, per: minute}
      requests: {unit: requests, capacity: 60, per: minute, mode: shadow}
    operations:
      Mutation.createOrder:
        maxCost: 50
        limits: {minute: {unit: requests, capacity: 5, per: minute}}
      Mutation.*:
        limits: {hour: {unit: requests, capacity: 500, per: hour}}
      Query.search*:
        maxCost: 200
  pro:
    failMode: closed
    limits:
      minute: {capacity: 10000, refill: 5000, per: 1m, failMode: bounded}
      day: {capacity: 1000000, per: day}
  enterprise: {unlimited: true, maxCost: 100000}
  banned: {blocked: true}
tenants:
  acme: {tier: pro, limits: {minute: {capacity: 20000, per: minute}, day: null}}
  corner: {tier: enterprise}
  slow:
    mode: shadow
    maxCost: 900
    operations:
      Mutation.createOrder:
        limits: {minute: null, day: {unit: requests, capacity: 50, per: 24h}}
  bad guys: {tier: banned}
`

func compiled(t testing.TB, document string) *tiers.Snapshot {
	t.Helper()
	policy, err := tiers.Parse([]byte(document))
	require.NoError(t, err)
	snapshot, err := tiers.Compile(policy)
	require.NoError(t, err)
	return snapshot
}
