package buckettest

import (
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

var windowChangeTests = []test{
	{"a token bucket that becomes a window keeps what it owes, which comes back as before until the window is charged", func(s *scene) {
		s.take(s.tenantOf(bucket.Limit{Name: "limit", Capacity: 100, Refill: 10, Period: time.Minute}), points(60))
		s.Advance(20 * time.Second)
		// Of 60 tokens 56⅔ are owed, for 340 s.
		for _, limit := range []bucket.Limit{
			fixed("limit", 100, time.Minute), sliding("limit", 100, time.Minute), fixed("limit", 100, 10*time.Second),
			calendar("limit", 100, bucket.Window{Kind: bucket.YearWindow}),
		} {
			s.shows(s.peek(s.tenantOf(limit)...)[0], windowCheck{43, 340 * time.Second}, limit.Window.Kind.String())
		}
		minute := s.tenantOf(fixed("limit", 100, time.Minute))
		s.shows(s.take(minute, points(3)).Limits[0], windowCheck{40, time.Minute}, "charged")
	}},
	{"a window that becomes a token bucket owes what was used in it until its end, or until the token bucket is charged", func(s *scene) {
		s.take(s.tenantOf(fixed("limit", 100, time.Minute)), points(60))
		s.Advance(20 * time.Second)
		bucketed := s.tenantOf(bucket.Limit{Name: "limit", Capacity: 100, Refill: 10, Period: time.Second})
		s.shows(s.peek(bucketed...)[0], windowCheck{40, 40 * time.Second}, "token bucket")
		s.shows(s.take(bucketed, points(10)).Limits[0], windowCheck{30, 7 * time.Second}, "charged")
		s.Advance(5 * time.Second)
		s.shows(s.peek(bucketed...)[0], windowCheck{80, 2 * time.Second}, "token bucket")
	}},
	{"a sliding window that becomes anything else has used what it weighs", func(s *scene) {
		slid := s.tenantOf(sliding("limit", 100, time.Minute))
		s.take(slid, points(80))
		s.Advance(75 * time.Second)
		s.verdict(s.take(slid, points(20)), bucket.Admitted)
		for what, limit := range map[string]bucket.Limit{
			"token bucket": {Name: "limit", Capacity: 100, Period: time.Minute}, "fixed": fixed("limit", 100, time.Minute),
			"calendar": calendar("limit", 100, bucket.Window{Kind: bucket.YearWindow}), "longer": sliding("limit", 100, time.Hour),
			"shorter": sliding("limit", 100, time.Second),
		} {
			s.equal(s.remaining(s.tenantOf(limit)...), []int64{20}, what)
		}
		s.Advance(45*time.Second - time.Millisecond)
		s.take(slid, points(79))
		s.Advance(time.Millisecond)
		bucketed := s.tenantOf(bucket.Limit{Name: "limit", Capacity: 100, Period: time.Minute})
		s.equal(s.remaining(bucketed...), []int64{1}, "at the end of the window")
		s.verdict(s.take(bucketed, points(2)), bucket.Limited)
		s.Advance(2 * time.Minute)
		s.equal(s.remaining(bucketed...), []int64{100}, "when nothing of it weighs")
	}},
	{"a sliding window that becomes anything else weighs no more than it has used, also after the clock was set back", func(s *scene) {
		slid := s.tenantOf(sliding("limit", 100, time.Minute))
		s.take(slid, points(80))
		s.Advance(75 * time.Second)
		s.take(slid, points(10))
		s.Advance(-40 * time.Second)
		s.equal(s.remaining(s.tenantOf(perMinute(100))...), []int64{100}, "of another limit")
		s.equal(s.remaining(s.tenantOf(bucket.Limit{Name: "limit", Capacity: 100, Period: time.Hour})...), []int64{10}, "token bucket")
		s.equal(s.remaining(s.tenantOf(sliding("limit", 100, time.Hour))...), []int64{10}, "longer")
	}},
	{"a receipt of another kind of limit gives nothing back, and ends no window early", func(s *scene) {
		hour := s.tenantOf(calendar("limit", 100, bucket.Window{Kind: bucket.HourWindow}))
		s.Advance(s.take(hour, points(1)).Limits[0].ResetAfter - 5*time.Second)
		s.ok(s.Store.Reset(s.ctx, s.tenant, hour))
		old := s.take(s.tenantOf(bucket.Limit{Name: "limit", Capacity: 100, Period: 10 * time.Second}), points(50)).Receipt
		s.Advance(6 * time.Second)
		s.verdict(s.take(hour, points(100)), bucket.Admitted)
		s.equal(s.settle(bucket.Settlement{Receipt: old, Actual: points(0)}).Limits[0].Charged, int64(0), "given back")
		s.verdict(s.take(hour, points(1)), bucket.Limited)

		second, long := s.tenantOf(fixed("other", 100, time.Second)), s.tenantOf(fixed("other", 100, time.Hour))
		old = s.take(second, points(1)).Receipt
		s.Advance(1100 * time.Millisecond)
		end := s.take(long, points(90)).Limits[0].WindowEnd
		s.equal(s.settle(bucket.Settlement{Receipt: old, Actual: points(11)}).Limits[0].Charged, int64(10), "charged on")
		s.Advance(1100 * time.Millisecond)
		result := s.take(long, points(1))
		s.verdict(result, bucket.Limited)
		s.equal(result.Limits[0].WindowEnd, end, "end")

		short, longer := s.tenantOf(sliding("third", 100, time.Minute)), s.tenantOf(sliding("third", 100, time.Hour))
		old = s.take(short, points(10)).Receipt
		s.Advance(time.Second)
		s.verdict(s.take(longer, points(50)), bucket.Admitted)
		s.equal(s.settle(bucket.Settlement{Receipt: old, Actual: points(0)}).Limits[0].Charged, int64(0), "given back to a longer window")
		s.equal(s.remaining(longer...), []int64{40}, "of the longer window")
	}},
	{"a window of another length or calendar keeps what was used until it ends, or until it is charged", func(s *scene) {
		s.take(s.tenantOf(fixed("limit", 100, time.Hour)), points(60))
		s.Advance(10 * time.Minute)
		s.shows(s.peek(s.tenantOf(fixed("limit", 80, time.Minute))...)[0], windowCheck{20, 50 * time.Minute}, "shorter")
		s.shows(s.peek(s.tenantOf(fixed("limit", 200, 2*time.Hour))...)[0], windowCheck{140, 50 * time.Minute}, "longer")
		day := s.tenantOf(calendar("limit", 100, bucket.Window{Kind: bucket.DayWindow}))
		state := s.take(day, points(1)).Limits[0]
		s.equal(state.Remaining, int64(39), "remaining of the day")
		s.Advance(state.ResetAfter)
		s.shows(s.peek(day...)[0], windowCheck{100, 0}, "next day")
	}},
	{"a window that used more than another kind has holds until it ends, for both", func(s *scene) {
		year := s.tenantOf(calendar("limit", 10, bucket.Window{Kind: bucket.YearWindow}))
		s.take(year, points(10))
		minute := s.tenantOf(fixed("limit", 9, time.Minute))
		result := s.take(minute, points(1))
		s.verdict(result, bucket.Limited)
		s.Advance(result.RetryAfter - time.Millisecond)
		s.verdict(s.take(minute, points(1)), bucket.Limited)
		s.verdict(s.take(year, points(1)), bucket.Limited)
		s.Advance(time.Millisecond)
		s.verdict(s.take(minute, points(1)), bucket.Admitted)
	}},
	{"a lowered capacity leaves a window overdrawn by all that was used, and a raised one knows it again", func(s *scene) {
		s.take(s.tenantOf(fixed("limit", 100, time.Minute)), points(60))
		for _, lower := range []int64{50, 20, 1} {
			state := s.peek(s.tenantOf(fixed("limit", lower, time.Minute))...)[0]
			s.equal([]int64{state.Remaining, state.Overdraft}, []int64{0, 60 - lower}, "remaining, overdraft")
		}
		s.equal(s.remaining(s.tenantOf(fixed("limit", 100, time.Minute))...), []int64{40}, "remaining")
	}},
	{"a window that a caller does not know is carried unchanged", func(s *scene) {
		known, other := fixed("known", 10, time.Hour), perMinute(100)
		s.take(s.tenantOf(known, sliding("too", 10, time.Hour)), points(7))
		for range 3 {
			s.Advance(time.Minute)
			s.verdict(s.take(s.tenantOf(other), points(1)), bucket.Admitted)
		}
		both := s.tenantOf(known, sliding("too", 10, time.Hour))
		s.shows(s.peek(both...)[0], windowCheck{3, 57 * time.Minute}, "fixed")
		s.shows(s.peek(both...)[1], windowCheck{3, 117 * time.Minute}, "sliding")
	}},
	{"a clock that is set back ends no window early, and keeps none open for longer than it lasts", func(s *scene) {
		for _, limit := range []bucket.Limit{fixed("fixed", 10, time.Minute), sliding("sliding", 10, time.Minute)} {
			buckets := s.tenantOf(limit)
			s.take(buckets, points(10))
			s.Advance(-time.Hour)
			s.verdict(s.take(buckets, points(1)), bucket.Limited)
			s.Advance(time.Minute - time.Millisecond)
			s.verdict(s.take(buckets, points(1)), bucket.Limited)
			s.Advance(time.Minute)
			s.verdict(s.take(buckets, points(1)), bucket.Admitted)
			s.ok(s.Store.Reset(s.ctx, s.tenant, buckets))
		}
	}},
	{"a clock that is set back over the edge of a window of the calendar does not fill it twice", func(s *scene) {
		buckets := s.tenantOf(calendar("day", 10, bucket.Window{Kind: bucket.DayWindow, Zone: "Europe/Berlin"}))
		s.take(buckets, points(1))
		for _, back := range []time.Duration{4 * time.Second, 10 * time.Second, time.Minute, time.Hour, 24 * time.Hour} {
			s.Advance(s.peek(buckets...)[0].ResetAfter + 3*time.Second)
			end := s.take(buckets, points(10)).Limits[0].WindowEnd
			s.Advance(-back)
			s.verdict(s.take(buckets, points(1)), bucket.Limited)
			s.Advance(back - 2*time.Second)
			result := s.take(buckets, points(1))
			s.verdict(result, bucket.Limited)
			s.equal(result.Limits[0].WindowEnd, end, "end")
		}
	}},
	{"what was charged before a window gives nothing back in it when the clock is set back over its edge", func(s *scene) {
		buckets := s.tenantOf(calendar("day", 10, bucket.Window{Kind: bucket.DayWindow}))
		s.Advance(s.take(buckets, points(1)).Limits[0].ResetAfter - time.Second)
		early := s.take(buckets, points(5)).Receipt
		s.Advance(4 * time.Second)
		s.take(buckets, points(10))
		s.Advance(-10 * time.Second)
		s.equal(s.settle(bucket.Settlement{Receipt: early, Actual: points(0)}).Limits[0].Charged, int64(0), "given back")
		s.verdict(s.take(buckets, points(1)), bucket.Limited)
	}},
	{"a clock that is set back to another window of the calendar takes what was used along", func(s *scene) {
		buckets := s.tenantOf(calendar("day", 10, bucket.Window{Kind: bucket.DayWindow}))
		s.take(buckets, points(10))
		s.Advance(-48 * time.Hour)
		result := s.take(buckets, points(1))
		s.verdict(result, bucket.Limited)
		s.Advance(result.RetryAfter)
		s.verdict(s.take(buckets, points(1)), bucket.Admitted)
	}},
}

var softTests = []test{
	{"a soft limit is always charged, refuses nothing and says by how much it is exceeded", func(s *scene) {
		for _, limit := range []bucket.Limit{perMinute(10), fixed("minute", 10, time.Minute), sliding("minute", 10, time.Minute)} {
			limit.Soft = true
			buckets := s.tenantOf(limit, bucket.Limit{Name: "day", Capacity: 100, Period: 24 * time.Hour})
			s.verdict(s.take(buckets, points(8)), bucket.Admitted)
			result := s.take(buckets, points(5))
			s.verdict(result, bucket.Admitted)
			state := result.Limits[0]
			s.equal([]int64{state.Charged, state.Remaining, state.Overdraft}, []int64{5, 0, 3}, "charged, remaining, overdraft")
			s.equal([]bool{state.Exceeded, state.Never}, []bool{true, false}, "exceeded, never")
			s.equal(state.RetryAfter > 0, true, "retry after is set")
			s.equal(result.RetryAfter, time.Duration(0), "retry after of the take")
			state = s.take(buckets, points(50)).Limits[0]
			s.equal([]int64{state.Charged, state.Overdraft}, []int64{7, 10}, "charged, overdraft at most")
			s.equal([]bool{state.Exceeded, state.Never}, []bool{true, true}, "exceeded, never")
			result = s.take(buckets, points(50))
			s.verdict(result, bucket.Limited)
			s.equal(result.Limits[0].Charged, int64(0), "charged when another limit refuses")
			s.equal(s.remaining(buckets...), []int64{0, 37}, "remaining")
			s.ok(s.Store.Reset(s.ctx, s.tenant, buckets))
		}
	}},
	{"a soft limit refuses nothing in any mode", func(s *scene) {
		for _, mode := range []bucket.Mode{bucket.Enforce, bucket.Warn, bucket.Shadow} {
			limit := perMinute(10)
			limit.Soft, limit.Mode = true, mode
			buckets := s.tenantOf(limit)
			result := s.take(buckets, points(15))
			s.verdict(result, bucket.Admitted)
			s.equal(result.Limits[0].Overdraft, int64(5), mode.String())
			settled := s.settle(bucket.Settlement{Receipt: result.Receipt, Actual: points(4)})
			s.equal(settled.Limits[0].Remaining, int64(6), mode.String())
			s.ok(s.Store.Reset(s.ctx, s.tenant, buckets))
		}
	}},
}
