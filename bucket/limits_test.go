package bucket_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

func TestCompileReportsEveryMistakeAndWhatWouldFit(t *testing.T) {
	t.Parallel()
	_, err := bucket.Compile(
		bucket.Limit{},
		bucket.Limit{Name: "a", Capacity: -1, Refill: -2, Period: 1500 * time.Microsecond},
		bucket.Limit{Name: "b", Capacity: 1, Refill: 1 << 53, Period: 11 * 366 * 24 * time.Hour, Mode: 7, FailMode: 9},
		bucket.Limit{Name: strings.Repeat("n", 65), Unit: bucket.Unit(strings.Repeat("u", 65)), Capacity: 1, Period: time.Second},
		bucket.Limit{Name: "ok", Capacity: 1, Period: time.Second},
		bucket.Limit{Name: "ok", Unit: "other", Capacity: 1, Period: time.Second},
		bucket.Limit{Name: "big", Capacity: 1 << 50, Refill: 1, Period: time.Second},
		bucket.Limit{Name: "huge", Capacity: math.MaxInt64, Refill: 1, Period: maxPeriod},
		bucket.Limit{Name: "slow", Capacity: 1000, Refill: 1, Period: 24 * 365 * time.Hour},
		bucket.Limit{Name: "\xff", Capacity: 1, Period: time.Second},
		bucket.Limit{Name: "kind", Capacity: 1, Period: time.Second, Window: bucket.Window{Kind: 77}},
		bucket.Limit{Name: "fixed", Capacity: 1<<52 + 1, Refill: 1, Period: time.Second, Window: bucket.Window{
			Kind: bucket.FixedWindow, AnchorDay: 3, AnchorMonth: 3, Zone: "Asia/Tokyo",
		}},
		bucket.Limit{Name: "sliding", Capacity: 1 << 42, Period: time.Second, Window: bucket.Window{Kind: bucket.SlidingWindow}},
		bucket.Limit{Name: "day", Capacity: 1, Period: time.Second, Window: bucket.Window{Kind: bucket.DayWindow}},
		bucket.Limit{Name: "month", Capacity: 1, Window: bucket.Window{Kind: bucket.MonthWindow, AnchorDay: 32}},
		bucket.Limit{Name: "year", Capacity: 1, Window: bucket.Window{Kind: bucket.YearWindow, AnchorDay: -1, AnchorMonth: 13}},
	)
	joined, ok := err.(interface{ Unwrap() []error })
	require.True(t, ok)
	var got []string
	for _, mistake := range joined.Unwrap() {
		var limitError *bucket.LimitError
		require.ErrorAs(t, mistake, &limitError)
		got = append(got, mistake.Error())
	}
	long := strings.Repeat("n", 65)
	require.Equal(t, []string{
		`bucket: limit "": the name is empty; give it one, such as minute`,
		`bucket: limit "": the capacity is 0; at least 1 fits`,
		`bucket: limit "": the period is 0s; at least 1ms fits`,
		`bucket: limit "a": the capacity is -1; at least 1 fits`,
		`bucket: limit "a": the refill is -2; at least 1 fits`,
		`bucket: limit "a": the period is 1.5ms; whole milliseconds fit, such as 1ms`,
		`bucket: limit "b": mode(7) is unknown; enforce, warn, shadow or off fits`,
		`bucket: limit "b": failmode(9) is unknown; bounded, closed, local or open fits`,
		`bucket: limit "b": the refill is 9007199254740992; at most 9007199254740991 fits`,
		`bucket: limit "b": the period is 96624h0m0s; at most 87840h0m0s (ten years) fits`,
		`bucket: limit "` + long + `": the name is 65 bytes long; at most 64 fit`,
		`bucket: limit "` + long + `": the unit is 65 bytes long; at most 64 fit`,
		`bucket: limit "ok": the name is used twice; each limit of an owner needs its own`,
		`bucket: limit "big": a capacity of 1125899906842624 with a refill of 1 each 1s cannot be counted exactly; a capacity of at most 4503599627370 fits, or a refill and a period with a larger common divisor`,
		`bucket: limit "huge": a capacity of 9223372036854775807 with a refill of 1 each 87840h0m0s cannot be counted exactly; a capacity of at most 14241 fits, or a refill and a period with a larger common divisor`,
		`bucket: limit "slow": a capacity of 1000 takes more than ten years to fill at 1 each 8760h0m0s; a capacity of at most 10 fits`,
		`bucket: limit "\xff": the name is not valid UTF-8`,
		`bucket: limit "kind": window(77) is unknown; one of the kinds of WindowKind fits`,
		`bucket: limit "fixed": the anchor day is 3; only the window of a month or a year has one`,
		`bucket: limit "fixed": the anchor month is 3; only the window of a year has one`,
		`bucket: limit "fixed": the zone is "Asia/Tokyo"; only windows of the calendar have one`,
		`bucket: limit "fixed": the refill is 1; a window gives back its capacity, so leave it out`,
		`bucket: limit "fixed": a capacity of 4503599627370497 in the window cannot be counted exactly; a capacity of at most 4503599627370496 fits`,
		`bucket: limit "sliding": a capacity of 4398046511104 in the window cannot be counted exactly; a capacity of at most 2251799813685 fits`,
		`bucket: limit "day": the period is 1s; the calendar gives it, so leave it out`,
		`bucket: limit "month": the anchor day is 32; 1 to 31 fit`,
		`bucket: limit "year": the anchor day is -1; 1 to 31 fit`,
		`bucket: limit "year": the anchor month is 13; 1 to 12 fit`,
	}, got)
}

