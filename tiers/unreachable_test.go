package tiers_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

func TestALimitThatHoldsLessThanAnOperationMayCostIsAWarningWithItsLine(t *testing.T) {
	t.Parallel()
	const document = `version: 1
default: free
tiers:
  free:
    maxCost: 500
    limits:
      fits: {capacity: 500, per: minute}
      small: {capacity: 499, per: hour}
      soft: {capacity: 1, per: day, soft: true}
      "off": {capacity: 1, per: hour, mode: "off"}
      requests: {capacity: 1, per: minute, unit: requests}
    users:
      limits:
        week: {capacity: 10, per: 168h}
    operations:
      Query.cheap: {maxCost: 5, limits: {minute: {capacity: 5, per: second}}}
      Query.dear: {maxCost: 900, limits: {minute: {capacity: 6, per: second}}}
  open:
    limits:
      any: {capacity: 1, per: minute}
  unlimited:
    maxCost: 500
    unlimited: true
tenants:
  nothing: {tier: free, mode: shadow}
  changed:
    limits: {more: {capacity: 7, per: hour}}
  raised:
    tier: open
    maxCost: 9
  named:
    users:
      byName:
        ci: {limits: {minute: {capacity: 8, per: hour}}}
`
	const why = ": operations that cost more than the capacity can never run"
	want := []string{
		"line 8, column 15: tiers.free.limits.small.capacity: a capacity of 499 points is below the maxCost of 500" + why,
		"line 14, column 16: tiers.free.users.limits.week.capacity: a capacity of 10 points is below the maxCost of 500" + why,
		"line 17, column 52: tiers.free.operations[\"Query.dear\"].limits.minute.capacity: a capacity of 6 points is below the maxCost of 500" + why,
		"line 27, column 21: tenants.changed.limits.more.capacity: a capacity of 7 points is below the maxCost of 500" + why,
		"line 28, column 3: tenants.raised.limits.any.capacity: a capacity of 1 points is below the maxCost of 9" + why,
		"line 34, column 32: tenants.named.users.byName.ci.limits.minute.capacity: a capacity of 8 points is below the maxCost of 500" + why,
	}
	loaded, err := tiers.Load([]byte(document), 1)
	require.NoError(t, err)
	var got []string
	for _, warning := range loaded.Warnings() {
		got = append(got, warning.String())
	}
	require.Equal(t, want, got)
}
