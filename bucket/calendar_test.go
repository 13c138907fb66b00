package bucket_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

func calendarLimits(t testing.TB, window bucket.Window) *bucket.Limits {
	t.Helper()
	return compile(t, bucket.Limit{Name: "limit", Capacity: 1, Window: window})
}

func TestWindowsOfTheCalendarBeginWhereItSays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what          string
		window        bucket.Window
		now, from, to string
	}{
		{"an hour", bucket.Window{Kind: bucket.HourWindow}, "2026-03-29T12:34:56Z", "2026-03-29T12:00:00Z", "2026-03-29T13:00:00Z"},
		{"an hour of a zone off by 45 minutes", bucket.Window{Kind: bucket.HourWindow, Zone: "Asia/Kathmandu"}, "2026-03-29T12:34:56Z", "2026-03-29T12:15:00Z", "2026-03-29T13:15:00Z"},
		{"an hour that a change by half an hour cuts", bucket.Window{Kind: bucket.HourWindow, Zone: "Australia/Lord_Howe"}, "2026-10-03T15:40:00Z", "2026-10-03T15:30:00Z", "2026-10-03T16:00:00Z"},
		{"a day", bucket.Window{Kind: bucket.DayWindow}, "2026-03-29T00:00:00Z", "2026-03-29T00:00:00Z", "2026-03-30T00:00:00Z"},
		{"a day of 23 hours", bucket.Window{Kind: bucket.DayWindow, Zone: "Europe/Berlin"}, "2026-03-29T12:00:00Z", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"},
		{"a day of 25 hours", bucket.Window{Kind: bucket.DayWindow, Zone: "America/New_York"}, "2026-11-01T12:00:00Z", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"},
		{"a day without a midnight", bucket.Window{Kind: bucket.DayWindow, Zone: "America/Sao_Paulo"}, "2018-11-04T12:00:00Z", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"},
		{"a day before 1970", bucket.Window{Kind: bucket.DayWindow}, "1969-12-31T12:00:00Z", "1969-12-31T00:00:00Z", "1970-01-01T00:00:00Z"},
		{"a month", bucket.Window{Kind: bucket.MonthWindow}, "2024-02-29T23:59:59Z", "2024-02-01T00:00:00Z", "2024-03-01T00:00:00Z"},
		{"a billing month", bucket.Window{Kind: bucket.MonthWindow, AnchorDay: 15}, "2026-01-14T23:59:59Z", "2025-12-15T00:00:00Z", "2026-01-15T00:00:00Z"},
		{"a billing month from the 31st to the end of a short month", bucket.Window{Kind: bucket.MonthWindow, AnchorDay: 31}, "2026-02-15T00:00:00Z", "2026-01-31T00:00:00Z", "2026-02-28T00:00:00Z"},
		{"a billing month from the end of a short month", bucket.Window{Kind: bucket.MonthWindow, AnchorDay: 31}, "2024-02-29T00:00:00Z", "2024-02-29T00:00:00Z", "2024-03-31T00:00:00Z"},
		{"a billing month from the 30th", bucket.Window{Kind: bucket.MonthWindow, AnchorDay: 30}, "2026-03-01T00:00:00Z", "2026-02-28T00:00:00Z", "2026-03-30T00:00:00Z"},
		{"a billing month of a zone", bucket.Window{Kind: bucket.MonthWindow, AnchorDay: 1, Zone: "Asia/Tokyo"}, "2026-03-31T15:00:00Z", "2026-03-31T15:00:00Z", "2026-04-30T15:00:00Z"},
		{"a year of a contract", bucket.Window{Kind: bucket.YearWindow, AnchorMonth: 4, AnchorDay: 15}, "2026-04-14T23:59:59Z", "2025-04-15T00:00:00Z", "2026-04-15T00:00:00Z"},
		{"a year of a contract on its first day", bucket.Window{Kind: bucket.YearWindow, AnchorMonth: 4}, "2026-04-01T00:00:00Z", "2026-04-01T00:00:00Z", "2027-04-01T00:00:00Z"},
		{"a year from the 29th of February", bucket.Window{Kind: bucket.YearWindow, AnchorMonth: 2, AnchorDay: 29}, "2024-02-28T23:59:59Z", "2023-02-28T00:00:00Z", "2024-02-29T00:00:00Z"},
		{"a year from a 15th of January", bucket.Window{Kind: bucket.YearWindow, AnchorDay: 15}, "2026-01-14T00:00:00Z", "2025-01-15T00:00:00Z", "2026-01-15T00:00:00Z"},
		{"a year that is an hour longer", bucket.Window{Kind: bucket.YearWindow, AnchorMonth: 10, AnchorDay: 29, Zone: "Europe/Berlin"}, "2024-01-01T00:00:00Z", "2023-10-28T22:00:00Z", "2024-10-28T23:00:00Z"},
		{"a year", bucket.Window{Kind: bucket.YearWindow, Zone: "Asia/Tokyo"}, "2026-12-31T14:59:59Z", "2025-12-31T15:00:00Z", "2026-12-31T15:00:00Z"},
	} {
		now, err := time.Parse(time.RFC3339, c.now)
		require.NoError(t, err)
		from, to := bucket.WindowAround(calendarLimits(t, c.window), now)
		require.Equal(t, c.from, from.UTC().Format(time.RFC3339), "start of %s", c.what)
		require.Equal(t, c.to, to.UTC().Format(time.RFC3339), "end of %s", c.what)
	}
}

// TestWindowsOfTheCalendarHoldEachTimeOnce walks through years in which clocks were changed at, before
// and after midnight, and in which a day was left out.
func TestWindowsOfTheCalendarHoldEachTimeOnce(t *testing.T) {
	t.Parallel()
	for _, walk := range []struct {
		zone     string
		from, to int
	}{
		{"", 2023, 2029},
		{"Europe/Berlin", 2023, 2029},
		{"America/Sao_Paulo", 2016, 2020},
		{"Asia/Beirut", 2020, 2024},
		{"Africa/Cairo", 2023, 2026},
		{"Pacific/Apia", 2011, 2013},
		{"Australia/Lord_Howe", 2024, 2027},
		{"America/Havana", 2023, 2026},
		{"Asia/Gaza", 2020, 2026},
	} {
		for _, window := range []bucket.Window{
			{Kind: bucket.HourWindow},
			{Kind: bucket.DayWindow},
			{Kind: bucket.MonthWindow},
			{Kind: bucket.MonthWindow, AnchorDay: 29},
			{Kind: bucket.MonthWindow, AnchorDay: 31},
			{Kind: bucket.YearWindow},
			{Kind: bucket.YearWindow, AnchorMonth: 2, AnchorDay: 29},
			{Kind: bucket.YearWindow, AnchorMonth: 3, AnchorDay: 29},
			{Kind: bucket.YearWindow, AnchorMonth: 10, AnchorDay: 31},
			{Kind: bucket.YearWindow, AnchorMonth: 11},
		} {
			window.Zone = walk.zone
			// The second one has not seen a window when it is asked for its end.
			limits, other := calendarLimits(t, window), calendarLimits(t, window)
			length := limits.All()[0].Length()
			at := time.Date(walk.from, 1, 1, 0, 0, 0, 0, time.UTC)
			_, end := bucket.WindowAround(limits, at)
			for end.Year() < walk.to {
				from, to := bucket.WindowAround(limits, end)
				sameFrom, sameTo := bucket.WindowAround(other, to.Add(-time.Millisecond))
				if end != from || !to.After(from) || to.Sub(from) > length || from != sameFrom || to != sameTo {
					require.FailNow(t, "windows do not meet", "%v: %v, then %v to %v, and for its last millisecond %v to %v",
						window, end, from, to, sameFrom, sameTo)
				}
				end = to
			}
		}
	}
}

func TestALimitRefusesAZoneThatIsNotKnown(t *testing.T) {
	t.Parallel()
	for _, zone := range []string{"Local", "Europe/Nowhere", "../etc/passwd", "berlin\x00"} {
		_, err := bucket.Compile(bucket.Limit{Name: "day", Capacity: 1, Window: bucket.Window{Kind: bucket.DayWindow, Zone: zone}})
		require.ErrorContains(t, err, "unknown time zone", zone)
	}
}
