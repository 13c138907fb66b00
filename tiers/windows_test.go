package tiers_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

func TestWindowsOfTheDocumentAreThoseOfTheBucket(t *testing.T) {
	t.Parallel()
	s := compiled(t, `
version: 1
default: pro
tiers:
  pro:
    limits:
      year: {capacity: 7, per: year, window: calendar, soft: true}
      contract: {capacity: 8, per: year, window: calendar, anchorDay: 15, anchorMonth: 4, zone: Europe/Berlin}
      billing: {capacity: 6, per: month, window: calendar, anchorDay: 31, zone: America/New_York}
      month: {capacity: 5, per: month, window: calendar}
      day: {capacity: 4, per: day, window: calendar, zone: Europe/Berlin}
      hour: {capacity: 3, per: hour, window: calendar}
      sliding: {capacity: 2, per: 90s, window: sliding}
      fixed: {capacity: 1, per: second, window: fixed}
`)
	limit := func(name string, capacity int64, period time.Duration, window bucket.Window) bucket.Limit {
		return bucket.Limit{
			Name: name, Unit: bucket.Points, Capacity: capacity, Refill: capacity, Period: period, Window: window,
			Soft: name == "year",
		}
	}
	rules := s.Rules(tiers.Subject{Tenant: "x"}, tiers.Selection{})
	require.Equal(t, map[string]bucket.Limit{
		"fixed":    limit("fixed", 1, time.Second, bucket.Window{Kind: bucket.FixedWindow}),
		"sliding":  limit("sliding", 2, 90*time.Second, bucket.Window{Kind: bucket.SlidingWindow}),
		"hour":     limit("hour", 3, 0, bucket.Window{Kind: bucket.HourWindow}),
		"day":      limit("day", 4, 0, bucket.Window{Kind: bucket.DayWindow, Zone: "Europe/Berlin"}),
		"month":    limit("month", 5, 0, bucket.Window{Kind: bucket.MonthWindow}),
		"billing":  limit("billing", 6, 0, bucket.Window{Kind: bucket.MonthWindow, AnchorDay: 31, Zone: "America/New_York"}),
		"contract": limit("contract", 8, 0, bucket.Window{Kind: bucket.YearWindow, AnchorDay: 15, AnchorMonth: 4, Zone: "Europe/Berlin"}),
		"year":     limit("year", 7, 0, bucket.Window{Kind: bucket.YearWindow}),
	}, limitsOf(t, rules, nobody))
	var order []string
	for _, limit := range rules.Buckets[0].Limits.All() {
		order = append(order, limit.Name)
	}
	require.Equal(t, []string{"fixed", "sliding", "hour", "day", "billing", "month", "contract", "year"}, order, "the shortest first")
}

func TestPeriodsOfTheCalendarAreNoDurations(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"-2562047h47m16.854775808s", "-2562047h47m16.854775807s", "month ", ""} {
		var p tiers.Period
		require.Error(t, p.UnmarshalText([]byte(text)), text)
	}
	for word, want := range map[string]tiers.Period{"month": tiers.Month, "year": tiers.Year, "24h": tiers.Day} {
		var p tiers.Period
		require.NoError(t, p.UnmarshalText([]byte(word)))
		require.Equal(t, want, p)
	}
	require.Equal(t, "month", tiers.Month.String())
}
