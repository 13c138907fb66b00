package bucket_test

import (
	"fmt"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// lawFamilies are the kinds of limits whose policies meet in a history.
var lawFamilies = []string{"token", "token", "token", "fixed", "sliding", "day", "mixed"}

// lawPolicy is one of the policies of a history.
type lawPolicy struct {
	buckets []bucket.Bucket
	// capacity is that of the limit, zero if the policy has none.
	capacity int64
}

func (r *lawRun) pick(n int) int { return r.random.IntN(n) }

// size draws a number of any size up to 10^digits.
func (r *lawRun) size(digits int) int64 {
	most := int64(10)
	for range r.pick(digits) {
		most *= 10
	}
	return 1 + r.random.Int64N(most)
}

func (r *lawRun) token() bucket.Limit {
	return bucket.Limit{
		// The largest takes less than ten years to fill at the slowest refill.
		Capacity: min(r.size(5), 80_000), Refill: r.size(4),
		Period: []time.Duration{100 * time.Millisecond, time.Second, 7 * time.Second, time.Minute, time.Hour}[r.pick(5)],
	}
}

func (r *lawRun) window(kind bucket.WindowKind, period time.Duration) bucket.Limit {
	return bucket.Limit{Capacity: r.size(4), Period: period, Window: bucket.Window{Kind: kind}}
}

func (r *lawRun) limit() bucket.Limit {
	switch r.family {
	case "fixed":
		return r.window(bucket.FixedWindow, 5*time.Second)
	case "sliding":
		return r.window(bucket.SlidingWindow, 5*time.Second)
	case "day":
		return r.window(bucket.DayWindow, 0)
	case "mixed":
		switch r.pick(5) {
		case 0:
			return r.window(bucket.FixedWindow, time.Duration(1+r.pick(10))*time.Second)
		case 1:
			return r.window(bucket.SlidingWindow, time.Duration(1+r.pick(10))*time.Second)
		case 2:
			limit := r.window([]bucket.WindowKind{bucket.HourWindow, bucket.DayWindow, bucket.MonthWindow, bucket.YearWindow}[r.pick(4)], 0)
			limit.Window.Zone = []string{"", "Asia/Kathmandu", "Europe/Berlin"}[r.pick(3)]
			return limit
		}
	}
	return r.token()
}

// policy draws a policy: of the limit that all share, in most, a limit in requests, and perhaps one that others do
// not have.
func (r *lawRun) policy() (p lawPolicy, err error) {
	limits := []bucket.Limit{{Name: "requests", Unit: bucket.Requests, Capacity: 1 << 20, Period: time.Second}}
	if r.pick(8) > 0 {
		limit := r.limit()
		limit.Name = lawLimit
		switch r.pick(8) {
		case 0:
			limit.Mode = bucket.Shadow
		case 1:
			limit.Mode = bucket.Warn
		case 2:
			limit.Soft = true
		}
		limits = append(limits, limit)
		p.capacity = limit.Capacity
	}
	for range r.pick(3) {
		other := r.token()
		other.Name, other.Capacity, other.Refill = fmt.Sprint("other-", r.pick(6)), 1<<20, 1<<20
		if other.Unit = bucket.Unit(fmt.Sprint("unit-", r.pick(2))); r.pick(4) == 0 {
			other.Soft = true
		}
		limits = append(limits, other)
	}
	r.random.Shuffle(len(limits), func(i, j int) { limits[i], limits[j] = limits[j], limits[i] })
	for i := range limits {
		for j := range i {
			if limits[i].Name == limits[j].Name {
				limits[i].Name = fmt.Sprint("twin-", i)
			}
		}
	}
	compiled, err := bucket.Compile(limits...)
	p.buckets = []bucket.Bucket{{Limits: compiled}}
	return p, err
}
