package buckettest

import (
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

func fixed(name string, capacity int64, length time.Duration) bucket.Limit {
	return bucket.Limit{Name: name, Capacity: capacity, Period: length, Window: bucket.Window{Kind: bucket.FixedWindow}}
}

func sliding(name string, capacity int64, length time.Duration) bucket.Limit {
	return bucket.Limit{Name: name, Capacity: capacity, Period: length, Window: bucket.Window{Kind: bucket.SlidingWindow}}
}

func calendar(name string, capacity int64, window bucket.Window) bucket.Limit {
	return bucket.Limit{Name: name, Capacity: capacity, Window: window}
}

// calendars are windows of the calendar of every kind, none of which ends with another.
func calendars(capacity int64) []bucket.Limit {
	return []bucket.Limit{
		calendar("hour", capacity, bucket.Window{Kind: bucket.HourWindow, Zone: "Asia/Kathmandu"}),
		calendar("day", capacity, bucket.Window{Kind: bucket.DayWindow, Zone: "America/New_York"}),
		calendar("month", capacity, bucket.Window{Kind: bucket.MonthWindow}),
		calendar("billing", capacity, bucket.Window{Kind: bucket.MonthWindow, AnchorDay: 31, Zone: "Europe/Berlin"}),
		calendar("year", capacity, bucket.Window{Kind: bucket.YearWindow, Zone: "Asia/Tokyo"}),
	}
}

// windowCheck is what a limit has to show.
type windowCheck struct {
	left  int64
	reset time.Duration
}

func (s *scene) shows(state bucket.LimitState, want windowCheck, what string) {
	s.Helper()
	s.equal(windowCheck{state.Remaining, state.ResetAfter}, want, what)
}

var windowTests = []test{
	{"a fixed window opens with its first charge and gives everything back at its end", func(s *scene) {
		buckets := s.tenantOf(fixed("minute", 10, time.Minute))
		s.shows(s.peek(buckets...)[0], windowCheck{10, 0}, "before")
		s.Advance(7 * time.Second)
		s.shows(s.take(buckets, points(4)).Limits[0], windowCheck{6, time.Minute}, "first charge")
		s.Advance(20 * time.Second)
		s.shows(s.take(buckets, points(6)).Limits[0], windowCheck{0, 40 * time.Second}, "second charge")
		s.Advance(40*time.Second - time.Millisecond)
		result := s.take(buckets, points(1))
		s.verdict(result, bucket.Limited)
		s.equal(result.RetryAfter, time.Millisecond, "retry after")
		s.Advance(time.Millisecond)
		s.shows(s.peek(buckets...)[0], windowCheck{10, 0}, "after its end")
		s.shows(s.take(buckets, points(10)).Limits[0], windowCheck{0, time.Minute}, "next window")
	}},
	{"a sliding window counts what the one before it still covers, rounded up", func(s *scene) {
		buckets := s.tenantOf(sliding("minute", 100, time.Minute))
		s.shows(s.take(buckets, points(80)).Limits[0], windowCheck{20, 2 * time.Minute}, "first charge")
		s.Advance(time.Minute)
		s.shows(s.peek(buckets...)[0], windowCheck{20, time.Minute}, "all of it covered")
		s.Advance(15*time.Second + time.Millisecond)
		s.shows(s.peek(buckets...)[0], windowCheck{40, 45*time.Second - time.Millisecond}, "three quarters of it covered")
		s.Advance(-time.Millisecond)
		result := s.take(buckets, points(41))
		s.verdict(result, bucket.Limited)
		s.equal(result.RetryAfter, 750*time.Millisecond, "retry after")
		s.Advance(749 * time.Millisecond)
		s.verdict(s.take(buckets, points(41)), bucket.Limited)
		s.Advance(time.Millisecond)
		s.verdict(s.take(buckets, points(41)), bucket.Admitted)
		s.equal(s.take(buckets, points(100)).RetryAfter, 104250*time.Millisecond, "until the window after next")
		s.Advance(104250 * time.Millisecond)
		s.verdict(s.take(buckets, points(100)), bucket.Admitted)
	}},
	{"a window of the calendar ends when the calendar says", func(s *scene) {
		for _, limit := range calendars(10) {
			buckets := s.tenantOf(limit)
			first := s.take(buckets, points(4)).Limits[0]
			s.equal(first.ResetAfter > 0 && first.ResetAfter <= limit.Length(), true, limit.Name+": reset in the window")
			s.Advance(first.ResetAfter - time.Millisecond)
			second := s.take(buckets, points(6)).Limits[0]
			s.shows(second, windowCheck{0, time.Millisecond}, limit.Name)
			s.equal(second.WindowEnd, first.WindowEnd, limit.Name+": end")
			s.equal(s.take(buckets, points(1)).RetryAfter, time.Millisecond, limit.Name+": retry after")
			s.Advance(time.Millisecond)
			next := s.take(buckets, points(1)).Limits[0]
			s.equal(next.Remaining, int64(9), limit.Name+": remaining in the next window")
			s.equal(next.WindowEnd, first.WindowEnd+next.ResetAfter.Milliseconds(), limit.Name+": end of the next window")
			s.ok(s.Store.Reset(s.ctx, s.tenant, buckets))
		}
	}},
	{"windows and token buckets of an owner are charged together or not at all", func(s *scene) {
		limits := append(calendars(50), perSecond(20), fixed("fixed", 50, time.Minute), sliding("sliding", 50, time.Minute))
		buckets := s.tenantOf(limits...)
		s.verdict(s.take(buckets, points(15)), bucket.Admitted)
		before := s.peek(buckets...)
		result := s.take(buckets, points(10))
		s.verdict(result, bucket.Limited)
		s.equal(result.RetryAfter, 250*time.Millisecond, "retry after")
		s.equal(s.peek(buckets...), before, "state")
		s.Advance(250 * time.Millisecond)
		s.verdict(s.take(buckets, points(10)), bucket.Admitted)
		s.equal(s.remaining(buckets...), []int64{25, 25, 25, 25, 25, 0, 25, 25}, "remaining")
		s.verdict(s.take(buckets, points(51)), bucket.Never)
	}},
	{"a window gives back what was charged in it, and nothing after its end", func(s *scene) {
		for _, limit := range []bucket.Limit{
			fixed("fixed", 10, time.Minute), calendar("hour", 10, bucket.Window{Kind: bucket.HourWindow}),
			sliding("sliding", 10, time.Minute),
		} {
			buckets := s.tenantOf(limit)
			// Other tests have left the clock anywhere in the hour: start at the start of one.
			s.take(buckets, points(1))
			s.Advance(s.peek(buckets...)[0].ResetAfter)
			receipt := s.take(buckets, points(8)).Receipt
			s.Advance(30 * time.Second)
			settled := s.settle(bucket.Settlement{Receipt: receipt, Actual: points(3)})
			s.equal(settled.Limits[0].Charged, int64(-5), limit.Name+": given back")
			s.equal(settled.Limits[0].Remaining, int64(7), limit.Name+": remaining")
			late := s.take(buckets, points(4)).Receipt
			end := s.peek(buckets...)[0].WindowEnd
			s.Advance(30 * time.Second)
			if limit.Window.Kind == bucket.HourWindow {
				s.Advance(59 * time.Minute)
			}
			s.take(buckets, points(1))
			after := s.peek(buckets...)[0]
			s.equal(after.WindowEnd > end, true, limit.Name+": another window is open")
			if limit.Window.Kind != bucket.HourWindow {
				settled = s.settle(bucket.Settlement{Receipt: late, Actual: points(0)})
				s.equal(settled.Applied, true, limit.Name+": applied")
				s.equal(settled.Limits[0].Charged, int64(0), limit.Name+": given back")
			}
			s.equal(s.peek(buckets...)[0], after, limit.Name)
			s.ok(s.Store.Reset(s.ctx, s.tenant, buckets))
		}
	}},
	{"a window in which everything was given back is closed", func(s *scene) {
		buckets := s.tenantOf(fixed("minute", 10, time.Minute))
		receipt := s.take(buckets, points(8)).Receipt
		s.Advance(30 * time.Second)
		s.shows(s.settle(bucket.Settlement{Receipt: receipt, Actual: points(0)}).Limits[0], windowCheck{10, 0}, "settled")
		s.shows(s.take(buckets, points(1)).Limits[0], windowCheck{9, time.Minute}, "a new window")
	}},
	{"a settlement upwards overdraws a window to twice its capacity", func(s *scene) {
		for _, limit := range []bucket.Limit{fixed("fixed", 10, time.Minute), sliding("sliding", 10, time.Minute)} {
			buckets := s.tenantOf(limit)
			receipt := s.take(buckets, points(8)).Receipt
			settled := s.settle(bucket.Settlement{Receipt: receipt, Actual: points(1 << 60)})
			s.equal(settled.Limits[0].Overdraft, int64(10), "overdraft")
			s.equal(settled.Limits[0].Charged, int64(12), "charged")
			s.ok(s.Store.Reset(s.ctx, s.tenant, buckets))
		}
	}},
	{"a grant gives a window back what it used, a sliding one also what the window before weighs", func(s *scene) {
		buckets := s.tenantOf(fixed("fixed", 100, time.Hour), sliding("sliding", 100, time.Minute))
		s.take(buckets, points(80))
		s.Advance(90 * time.Second)
		s.take(buckets, points(10))
		s.equal(s.remaining(buckets...), []int64{10, 50}, "remaining")
		states, err := s.Store.Grant(s.ctx, s.tenant, buckets, points(30))
		s.ok(err)
		s.equal([]int64{states[0].Charged, states[1].Charged}, []int64{-30, -30}, "granted")
		s.equal(s.remaining(buckets...), []int64{40, 80}, "remaining")
		_, err = s.Store.Grant(s.ctx, s.tenant, buckets, points(1000))
		s.ok(err)
		s.equal(s.remaining(buckets...), []int64{100, 100}, "remaining")
	}},
}
