package buckettest

import (
	"math"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

var timeTests = []test{
	{"refill is continuous and stops at the capacity", func(s *scene) {
		buckets := s.tenantOf(perSecond(10))
		s.take(buckets, points(10))
		for _, want := range []int64{0, 0, 1, 1, 2} {
			s.equal(s.remaining(buckets...), []int64{want}, "remaining")
			s.Advance(60 * time.Millisecond)
		}
		s.Advance(10 * time.Hour)
		s.equal(s.remaining(buckets...), []int64{10}, "remaining")
	}},
	{"a take is admitted exactly when its retry says", func(s *scene) {
		buckets := s.tenantOf(bucket.Limit{Name: "odd", Capacity: 100, Refill: 7, Period: 997 * time.Millisecond})
		s.take(buckets, points(100))
		retry := s.take(buckets, points(13)).RetryAfter
		s.equal(retry, 1852*time.Millisecond, "retry after") // ⌈13 × 997 / 7⌉
		s.Advance(retry - time.Millisecond)
		result := s.take(buckets, points(13))
		s.verdict(result, bucket.Limited)
		s.equal(result.RetryAfter, time.Millisecond, "retry after")
		s.Advance(time.Millisecond)
		s.verdict(s.take(buckets, points(13)), bucket.Admitted)
	}},
	{"the retry of several limits is the longest", func(s *scene) {
		buckets := s.tenantOf(perSecond(10), perMinute(10))
		s.take(buckets, points(10))
		s.equal(s.take(buckets, points(1)).RetryAfter, 6*time.Second, "retry after")
	}},
	{"small takes do not lose the parts of tokens", func(s *scene) {
		buckets := s.tenantOf(bucket.Limit{Name: "third", Capacity: 3, Refill: 1, Period: 3 * time.Millisecond})
		s.take(buckets, points(3))
		for range 5 {
			s.Advance(2 * time.Millisecond)
			s.verdict(s.take(buckets, points(1)), bucket.Limited)
			s.Advance(time.Millisecond)
			s.verdict(s.take(buckets, points(1)), bucket.Admitted)
		}
	}},
	{"a clock that was set back a little refills nothing", func(s *scene) {
		buckets := s.tenantOf(perSecond(10))
		s.take(buckets, points(10))
		s.Advance(-4 * time.Second)
		s.verdict(s.take(buckets, points(1)), bucket.Limited)
		s.Advance(4 * time.Second)
		s.equal(s.remaining(buckets...), []int64{0}, "remaining")
		s.Advance(time.Second)
		s.equal(s.remaining(buckets...), []int64{10}, "remaining")
	}},
	{"more than five seconds are far for a clock that was set back", checkSetBack},
	{"a clock that was set back far does not stop the refill of a limit of another policy", func(s *scene) { checkSetBackBeside(s, -time.Hour, 0) }},
	{"a refusal dates a limit anew that another policy left in the future", func(s *scene) { checkSetBackBeside(s, 0, -time.Hour) }},
	{"a limit that another policy left in the future is dated anew alone, where the owner is not", func(s *scene) {
		a, b := s.tenantOf(perMinute(10)), s.tenantOf(bucket.Limit{Name: "hour", Capacity: 1000, Period: time.Hour})
		s.take(a, points(10))
		s.Advance(3 * time.Second)
		s.take(b, points(1))
		// Far enough for the owner, and then for what it carries.
		s.Advance(-7 * time.Second)
		s.take(b, points(1))
		s.Advance(-2 * time.Second)
		s.verdict(s.take(a, points(1)), bucket.Limited)
		// The owner is dated two seconds ahead, where the limit joins it.
		s.Advance(8 * time.Second)
		s.verdict(s.take(a, points(1)), bucket.Admitted)
	}},
	{"a take without limits changes nothing, not even after the clock was set back", func(s *scene) {
		on, off := perMinute(10), perMinute(10)
		off.Mode = bucket.Off
		s.take(s.tenantOf(on), points(10))
		s.Advance(-time.Minute)
		s.verdict(s.take(s.tenantOf(off), points(1)), bucket.Admitted)
		s.Advance(59 * time.Second)
		s.equal(s.remaining(s.tenantOf(on)...), []int64{0}, "remaining")
	}},
	{"a clock that was set back far does not stop the refill, even if all takes are refused", func(s *scene) {
		buckets := s.tenantOf(perSecond(10))
		s.take(buckets, points(10))
		s.Advance(-time.Hour)
		s.verdict(s.take(buckets, points(1)), bucket.Limited)
		s.Advance(100 * time.Millisecond)
		s.verdict(s.take(buckets, points(1)), bucket.Admitted)
	}},
}

// checkSetBackBeside has the clock set back before or after a take of another policy from the same owner.
func checkSetBackBeside(s *scene, before, after time.Duration) {
	a, b := s.tenantOf(perMinute(10)), s.tenantOf(bucket.Limit{Name: "hour", Capacity: 1000, Period: time.Hour})
	s.take(a, points(10))
	s.Advance(before)
	s.take(b, points(1))
	s.Advance(after)
	s.verdict(s.take(a, points(1)), bucket.Limited)
	s.Advance(6 * time.Second)
	s.verdict(s.take(a, points(1)), bucket.Admitted)
}

func checkSetBack(s *scene) {
	base := s.tenant
	for _, test := range []struct {
		back time.Duration
		left int64
	}{{5000 * time.Millisecond, 0}, {5001 * time.Millisecond, 10}} {
		s.tenant = base + test.back.String()
		buckets := s.tenantOf(perSecond(10))
		s.take(buckets, points(10))
		s.Advance(-test.back)
		s.verdict(s.take(buckets, points(1)), bucket.Limited)
		s.Advance(time.Second)
		s.equal(s.remaining(buckets...), []int64{test.left}, "remaining after "+test.back.String())
	}
}

var settleTests = []test{
	{"settling down gives back what is still owed", func(s *scene) {
		buckets := s.tenantOf(perSecond(1000), perMinute(600))
		receipt := s.take(buckets, points(100)).Receipt
		s.Advance(40 * time.Millisecond)
		// The first limit has repaid 40 of 100 since, so that 60 of the 90 are owed.
		settled := s.settle(bucket.Settlement{Receipt: receipt, Actual: points(10)})
		s.equal(settled.Applied, true, "applied")
		s.equal(settled.Limits[0].Charged, int64(-60), "charged")
		s.equal(settled.Limits[1].Charged, int64(-90), "charged")
		s.equal(s.remaining(buckets...), []int64{1000, 590}, "remaining")
	}},
	{"giving back never admits more than the limit would", func(s *scene) {
		buckets := s.tenantOf(perSecond(10))
		receipt := s.take(buckets, points(10)).Receipt
		s.Advance(time.Second)
		s.verdict(s.take(buckets, points(10)), bucket.Admitted)
		s.settle(bucket.Settlement{Receipt: receipt, Actual: points(0)})
		s.equal(s.remaining(buckets...), []int64{0}, "remaining")
	}},
	{"settling up may overdraw to twice the capacity", func(s *scene) {
		buckets := s.tenantOf(perMinute(60))
		receipt := s.take(buckets, points(50)).Receipt
		settled := s.settle(bucket.Settlement{Receipt: receipt, Actual: points(80)})
		s.equal(settled.Limits[0].Charged, int64(30), "charged")
		s.equal(settled.Limits[0].Remaining, int64(0), "remaining")
		s.equal(settled.Limits[0].ResetAfter, 80*time.Second, "reset")
		s.equal(s.take(buckets, points(1)).RetryAfter, 21*time.Second, "retry after")
		s.Advance(30 * time.Second)
		receipt = s.take(buckets, points(10)).Receipt
		settled = s.settle(bucket.Settlement{Receipt: receipt, Actual: points(math.MaxInt64)})
		s.equal(settled.Limits[0].ResetAfter, 2*time.Minute, "reset")
	}},
	{"a receipt is settled once", func(s *scene) {
		buckets := s.tenantOf(perMinute(60))
		receipt := s.take(buckets, points(50)).Receipt
		settlement := bucket.Settlement{Receipt: receipt, Actual: points(20)}
		s.equal(s.settle(settlement).Applied, true, "applied")
		again := s.settle(settlement)
		s.equal(again.Applied, false, "applied again")
		s.equal(len(again.Limits), 0, "number of states")
		s.equal(s.remaining(buckets...), []int64{40}, "remaining")
	}},
	{"a receipt that is too old is not settled", func(s *scene) {
		buckets := s.tenantOf(bucket.Limit{Name: "day", Capacity: 1000, Period: 24 * time.Hour})
		late, timely := s.take(buckets, points(100)).Receipt, s.take(buckets, points(100)).Receipt
		s.Advance(maxReceiptAge - time.Millisecond)
		s.equal(s.settle(bucket.Settlement{Receipt: timely, Actual: points(0)}).Applied, true, "applied in time")
		s.Advance(time.Millisecond)
		s.equal(s.settle(bucket.Settlement{Receipt: late, Actual: points(0)}).Applied, false, "applied late")
	}},
	{"a unit that the settlement does not name keeps its charge", func(s *scene) {
		requests := bucket.Limit{Name: "requests", Unit: bucket.Requests, Capacity: 3, Period: time.Hour}
		buckets := s.tenantOf(perMinute(60), requests)
		amounts := append(points(30), bucket.Amount{Unit: bucket.Requests, N: 1})
		receipt := s.take(buckets, amounts).Receipt
		amounts[0].N, amounts[1].N = 99, 99
		s.settle(bucket.Settlement{Receipt: receipt, Actual: points(5)})
		s.equal(s.remaining(buckets...), []int64{55, 2}, "remaining")
	}},
	{"a limit that was left uncharged is not settled", func(s *scene) {
		buckets := s.tenantOf(shadow(perMinute(10)), bucket.Limit{Name: "hour", Capacity: 100, Period: time.Hour})
		receipt := s.take(buckets, points(20)).Receipt
		settled := s.settle(bucket.Settlement{Receipt: receipt, Actual: points(30)})
		s.equal(settled.Limits[0].Charged, int64(0), "charged")
		s.equal(settled.Limits[1].Charged, int64(10), "charged")
		s.equal(s.remaining(buckets...), []int64{10, 70}, "remaining")
	}},
	{"nothing to settle is nothing", func(s *scene) {
		s.equal(s.settle(bucket.Settlement{}).Applied, false, "applied")
	}},
	{"a grant gives back up to the capacity", func(s *scene) {
		buckets := s.tenantOf(perMinute(60))
		s.take(buckets, points(50))
		states, err := s.Store.Grant(s.ctx, s.tenant, buckets, points(20))
		s.ok(err)
		s.equal(states[0].Remaining, int64(30), "remaining")
		s.equal(states[0].Charged, int64(-20), "charged")
		states, err = s.Store.Grant(s.ctx, s.tenant, buckets, points(math.MaxInt64))
		s.ok(err)
		s.equal(states[0].Remaining, int64(60), "remaining")
		s.equal(s.remaining(buckets...), []int64{60}, "remaining")
	}},
	{"a reset forgets the buckets it names and no others", func(s *scene) {
		buckets := threeOwners(s, 0)
		s.take(buckets, points(5))
		s.ok(s.Store.Reset(s.ctx, s.tenant, buckets[:2]))
		s.equal(s.remaining(buckets...), []int64{10, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 995, 995, 995, 995}, "remaining")
	}},
}

var policyTests = []test{
	{"a changed refill or period keeps what was spent, rounded up", func(s *scene) {
		old := s.tenantOf(perMinute(60))
		s.take(old, points(50))
		s.Advance(500 * time.Millisecond)
		s.equal(s.remaining(s.tenantOf(perMinute(100))...), []int64{50}, "remaining") // 49.5 are spent
		minute := bucket.Limit{Name: "minute", Capacity: 60, Refill: 7, Period: 11 * time.Second}
		s.verdict(s.take(s.tenantOf(minute), points(10)), bucket.Admitted)
		s.verdict(s.take(s.tenantOf(minute), points(1)), bucket.Limited)
	}},
	{"a new limit starts full and the others keep what was spent", func(s *scene) {
		s.take(s.tenantOf(perMinute(60)), points(50))
		both := s.tenantOf(perSecond(10), perMinute(60))
		s.equal(s.remaining(both...), []int64{10, 10}, "remaining")
	}},
	{"limits that a caller does not know are carried unchanged", func(s *scene) {
		hour := bucket.Limit{Name: "hour", Capacity: 1000, Period: time.Hour}
		both, one := s.tenantOf(perMinute(600), hour), s.tenantOf(perMinute(600))
		s.take(both, points(500))
		s.Advance(10 * time.Second)
		s.verdict(s.take(one, points(100)), bucket.Admitted)
		s.Advance(2 * time.Second)
		s.verdict(s.take(one, points(10)), bucket.Admitted)
		// The hour has decayed from its own date on: 12 s are 3⅓ tokens.
		states := s.peek(both...)
		s.equal(states[0].Remaining, int64(110), "minute")
		s.equal(states[1].Remaining, int64(503), "hour")
		s.verdict(s.take(both, points(10)), bucket.Admitted)
		s.equal(s.remaining(both...), []int64{100, 493}, "remaining")
	}},
	{"limits that nobody knows are forgotten when they were to be full", func(s *scene) {
		hour := bucket.Limit{Name: "hour", Capacity: 1000, Period: time.Hour}
		both, one := s.tenantOf(perMinute(600), hour), s.tenantOf(perMinute(600))
		s.take(both, points(500))
		s.Advance(29 * time.Minute)
		s.take(one, points(600))
		s.equal(s.remaining(both...), []int64{0, 983}, "remaining")
		s.Advance(time.Minute)
		s.take(one, points(600))
		s.equal(s.remaining(both...), []int64{0, 1000}, "remaining")
	}},
	{"what one policy refills does not come back under a slower refill", func(s *scene) {
		fast := bucket.Limit{Name: "burst", Capacity: 10, Period: 10 * time.Second}
		slow := bucket.Limit{Name: "burst", Capacity: 10, Refill: 1, Period: time.Hour}
		day := bucket.Limit{Name: "day", Capacity: 1000, Refill: 1, Period: 24 * time.Hour}
		s.take(s.tenantOf(fast), points(10))
		s.take(s.tenantOf(day), points(100))
		s.Advance(9999 * time.Millisecond)
		s.equal(s.remaining(s.tenantOf(slow, day)...), []int64{9, 900}, "remaining")
		s.Advance(time.Millisecond)
		s.equal(s.remaining(s.tenantOf(slow, day)...), []int64{10, 900}, "remaining")
	}},
	{"a period of years changes nothing in what is carried", func(s *scene) {
		year := bucket.Limit{Name: "year", Capacity: 7, Period: 366 * 24 * time.Hour}
		both, one := s.tenantOf(perMinute(600), year), s.tenantOf(perMinute(600))
		s.take(both, points(3))
		s.equal(s.remaining(both...), []int64{597, 4}, "remaining")
		s.take(one, points(1))
		s.take(one, points(1))
		s.equal(s.remaining(both...), []int64{595, 4}, "remaining")
		s.take(both, points(2))
		s.equal(s.remaining(both...), []int64{593, 2}, "remaining")
		s.equal(s.remaining(s.tenantOf(year, perMinute(600))...), []int64{2, 593}, "remaining")
	}},
	{"a renamed limit or unit starts full", func(s *scene) {
		s.take(s.tenantOf(perMinute(60)), points(50))
		other := perMinute(60)
		other.Unit = "exports"
		s.equal(s.remaining(s.tenantOf(other)...), []int64{60}, "remaining")
	}},
}
