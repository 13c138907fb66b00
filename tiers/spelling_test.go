package tiers_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

func TestASlipOfTheNameOfAUnitOrALimitIsSaid(t *testing.T) {
	t.Parallel()
	snapshot := compiled(t, `
version: 1
default: free
tiers:
  free:
    limits:
      minute: {capacity: 100, per: minute}
      calls: {unit: request, capacity: 10, per: minute}
      rows: {unit: exports, capacity: 10, per: minute}
    users: {limits: {hour: {unit: Points, capacity: 100, per: hour}}}
tenants:
  acme:
    limits:
      minuet: {capacity: 200, per: minute}
      minute2: {capacity: 50, per: minute}
      sprint: {capacity: 50, per: minute}
    users: {byName: {ann: {limits: {hours: {capacity: 50, per: hour}}}}}
`)
	warnings := []string{}
	for _, warning := range snapshot.Warnings() {
		warnings = append(warnings, warning.String())
	}
	require.Equal(t, []string{
		`tiers.free.limits.calls.unit: the unit "request" is charged by the code of a server alone; is requests meant?`,
		`tiers.free.users.limits.hour.unit: the unit "Points" is charged by the code of a server alone; is points meant?`,
		`tenants.acme.limits.minuet: a limit beside "minute", which it does not change; is that one meant?`,
		`tenants.acme.users.byName.ann.limits.hours: a limit beside "hour", which it does not change; is that one meant?`,
	}, warnings)
	require.Equal(t, []bucket.Unit{"Points", "exports", "request"}, snapshot.Units())
	require.True(t, snapshot.Counts("exports"))
	require.True(t, snapshot.Counts(bucket.Points), "what a limit counts that says nothing")
	require.False(t, snapshot.Counts(bucket.Requests))
	require.Empty(t, compiled(t, document).Units())
}
