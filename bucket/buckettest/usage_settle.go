package buckettest

import (
	"errors"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
)

var usageSettleTests = []test{
	{"a settlement corrects what was counted, once, and in the minute of its take", func(s *scene) {
		buckets := s.tenantOf(perMinute(1000))
		minute := s.aligned(buckets)
		receipt := s.takeCounted(buckets, usual(100), nil).Receipt
		s.Advance(59 * time.Second)
		for range 2 {
			s.settle(bucket.Settlement{Receipt: receipt, Actual: points(30)})
		}
		s.equal(s.counted("points"), [3]int64{100, 70}, "points")
		s.equal(s.counted("requests"), [3]int64{1}, "requests")
		for _, hour := range s.hours() {
			if hour.Hour.Equal(s.probed.Hour) {
				s.equal(hour.Counts[0].Minutes[minute].GivenBack, int64(70), "given back in the minute of the take")
			}
		}
	}},
	{"what an operation came to above its charge is counted on", func(s *scene) {
		receipt := s.takeCounted(s.tenantOf(perMinute(10)), usual(10), nil).Receipt
		s.settle(bucket.Settlement{Receipt: receipt, Actual: bucket.Amounts{{Unit: bucket.Points, N: 1000}, {Unit: "bytes", N: 5}}})
		s.equal(s.counted("points"), [3]int64{1000}, "points, of which the limit holds 20")
		s.equal(s.counted("bytes"), [3]int64{5}, "bytes")
	}},
	{"a take that charged no limit is settled as far as it was counted", func(s *scene) {
		receipt := s.takeCounted(nil, usual(10), nil).Receipt
		s.equal(s.settle(bucket.Settlement{Receipt: receipt, Actual: points(4)}).Applied, true, "applied")
		s.equal(s.counted("points"), [3]int64{10, 6}, "points")
	}},
	{"a settlement that comes too late corrects nothing", func(s *scene) {
		receipt := s.takeCounted(s.tenantOf(perMinute(10)), usual(10), nil).Receipt
		s.Advance(time.Minute)
		s.equal(s.settle(bucket.Settlement{Receipt: receipt, Actual: points(0)}).Applied, false, "applied")
		s.equal(s.counted("points"), [3]int64{10}, "points")
	}},
	{"what was not counted is not corrected", func(s *scene) {
		receipt := s.take(s.tenantOf(perMinute(10)), usual(10)).Receipt
		s.settle(bucket.Settlement{Receipt: receipt, Actual: points(0)})
		s.equal(len(s.hours()), 0, "hours")
	}},
	{"a key that is released gives back what was counted, and its next attempt is counted", func(s *scene) {
		buckets := s.tenantOf(perMinute(100))
		claim := s.claim("12345678", "a")
		receipt := s.takeCounted(buckets, usual(7), claim).Receipt
		s.settle(bucket.Settlement{
			Receipt: receipt, Actual: bucket.Amounts{{Unit: bucket.Points}, {Unit: bucket.Requests}},
			Claim: &bucket.ClaimSettlement{Tenant: s.tenant, Claim: claim, Outcome: idempotency.Released},
		})
		s.equal(s.counted("points"), [3]int64{7, 7}, "points")
		s.equal(s.counted("requests"), [3]int64{1, 1}, "requests")
		s.takeCounted(buckets, usual(7), s.claim("12345678", "a"))
		s.equal(s.counted("points"), [3]int64{14, 7}, "points")
	}},
	{"a replay is not counted", func(s *scene) {
		buckets := s.tenantOf(perMinute(100))
		claim := s.claim("12345678", "a")
		receipt := s.takeCounted(buckets, usual(7), claim).Receipt
		s.settle(bucket.Settlement{
			Receipt: receipt, Claim: &bucket.ClaimSettlement{Tenant: s.tenant, Claim: claim, Outcome: idempotency.Done, Answer: []byte("{}")},
		})
		s.verdict(s.takeCounted(buckets, usual(7), s.claim("12345678", "a")), bucket.Replayed)
		s.equal(s.counted("points"), [3]int64{7}, "points")
	}},
}

var usageReadTests = []test{
	{"what was counted since it was read is not forgotten", func(s *scene) {
		buckets := s.tenantOf(perMinute(1000))
		s.takeCounted(buckets, usual(1), nil, bucket.FieldUsage{Name: "Query.me", Points: 1, Calls: 1})
		read := s.hours()[0]
		s.takeCounted(buckets, usual(1), nil, bucket.FieldUsage{Name: "Query.me", Points: 1, Calls: 1})
		s.forget(read, false)
		s.equal(s.counted("Query.me"), [3]int64{2, 0, 2}, "me")
		s.forget(s.hours()[0], true)
		s.equal(len(s.hours()), 0, "hours")
	}},
	{"what is counted after it was forgotten is of another generation", func(s *scene) {
		buckets := s.tenantOf(perMinute(1000))
		receipt := s.takeCounted(buckets, usual(10), nil).Receipt
		read := s.hours()[0]
		s.forget(read, true)
		s.settle(bucket.Settlement{Receipt: receipt, Actual: points(4)})
		again := s.hours()[0]
		s.equal(again.Counts[0].Net(), int64(-6), "points")
		s.equal(again.Counts[0].Generation != read.Counts[0].Generation, true, "another generation")
		s.forget(read, false)
	}},
	{"what was counted lives two days", func(s *scene) {
		s.takeCounted(s.tenantOf(perMinute(1000)), usual(1), nil)
		s.Advance(47 * time.Hour)
		s.equal(s.counted("points"), [3]int64{1}, "points")
	}},
	{"the names of all units and root fields have a bound", func(s *scene) {
		name := make([]byte, 250)
		for i := range name {
			name[i] = 'x'
		}
		for i := range 100 {
			name[0], name[1] = byte('a'+i/10), byte('a'+i%10)
			s.takeCounted(nil, usual(1), nil, bucket.FieldUsage{Name: "Query." + string(name), Points: 1, Calls: 1})
		}
		s.equal(s.counted("points"), [3]int64{100}, "points")
		full, fields := false, 0
		for _, hour := range s.hours() {
			full, fields = full || hour.Full, fields+len(hour.Counts)-2
		}
		s.equal(full, true, "full")
		s.equal(fields > 40 && fields < 60, true, "fields that found room")
	}},
	{"wrong calls count nothing", func(s *scene) {
		for _, usage := range []bucket.Usage{
			{Fields: []bucket.FieldUsage{{Name: "", Points: 1}}},
			{Fields: []bucket.FieldUsage{{Name: "Query.me", Points: -1}}},
			{Fields: []bucket.FieldUsage{{Name: "Query.me"}, {Name: "Query.me"}}},
			{Fields: make([]bucket.FieldUsage, bucket.MaxUsageFields+1)},
		} {
			_, err := s.Store.Take(s.ctx, bucket.Take{Tenant: s.tenant, Amounts: usual(1), Usage: &usage})
			s.equal(errors.Is(err, bucket.ErrInvalid), true, "an invalid call")
		}
		s.equal(len(s.hours()), 0, "hours")
	}},
}

// forget forgets what was read, or is to find that more was counted.
func (s *scene) forget(read *bucket.UsageHour, want bool) {
	s.Helper()
	forgotten, err := s.usage().ForgetUsage(s.ctx, read)
	s.ok(err)
	s.equal(forgotten, want, "forgotten")
}
