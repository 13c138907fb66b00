package buckettest

import (
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// settle settles what the first instance was admitted.
func (f *fleet) settle(result *bucket.Result, actual int64) bucket.Settled {
	f.Helper()
	settled, err := f.instances[0].Settle(f.ctx, bucket.Settlement{Receipt: result.Receipt, Actual: points(actual)})
	f.ok(err)
	return settled
}

var leaseSettleTests = []test{
	{"what was taken here and not needed comes back, once", func(s *scene) {
		f := s.fleet(1)
		buckets := s.tenantOf(hoarding())
		f.warm(0, buckets)
		result := f.takeAt(0, buckets, points(1000))
		s.equal(f.settle(&result, 200).Applied, true, "whether it is settled")
		s.equal(f.settle(&result, 200).Applied, false, "whether it is settled again")
		f.shutdown()
		s.equal(s.remaining(buckets...)[0], int64(100_000-203), "left")
	}},
	{"of what was taken here the refill has not to be given back", func(s *scene) {
		f := s.fleet(1)
		buckets := s.tenantOf(bucket.Limit{Name: "second", Capacity: 100_000, Refill: 1000, Period: time.Second})
		f.warm(0, buckets)
		result := f.takeAt(0, buckets, points(1000))
		f.pass(900 * time.Millisecond)
		was := f.takeAt(0, buckets, points(0)).Limits[0].Remaining
		f.settle(&result, 0)
		is := f.takeAt(0, buckets, points(0)).Limits[0].Remaining
		if is-was > 100 {
			s.Fatalf("%d came back of 1000 after 900 ms of 1000 a second", is-was)
		}
	}},
	{"what was worth more than was taken here is charged by the store, once", func(s *scene) {
		f := s.fleet(1)
		buckets := s.tenantOf(hoarding())
		f.warm(0, buckets)
		result := f.takeAt(0, buckets, points(1000))
		f.settle(&result, 1500)
		f.settle(&result, 1500)
		f.shutdown()
		s.equal(s.remaining(buckets...)[0], int64(100_000-1503), "left")
	}},
	{"what was taken here and from the store is settled in both", func(s *scene) {
		f := s.fleet(1)
		tenant, user := s.compile(hoarding()), s.compile(bucket.Limit{Name: "user", Capacity: 5000, Refill: 1, Period: time.Hour})
		buckets := []bucket.Bucket{{Limits: tenant}, {Owner: bucket.Owner{Level: bucket.User, Name: "ann"}, Limits: user}}
		f.warm(0, buckets[:1])
		less, more := f.takeAt(0, buckets, points(1000)), f.takeAt(0, buckets, points(1000))
		s.equal(f.settle(&less, 200).Applied, true, "whether it is settled")
		s.equal(f.settle(&less, 200).Applied, false, "whether it is settled again")
		s.equal(f.settle(&more, 1100).Applied, true, "whether it is settled")
		f.shutdown()
		s.equal(s.remaining(buckets...), []int64{100_000 - 1303, 5000 - 1300}, "left")
	}},
	{"what was taken of a window comes back, also after the lease", func(s *scene) {
		f := s.fleet(1)
		buckets := s.tenantOf(bucket.Limit{Name: "day", Capacity: 100_000, Period: 24 * time.Hour, Window: bucket.Window{Kind: bucket.FixedWindow}})
		f.warm(0, buckets)
		first, second := f.takeAt(0, buckets, points(1000)), f.takeAt(0, buckets, points(1000))
		f.settle(&first, 200)
		f.shutdown()
		f.settle(&second, 300)
		f.settle(&second, 300)
		s.equal(s.remaining(buckets...)[0], int64(100_000-503), "left")
	}},
	{"what was settled under a lease is not settled again after it, nor under another one", func(s *scene) {
		f := s.fleet(1)
		buckets := s.tenantOf(bucket.Limit{Name: "day", Capacity: 100_000, Period: 24 * time.Hour, Window: bucket.Window{Kind: bucket.FixedWindow}})
		f.warm(0, buckets)
		left := int64(100_000 - 3)
		result, here := bucket.Result{}, false
		for tries := 0; !here && tries < 100; tries++ {
			f.lives(100 * time.Millisecond)
			result, here = f.here(bucket.Take{Buckets: buckets, Amounts: points(5)})
			left -= 5
		}
		s.equal(here, true, "whether it is decided here")
		s.equal(f.settle(&result, 2).Applied, true, "whether it is settled")
		f.lives(20 * time.Second)
		s.equal(f.instances[0].Stats().Tenants, 0, "tenants")
		s.equal(f.settle(&result, 2).Applied, false, "whether it is settled again")
		s.equal(s.remaining(buckets...)[0], left+3, "left")
		f.warm(0, buckets)
		s.equal(f.settle(&result, 2).Applied, false, "whether it is settled once more")
		f.shutdown()
		s.equal(s.remaining(buckets...)[0], left, "left")
	}},
	{"what is admitted here is counted, corrected, and counted once", func(s *scene) {
		f := s.fleet(1)
		buckets := s.tenantOf(hoarding())
		f.warm(0, buckets)
		var last bucket.Result
		for range 40 {
			last = f.ask(0, bucket.Take{Buckets: buckets, Amounts: bucket.Amounts{{Unit: bucket.Points, N: 10}, {Unit: bucket.Requests, N: 1}, {Unit: "rows", N: 3}}, Usage: &bucket.Usage{
				Fields: []bucket.FieldUsage{{Name: "Query.search", Points: 9, Calls: 2}},
			}})
			f.verdict(last, bucket.Admitted)
			f.lives(60 * time.Millisecond)
		}
		f.settle(&last, 4)
		f.shutdown()
		points, requests, rows, calls := s.countedInAll()
		s.equal([]int64{points, requests, rows, calls}, []int64{394, 40, 120, 80}, "points, requests, rows and calls")
	}},
}

// countedInAll returns what was counted in all, by the store and for it.
func (s *scene) countedInAll() (points, requests, rows, calls int64) {
	s.Helper()
	for hour := time.Now().Add(-3 * time.Hour); hour.Before(time.Now().Add(30 * time.Hour)); hour = hour.Add(time.Hour) {
		for _, grade := range []bucket.UsageGrade{bucket.UsageExact, bucket.UsageLocal} {
			read, err := s.usage().ReadUsage(s.ctx, s.tenant, hour, grade)
			s.ok(err)
			for i := 0; read != nil && i < len(read.Counts); i++ {
				switch c := &read.Counts[i]; {
				case c.Field != "":
					for m := range c.Minutes {
						calls += c.Minutes[m].Calls
					}
				case c.Unit == bucket.Points:
					points += c.Net()
				case c.Unit == bucket.Requests:
					requests += c.Net()
				default:
					rows += c.Net()
				}
			}
		}
	}
	return points, requests, rows, calls
}
