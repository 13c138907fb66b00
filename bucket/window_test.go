package bucket_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

func TestTheLengthOfALimitIsItsWindowOrTheTimeToFill(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		limit bucket.Limit
		want  time.Duration
	}{
		{bucket.Limit{Capacity: 100, Refill: 10, Period: time.Second}, 10 * time.Second},
		{bucket.Limit{Capacity: 1, Refill: 3, Period: time.Second}, 334 * time.Millisecond},
		{bucket.Limit{Capacity: 1 << 62, Refill: 1, Period: time.Hour}, maxPeriod},
		{bucket.Limit{Capacity: 5, Refill: 5, Period: time.Hour, Window: bucket.Window{Kind: bucket.FixedWindow}}, time.Hour},
		{bucket.Limit{Capacity: 5, Window: bucket.Window{Kind: bucket.DayWindow}}, 24 * time.Hour},
		{bucket.Limit{Capacity: 5, Window: bucket.Window{Kind: bucket.DayWindow, Zone: "Asia/Tokyo"}}, 24 * time.Hour},
		{bucket.Limit{Capacity: 5, Window: bucket.Window{Kind: bucket.DayWindow, Zone: "Europe/Berlin"}}, 25 * time.Hour},
		{bucket.Limit{Capacity: 5, Window: bucket.Window{Kind: bucket.DayWindow, Zone: "Europe/Nowhere"}}, 25 * time.Hour},
		{bucket.Limit{Capacity: 5, Window: bucket.Window{Kind: bucket.MonthWindow}}, 31 * 24 * time.Hour},
		{bucket.Limit{Capacity: 5, Window: bucket.Window{Kind: bucket.MonthWindow, Zone: "Europe/Berlin"}}, (31*24 + 1) * time.Hour},
		{bucket.Limit{Capacity: 5, Window: bucket.Window{Kind: bucket.YearWindow, Zone: "Europe/Berlin"}}, 366 * 24 * time.Hour},
		{bucket.Limit{}, 0},
	} {
		require.Equal(t, c.want, c.limit.Length(), "%+v", c.limit)
	}
}
