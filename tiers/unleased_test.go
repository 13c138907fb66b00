package tiers_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

func TestALeaseByWhichNothingIsLeasedIsAWarningWithItsLineAndTheLimitThatPreventsIt(t *testing.T) {
	t.Parallel()
	s, err := tiers.Load([]byte(`version: 1
default: free
tiers:
  free:
    limits: {minute: {capacity: 42, per: minute}}
  soft:
    lease: always
    limits:
      minute: {capacity: 600, per: minute}
      month: {capacity: 9000, per: month, window: calendar, soft: true}
  small:
    lease: auto
    limits: {minute: {capacity: 42, per: minute}, second: {capacity: 900, per: second}}
  enough:
    lease: auto
    limits:
      minute: {capacity: 43, per: minute}
      day: {capacity: 5, per: day, window: fixed}
      trial: {capacity: 5, per: hour, mode: "off", soft: true}
  always:
    lease: always
    limits: {minute: {capacity: 1, per: minute}}
  whole:
    lease: auto
    unlimited: true
  nothing:
    lease: always
    users: {limits: {minute: {capacity: 600, per: minute}}}
  untried:
    lease: always
    mode: "off"
    limits: {minute: {capacity: 600, per: minute}}
  blocked:
    lease: always
    blocked: true
tenants:
  same: {tier: small, mode: shadow}
  bold: {tier: small, lease: always}
  tenth:
    tier: enough
    percent: 50
  softened:
    tier: enough
    limits:
      month: {capacity: 9000, per: month, window: calendar, soft: true}
  lifted: {tier: enough, unlimited: true}
  asked:
    lease: auto
  odd:
    tier: enough
    unlimited: true
    lease: always
`), 1)
	require.NoError(t, err)
	const (
		unlike = " cannot be, and all limits are or none: "
		soft   = "a soft limit has no end that could be divided; mode: shadow instead of soft fits"
		small  = " is too small to be worth dividing; 43, or lease: always, fits"
		lacks  = "there are no limits that hold for the whole tenant; leave lease out, or add some"
		whole  = "who is unlimited has no limit of which a part could be held; leave lease out"
	)
	require.Equal(t, []string{
		"line 7, column 5: tiers.soft.lease: nothing is leased: limits.month" + unlike + soft,
		"line 12, column 5: tiers.small.lease: nothing is leased: limits.minute" + unlike + "a capacity of 42" + small,
		"line 24, column 5: tiers.whole.lease: nothing is leased: " + whole,
		"line 27, column 5: tiers.nothing.lease: nothing is leased: " + lacks,
		"line 39, column 3: tenants.tenth: nothing is leased: limits.minute" + unlike + "a capacity of 21" + small,
		"line 42, column 3: tenants.softened: nothing is leased: limits.month" + unlike + soft,
		"line 48, column 5: tenants.asked.lease: nothing is leased: limits.minute" + unlike + "a capacity of 42" + small,
		"line 52, column 5: tenants.odd.lease: nothing is leased: " + whole,
	}, texts(s.Warnings()))
}
