package buckettest

import (
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// leases returns who leases the limits, of a store that says it.
func (s *scene) leases(buckets []bucket.Bucket) []bucket.LimitLeases {
	s.Helper()
	store, ok := s.Store.(bucket.LeaseReader)
	if !ok {
		s.Skipf("%T is no bucket.LeaseReader", s.Store)
	}
	all, err := store.Leases(s.ctx, s.tenant, buckets)
	s.ok(err)
	return all
}

// oneLease returns who leases a limit that is the only one of which anything is leased.
func (s *scene) oneLease(buckets []bucket.Bucket) bucket.LimitLeases {
	s.Helper()
	all := s.leases(buckets)
	s.equal(len(all), 1, "limits of which something is leased")
	l := all[0]
	sum := bucket.LimitLeases{Free: l.Free, Holders: l.Holders, Parts: l.Parts}
	for _, p := range l.Parts {
		sum.Capacity, sum.Level, sum.Refill = sum.Capacity+p.Capacity, sum.Level+p.Level, sum.Refill+p.Refill
	}
	s.equal(len(l.Parts), l.Holders, "parts")
	s.equal(sum.Capacity, l.Capacity, "capacity of all parts")
	s.equal(sum.Level, l.Level, "level of all parts")
	s.equal(l.Free.Remaining, s.remaining(buckets...)[0], "what is left in the store")
	return l
}

var leaseReadTests = []test{
	{"a refusal of a limit that is not used up is explained by what others hold", func(s *scene) {
		f := s.fleet(2)
		buckets := s.tenantOf(bucket.Limit{Name: "hour", Capacity: 36_000, Refill: 36_000, Period: time.Hour})
		for range 3 {
			for range 100 {
				f.verdict(f.takeAt(0, buckets, points(20)), bucket.Admitted)
				f.pass(time.Millisecond)
			}
			f.lives(200 * time.Millisecond)
		}
		f.warm(1, buckets)
		l := s.oneLease(buckets)
		s.equal(l.Holders, 2, "holders")
		large, small := l.Parts[0], l.Parts[1]
		if large.Level <= small.Level || large.Level > large.Capacity || large.Capacity < small.Capacity || large.Refill <= 0 || large.Refill > 10 {
			s.Fatalf("%+v", l.Parts)
		}
		for _, p := range l.Parts {
			if len(p.Holder) != 16 || p.EndsIn <= 0 || p.EndsIn > 2*time.Second || p.Ends.IsZero() {
				s.Fatalf("%+v", p)
			}
		}
		if l.Parts[0].Holder == l.Parts[1].Holder {
			s.Fatalf("one name for both: %+v", l.Parts)
		}
		asked := l.Free.Remaining + 1
		s.equal(s.take(buckets, points(asked)).Verdict, bucket.Limited, "what the store lacks")
		if l.Free.Remaining+l.Level < asked {
			s.Fatalf("%d are left, %d are held, and %d were refused", l.Free.Remaining, l.Level, asked)
		}
	}},
	{"an instance tells what it holds apart from what is left for all", func(s *scene) {
		f := s.fleet(1)
		buckets := s.tenantOf(bucket.Limit{Name: "hour", Capacity: 36_000, Refill: 36_000, Period: time.Hour})
		s.equal(s.take(buckets, points(1)).Limits[0].Held, int64(0), "of what nobody leases")
		f.warm(0, buckets)
		admitted := f.takeAt(0, buckets, points(1)).Limits[0]
		l := s.oneLease(buckets)
		if admitted.Held <= 0 || admitted.Held >= l.Capacity || admitted.Remaining-admitted.Held <= 0 || admitted.Remaining-admitted.Held > l.Free.Remaining {
			s.Fatalf("%+v of %+v", admitted, l)
		}
		refused := f.takeAt(0, buckets, points(36_000))
		f.verdict(refused, bucket.Limited)
		if r := refused.Limits[0]; r.Held <= 0 || r.Held > admitted.Held+100 || r.Remaining <= r.Held {
			s.Fatalf("%+v after %+v", r, admitted)
		}
		never := f.takeAt(0, buckets, points(36_001))
		f.verdict(never, bucket.Never)
		s.equal(never.Limits[0].Held, refused.Limits[0].Held, "held, by what the store is asked")
	}},
	{"a limit of which nobody leases anything has no holders", func(s *scene) {
		f := s.fleet(1)
		buckets := s.tenantOf(perSecond(10_000))
		s.equal(len(s.leases(buckets)), 0, "before")
		f.warm(0, buckets)
		s.equal(s.oneLease(buckets).Holders, 1, "while it is leased")
		f.shutdown()
		s.equal(len(s.leases(buckets)), 0, "after")
		s.equal(len(s.leases(nil)), 0, "of no limits")
	}},
	{"what is held of a window is told as its level", func(s *scene) {
		f := s.fleet(1)
		buckets := s.tenantOf(bucket.Limit{Name: "hour", Capacity: 100_000, Period: time.Hour, Window: bucket.Window{Kind: bucket.FixedWindow}})
		f.warm(0, buckets)
		for range 50 {
			f.verdict(f.takeAt(0, buckets, points(10)), bucket.Admitted)
			f.lives(20 * time.Millisecond)
		}
		l := s.oneLease(buckets)
		s.equal(l.Capacity, int64(0), "capacity of parts of a window")
		if used := 100_000 - l.Free.Remaining; l.Level <= 0 || l.Level > used {
			s.Fatalf("%d are held, and %d count as used", l.Level, used)
		}
	}},
	{"who is gone is told until its part is taken back", func(s *scene) {
		f := s.fleet(2)
		buckets := s.tenantOf(perSecond(10_000))
		f.warm(0, buckets)
		f.warm(1, buckets)
		f.pass(3 * time.Second)
		l := s.oneLease(buckets)
		s.equal(l.Holders, 2, "holders after both leases have ended")
		for _, p := range l.Parts {
			if p.EndsIn >= 0 || p.Capacity == 0 {
				s.Fatalf("%+v", p)
			}
		}
	}},
}
