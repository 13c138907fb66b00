package buckettest

import (
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// both asks the first instance for a take, once so that it may decide by itself and once so that the store does, and reports whether the instance did. What they say must be the same, but for
// when a limit is full again, of which an instance knows its part.
func (f *fleet) both(take bucket.Take) (result bucket.Result, here bool) {
	f.Helper()
	take.States = nil
	result, here = f.here(take)
	central := take
	// A store judges a candidate, and everything with it.
	central.Candidate = &bucket.Candidate{ID: "none"}
	want, byInstance := f.here(central)
	f.equal(byInstance, false, "whether a candidate is judged by an instance")
	f.equal(result.Verdict, want.Verdict, "verdict")
	f.equal(result.RetryAfter, want.RetryAfter, "when to come again")
	f.equal(len(result.Limits), len(want.Limits), "limits")
	for i := range result.Limits {
		is, was := result.Limits[i], want.Limits[i]
		is.ResetAfter, was.ResetAfter = 0, 0
		f.equal(is, was, "limit "+is.Limit.Name)
	}
	f.equal(result.Receipt.IsZero(), want.Receipt.IsZero(), "whether anything was charged")
	return result, here
}

// large is a take of so many points.
func large(buckets []bucket.Bucket, n int64) bucket.Take {
	return bucket.Take{Buckets: buckets, Amounts: points(n)}
}

var leaseNeverTests = []test{
	{"what no limit can hold is never, whoever says so, and an instance says it without the store", func(s *scene) {
		f := s.fleet(1)
		watching := shadow(bucket.Limit{Name: "watching", Capacity: 2000, Refill: 1, Period: time.Hour})
		day := bucket.Limit{Name: "day", Capacity: 150_000, Window: bucket.Window{Kind: bucket.DayWindow}}
		buckets := s.tenantOf(hoarding(), watching, day)
		f.warm(0, buckets)
		for _, n := range []int64{100_001, 150_001, 1 << 53, 1<<63 - 1} {
			result, here := f.both(large(buckets, n))
			s.equal(here, true, "whether it is decided here")
			f.verdict(result, bucket.Never)
			hour, shadowed := result.Limits[0], result.Limits[1]
			if !hour.Never || !hour.Exceeded || hour.Asked != n || hour.RetryAfter != 0 || hour.Held <= 0 || !shadowed.Never || result.RetryAfter != 0 {
				s.Fatalf("%+v", result)
			}
		}
		f.shutdown()
		s.equal(s.remaining(buckets...)[0], int64(100_000-3), "left")
	}},
	{"a client that asks for nothing but what no limit can hold costs a few exchanges, and takes nothing from others", func(s *scene) {
		f := s.fleet(2)
		buckets := s.tenantOf(perSecond(1000))
		f.warm(1, buckets)
		before := f.instances[1].Stats()
		admitted := int64(0)
		for range 1000 {
			f.verdict(f.takeAt(0, buckets, points(1001)), bucket.Never)
			if f.takeAt(1, buckets, points(16)).Verdict == bucket.Admitted {
				admitted += 16
			}
			f.lives(20 * time.Millisecond)
		}
		stats := f.instances[0].Stats()
		exchanges := uint64(0)
		for _, n := range stats.Exchanges {
			exchanges += n
		}
		// In twenty seconds there are a thousand.
		if stats.Central > 0 || stats.Exchanges["release"] > 0 || exchanges > 100 || stats.Refused < 990 {
			s.Fatalf("%+v", stats)
		}
		if after := f.instances[1].Stats(); admitted < 15_000 || after.Central-before.Central > 50 {
			s.Fatalf("%d of 16000 were admitted beside it: %+v", admitted, after)
		}
	}},
	{"a record that makes a limit larger admits what was never possible after a beat", func(s *scene) {
		f := s.fleet(1)
		buckets := s.tenantOf(perSecond(1000))
		f.warm(0, buckets)
		result, here := f.both(large(buckets, 1500))
		f.verdict(result, bucket.Never)
		s.equal(here, true, "whether it is decided here")
		_, err := s.records().SetOverride(s.ctx, s.tenant, bucket.Override{Limit: "second", Capacity: 100_000, Reason: "test", Actor: "test"})
		s.ok(err)
		f.lives(1500 * time.Millisecond)
		for range 100 {
			f.lives(20 * time.Millisecond)
			if f.takeAt(0, buckets, points(1500)).Verdict == bucket.Admitted {
				return
			}
		}
		s.Fatal("never admitted")
	}},
	{"a record that makes a limit smaller is never after a beat, and shown", func(s *scene) {
		f := s.fleet(1)
		buckets := s.tenantOf(hoarding())
		f.warm(0, buckets)
		_, err := s.records().SetOverride(s.ctx, s.tenant, bucket.Override{Limit: "hour", Capacity: 50_000, Reason: "test", Actor: "test"})
		s.ok(err)
		f.lives(1500 * time.Millisecond)
		f.takeAt(0, buckets, points(1))
		f.lives(500 * time.Millisecond)
		result, here := f.both(large(buckets, 60_000))
		f.verdict(result, bucket.Never)
		s.equal(here, true, "whether it is decided here")
		s.equal(result.Limits[0].Overridden, true, "whether it is overridden")
	}},
	{"a block is said of what is never as well", func(s *scene) {
		f := s.fleet(1)
		buckets := s.tenantOf(perSecond(1000))
		f.warm(0, buckets)
		_, err := s.records().SetOverride(s.ctx, s.tenant, bucket.Override{Blocked: true, Reason: "test", Actor: "test"})
		s.ok(err)
		f.lives(1500 * time.Millisecond)
		f.verdict(f.takeAt(0, buckets, points(1001)), bucket.Blocked)
	}},
	{"the store decides about what is more than a limit that watches, and about who has a key or is another owner as well", func(s *scene) {
		f := s.fleet(1)
		watching := shadow(bucket.Limit{Name: "watching", Capacity: 2000, Refill: 1, Period: time.Hour})
		buckets := s.tenantOf(hoarding(), watching)
		f.warm(0, buckets)
		result, here := f.here(large(buckets, 2001))
		f.verdict(result, bucket.Admitted)
		s.equal(here, false, "whether a limit that watches is decided here")
		keyed := large(buckets, 100)
		keyed.Claim = s.claim("12345678", "a")
		f.verdict(f.ask(0, keyed), bucket.Admitted)
		keyed.Amounts, keyed.Claim = points(100_001), s.claim("12345678", "a")
		f.verdict(f.ask(0, keyed), bucket.InFlight)
		ann := bucket.Bucket{Owner: bucket.Owner{Level: bucket.User, Name: "ann"}, Limits: s.compile(perMinute(10))}
		result, here = f.here(large(append([]bucket.Bucket{ann}, buckets...), 100_001))
		f.verdict(result, bucket.Never)
		s.equal(here, false, "whether a user is decided here")
		s.equal(result.Limits[0].Never, true, "whether the user can never have it")
	}},
	{"what a smaller policy can never hold is never at once, and what a larger one can is admitted", func(s *scene) {
		f := s.fleet(1)
		more, fewer := s.tenantOf(perSecond(10_000)), s.tenantOf(perSecond(1000))
		f.warm(0, more)
		for range 3 {
			// Both policies are in force at once while one is rolled out.
			result, here := f.here(large(fewer, 1001))
			f.verdict(result, bucket.Never)
			s.equal(here, true, "whether it is decided here")
			s.equal(result.Limits[0].Limit.Capacity, int64(1000), "capacity")
			f.verdict(f.takeAt(0, more, points(1001)), bucket.Admitted)
			f.lives(time.Second)
		}
	}},
	{"who holds nothing any more asks the store", func(s *scene) {
		f := s.fleet(1)
		buckets := s.tenantOf(perSecond(1000))
		f.warm(0, buckets)
		_, err := s.records().SetOverride(s.ctx, s.tenant, bucket.Override{Limit: "second", Capacity: 4000, Reason: "test", Actor: "test"})
		s.ok(err)
		// Nobody exchanges while the process stands still.
		f.pass(3 * time.Second)
		f.verdict(f.takeAt(0, buckets, points(2000)), bucket.Admitted)
	}},
}
