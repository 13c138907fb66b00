package freeze_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/freeze"
)

// on is a moment of a day of UTC.
func on(text string) time.Time {
	for _, layout := range []string{time.DateOnly, "2006-01-02 15:04"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at
		}
	}
	panic(text)
}

func TestPeriodsFollowEachOtherWithoutAGapWhateverTheScheduleWasBefore(t *testing.T) {
	t.Parallel()
	monthly, daily := freeze.Schedule{Every: freeze.Monthly, Delay: 72 * time.Hour}, freeze.Schedule{Every: freeze.Daily}
	for _, of := range []struct {
		schedule freeze.Schedule
		from, to string
	}{
		{monthly, "2026-11-01", "2026-12-01"},
		{monthly, "2026-12-01", "2027-01-01"},
		{monthly, "2028-02-01", "2028-03-01"},
		{monthly, "2026-11-14", "2026-12-01"},
		{monthly, "2026-01-31", "2026-02-01"},
		{daily, "2026-11-14", "2026-11-15"},
		{daily, "2026-12-31", "2027-01-01"},
	} {
		require.Equal(t, freeze.Period{From: on(of.from), To: on(of.to)}, of.schedule.Period(on(of.from)))
	}
	require.Equal(t, on("2026-12-04"), monthly.Due(monthly.Period(on("2026-11-01"))))
}

func TestFreezingBeginsWithThePeriodThatIsDueNext(t *testing.T) {
	t.Parallel()
	long := on("2020-01-01")
	for _, of := range []struct {
		every                 freeze.Every
		delay                 time.Duration
		now, collected, first string
	}{
		{freeze.Monthly, 48 * time.Hour, "2026-11-23", "", "2026-11-01"},
		{freeze.Monthly, 48 * time.Hour, "2026-12-02 23:59", "", "2026-11-01"},
		{freeze.Monthly, 48 * time.Hour, "2026-12-03", "", "2026-12-01"},
		{freeze.Monthly, 72 * time.Hour, "2026-12-03", "", "2026-11-01"},
		{freeze.Monthly, 48 * time.Hour, "2026-12-02", "2026-12-01 05:00", "2026-12-01"},
		{freeze.Monthly, 48 * time.Hour, "2026-12-02", "2026-11-30 05:00", "2026-11-01"},
		{freeze.Daily, 48 * time.Hour, "2026-11-23 10:00", "", "2026-11-21"},
		{freeze.Daily, 48 * time.Hour, "2026-11-23 10:00", "2026-11-23 09:00", "2026-11-23"},
	} {
		s, collected := freeze.Schedule{Every: of.every, Delay: of.delay}, long
		if of.collected != "" {
			collected = on(of.collected)
		}
		first := s.First(on(of.now), collected)
		require.Equal(t, on(of.first), first, "%+v", of)
		require.True(t, s.Due(s.Period(first)).After(on(of.now)))
	}
}

func TestEveryMistakeOfAScheduleIsSaid(t *testing.T) {
	t.Parallel()
	none := freeze.Schedule{}
	require.NoError(t, none.Complete())
	require.Equal(t, freeze.Schedule{Every: freeze.Off, Delay: 48 * time.Hour}, none)
	require.False(t, none.On())
	for _, wrong := range []freeze.Schedule{{Every: "weekly", Delay: time.Hour}, {Every: "Monthly", Delay: 1e6 * time.Hour}} {
		err := wrong.Complete()
		require.ErrorContains(t, err, "write monthly, daily or off")
		require.ErrorContains(t, err, "write 48h0m0s, for so long settlements of it come, to 1440h0m0s")
		require.False(t, wrong.On())
	}
}
