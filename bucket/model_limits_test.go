package bucket_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

func drawLimits(t *rapid.T) *bucket.Limits {
	var limits []bucket.Limit
	names := rapid.SliceOfNDistinct(rapid.IntRange(0, 5), 1, 5, rapid.ID[int]).Draw(t, "names")
	for _, i := range names {
		limit := drawLimit(t)
		limit.Name = fmt.Sprint("limit-", i)
		limit.Mode = rapid.SampledFrom([]bucket.Mode{bucket.Enforce, bucket.Enforce, bucket.Warn, bucket.Shadow}).Draw(t, "mode")
		limit.Soft = rapid.IntRange(0, 7).Draw(t, "soft") == 0
		limits = append(limits, limit)
	}
	compiled, err := bucket.Compile(limits...)
	require.NoError(t, err)
	return compiled
}

func drawLimit(t *rapid.T) bucket.Limit {
	period := func(most int64) time.Duration {
		return time.Duration(rapid.Int64Range(1, most).Draw(t, "period")) * time.Millisecond
	}
	capacity := rapid.Int64Range(1, 200).Draw(t, "capacity")
	zone := rapid.SampledFrom([]string{"", "Asia/Kathmandu", "Europe/Berlin"})
	switch rapid.SampledFrom([]string{"token", "token", "token", "edge", "fixed", "sliding", "calendar"}).Draw(t, "kind") {
	case "edge":
		return rapid.SampledFrom(edges).Draw(t, "edge")
	case "fixed":
		return bucket.Limit{Capacity: capacity, Period: period(30_000), Window: bucket.Window{Kind: bucket.FixedWindow}}
	case "sliding":
		return bucket.Limit{Capacity: capacity, Period: period(30_000), Window: bucket.Window{Kind: bucket.SlidingWindow}}
	case "calendar":
		window := bucket.Window{Kind: rapid.SampledFrom([]bucket.WindowKind{
			bucket.HourWindow, bucket.DayWindow, bucket.MonthWindow, bucket.YearWindow,
		}).Draw(t, "calendar"), Zone: zone.Draw(t, "zone")}
		if window.Kind == bucket.MonthWindow || window.Kind == bucket.YearWindow {
			window.AnchorDay = rapid.IntRange(0, 31).Draw(t, "anchor")
		}
		if window.Kind == bucket.YearWindow {
			window.AnchorMonth = rapid.IntRange(0, 12).Draw(t, "anchor month")
		}
		return bucket.Limit{Capacity: capacity, Window: window}
	default:
		return bucket.Limit{Capacity: capacity, Refill: rapid.Int64Range(1, 300).Draw(t, "refill"), Period: period(30_000)}
	}
}

// edges are limits at the ends of what is accepted.
var edges = []bucket.Limit{
	{Capacity: 1, Refill: 1, Period: 24 * time.Hour},
	{Capacity: 1_000_000_000, Period: 24 * time.Hour},
	{Capacity: 52_125_007, Refill: 999_999_937, Period: 86_399_981 * time.Millisecond},
	{Capacity: 7919, Refill: 104_729, Period: 1_299_709 * time.Millisecond},
	{Capacity: 1, Refill: 1, Period: time.Millisecond},
	{Capacity: 1 << 52, Refill: 1<<53 - 1, Period: time.Millisecond},
	{Capacity: 1 << 52, Refill: 1 << 52, Period: time.Millisecond},
	{Capacity: 1, Refill: 1, Period: maxPeriod},
	{Capacity: 14_241, Refill: 14_241, Period: maxPeriod - time.Millisecond},
	{Capacity: 1 << 52, Period: time.Hour, Window: bucket.Window{Kind: bucket.FixedWindow}},
	{Capacity: 1, Period: time.Millisecond, Window: bucket.Window{Kind: bucket.FixedWindow}},
	{Capacity: 1 << 51, Period: time.Millisecond, Window: bucket.Window{Kind: bucket.SlidingWindow}},
	{Capacity: 625_499_939, Period: time.Hour, Window: bucket.Window{Kind: bucket.SlidingWindow}},
	{Capacity: 7_135, Period: maxPeriod / 24, Window: bucket.Window{Kind: bucket.SlidingWindow}},
	{Capacity: 1 << 52, Window: bucket.Window{Kind: bucket.DayWindow}},
}

// asked is what a take asks of an owner.
func (r *run) asked(i int, amount int64) int64 {
	if i == 0 || *r.halves < 0 {
		return amount
	}
	return amount / 2 * *r.halves
}

// asking returns the buckets with what a take asks.
func (r *run) asking(amount int64) []bucket.Bucket {
	buckets := slices.Clone(r.buckets)
	for i := range buckets {
		if own := r.asked(i, amount); own != amount {
			buckets[i].Amounts = bucket.Amounts{{Unit: bucket.Points, N: own}}
		}
	}
	return buckets
}
