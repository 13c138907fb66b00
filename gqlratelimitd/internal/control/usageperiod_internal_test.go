package control

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/usage"
)

func TestPeriodsFollowEachOtherAndHaveOneDateOfTheirZone(t *testing.T) {
	t.Parallel()
	// Havana and Amman put clocks back from 1:00 to 0:00 and forward at 0:00, Lord Howe by half an hour, and Kathmandu is a quarter of an hour off. Apia has
	// left out a day, and Cairo puts clocks forward at the end of a day.
	for _, name := range []string{"UTC", "Europe/Berlin", "America/Havana", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia", "Africa/Cairo", "Asia/Beirut", "Asia/Amman", "America/Asuncion"} {
		zone, err := zoneOf(name)
		require.NoError(t, err)
		for _, year := range []int{2011, 2023, 2026} {
			from, to := time.Date(year, 1, 1, 5, 0, 0, 0, time.UTC), time.Date(year+1, 1, 3, 5, 0, 0, 0, time.UTC)
			for window, form := range map[usage.Window]string{usage.Day: time.DateOnly, usage.Month: "2006-01"} {
				all, err := periodsOf(window, from, to, zone)
				require.NoError(t, err)
				require.False(t, all[0].begin.After(from))
				require.False(t, all[len(all)-1].end.Before(to))
				for i, p := range all {
					first, last := p.begin.In(zone).Format(form), p.end.Add(-time.Second).In(zone).Format(form)
					require.Equal(t, first, last, "%s %s", name, first)
					require.Less(t, p.begin.Add(-time.Second).In(zone).Format(form), first, "%s begins no sooner", name)
					if i > 0 {
						require.Equal(t, all[i-1].end, p.begin)
						require.Less(t, all[i-1].begin.In(zone).Format(form), first)
					}
				}
			}
		}
	}
}

func TestARangeOfTooManyPeriodsIsRefusedWithWhatWouldDo(t *testing.T) {
	t.Parallel()
	to := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	for window, want := range map[usage.Window]string{
		usage.Minute: "more than 2881 minutes: ask for a shorter range, or for the window hour",
		usage.Hour:   "more than 2160 hours: ask for a shorter range, or for the window day",
		usage.Day:    "more than 1099 days: ask for a shorter range, or for the window month",
		usage.Month:  "more than 37 months: ask for a shorter range",
	} {
		_, err := periodsOf(window, to.AddDate(-100, 0, 0), to, time.UTC)
		require.ErrorContains(t, err, want)
		require.ErrorIs(t, err, ErrInvalid)
		all, err := periodsOf(window, step(window, beginOf(window, to, time.UTC), 1-usageWindows[window].most, time.UTC), to.Add(time.Second), time.UTC)
		require.NoError(t, err)
		require.Len(t, all, usageWindows[window].most)
	}
}

func TestAZoneThatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Local", "Europe/Bonn", "../../etc/passwd", "\x00", "/etc/localtime", "UTC+1"} {
		_, err := zoneOf(name)
		require.ErrorIs(t, err, ErrInvalid, name)
	}
}
