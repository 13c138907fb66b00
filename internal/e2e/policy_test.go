package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// testPolicy has a tier for each way in which a decision can go. Tenants are named after their tier.
const testPolicy = `
version: 1
default: free
tiers:
  free:
    maxCost: 500
    limits:
      minute: {capacity: 100, per: minute}
      requests: {unit: requests, capacity: 20, per: minute}
    operations:
      Query.export:
        limits:
          exports: {unit: exports, capacity: 10, per: hour}
  shadow:
    mode: shadow
    maxCost: 50
    limits:
      minute: {capacity: 30, per: minute}
  "off":
    mode: "off"
    limits:
      minute: {capacity: 1, per: minute}
  watchful:
    mode: shadow
    limits:
      minute: {capacity: 30, per: minute, mode: enforce, failMode: closed}
  closed:
    failMode: closed
    limits:
      minute: {capacity: 100, per: minute}
  warned:
    mode: warn
    enforceFrom: 2126-12-01
    maxCost: 50
    limits:
      minute: {capacity: 30, per: minute}
      hour: {capacity: 40, per: hour, mode: shadow}
  levels:
    limits:
      minute: {capacity: 100, per: minute}
    teams:
      limits: {minute: {capacity: 60, per: minute}}
    users:
      limits: {minute: {capacity: 30, per: minute}}
  unlimited: {unlimited: true}
  blocked: {blocked: true}
tenants:
  shadow: {tier: shadow}
  "off": {tier: "off"}
  closed: {tier: closed}
  warned: {tier: warned}
  levels: {tier: levels}
  watchful: {tier: watchful}
  unlimited: {tier: unlimited}
  blocked: {tier: blocked}
`

func compiledPolicy(t *testing.T) *tiers.Snapshot {
	t.Helper()
	policy, err := tiers.Parse([]byte(testPolicy))
	require.NoError(t, err)
	snapshot, err := tiers.Compile(policy)
	require.NoError(t, err)
	return snapshot
}