func TestCompileAcceptsWhatItsErrorsSayFits(t *testing.T) {
	t.Parallel()
	for _, limit := range []bucket.Limit{
		{Name: "slow", Capacity: 10, Refill: 1, Period: 24 * 365 * time.Hour},
		{Name: "exact", Capacity: 1 << 52, Refill: 1 << 52, Period: time.Millisecond},
		{Name: "long", Capacity: 1, Refill: 1, Period: maxPeriod},
		{Name: "fast", Capacity: 1, Refill: 1<<53 - 1, Period: time.Millisecond},
	} {
		_, err := bucket.Compile(limit)
		require.NoError(t, err, limit.Name)
	}
	_, err := bucket.Compile(bucket.Limit{Name: "slow", Capacity: 11, Refill: 1, Period: 24 * 365 * time.Hour})
	require.Error(t, err)
	_, err = bucket.Compile(make([]bucket.Limit, bucket.MaxLimits+1)...)
	require.ErrorContains(t, err, "at most 64 fit")
}

func TestCompileFillsInDefaultsAndKeepsLimitsThatAreOff(t *testing.T) {
	t.Parallel()
	given := []bucket.Limit{
		{Name: "off", Capacity: 2, Period: time.Second, Mode: bucket.Off},
		{Name: "minute", Capacity: 60, Period: time.Minute},
	}
	limits, err := bucket.Compile(given...)
	require.NoError(t, err)
	given[1].Capacity = 1
	require.Equal(t, 1, limits.Len())
	all := limits.All()
	require.Equal(t, bucket.Limit{Name: "minute", Unit: bucket.Points, Capacity: 60, Refill: 60, Period: time.Minute}, all[1])
	all[1].Capacity = 1
	require.EqualValues(t, 60, limits.All()[1].Capacity, "compiled limits never change")
	var none *bucket.Limits
	require.Zero(t, none.Len())
	require.Empty(t, none.All())
}

func TestTheModeOfLimitsIsTheStrictestThatIsJudged(t *testing.T) {
	t.Parallel()
	limit := func(name string, mode bucket.Mode) bucket.Limit {
		return bucket.Limit{Name: name, Capacity: 1, Period: time.Second, Mode: mode}
	}
	require.Equal(t, bucket.Off, (*bucket.Limits)(nil).Mode())
	require.Equal(t, bucket.Off, compile(t, limit("a", bucket.Off)).Mode())
	require.Equal(t, bucket.Shadow, compile(t, limit("a", bucket.Off), limit("b", bucket.Shadow)).Mode())
	require.Equal(t, bucket.Enforce, compile(t, limit("a", bucket.Warn), limit("b", bucket.Enforce)).Mode())
}
