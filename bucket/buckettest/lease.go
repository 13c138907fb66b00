package buckettest

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// RunLeases checks a store that is a bucket.LeaseStore as well against the contract of leases: what instances of bucket.Leased and the store
// admit together. It calls open for each test.
func RunLeases(t *testing.T, open func(*testing.T) Harness) {
	t.Helper()
	run(t, open, leaseTests, leaseNeverTests, leaseOwnerTests, leaseSettleTests, leaseReadTests)
}

// fleet are instances that lease from the store of a scene.
type fleet struct {
	*scene
	instances []*bucket.Leased
	elapsed   time.Duration
	random    *rand.Rand
}

func (s *scene) fleet(instances int) *fleet {
	s.Helper()
	store, ok := s.Store.(bucket.LeaseStore)
	if !ok {
		s.Fatalf("%T is no bucket.LeaseStore", s.Store)
	}
	f := &fleet{scene: s, random: rand.New(rand.NewPCG(1, 2))} //nolint:gosec // The same cases each time.
	for range instances {
		l := bucket.NewLeased(store, bucket.LeasedConfig{Clock: func() time.Duration { return f.elapsed }, Patience: time.Minute})
		l.Allow(true)
		f.instances = append(f.instances, l)
	}
	return f
}

// pass lets time pass, by the clocks of all.
func (f *fleet) pass(d time.Duration) {
	f.Advance(d)
	f.elapsed += d
}

// tend has all exchange that are due.
func (f *fleet) tend() {
	for _, l := range f.instances {
		l.Tend(f.ctx)
	}
}

// lives lets time pass in steps, in which all do what they do all the time.
func (f *fleet) lives(d time.Duration) {
	for range d / (20 * time.Millisecond) {
		f.pass(20 * time.Millisecond)
		f.tend()
	}
}

// ask has one instance take.
func (f *fleet) ask(instance int, take bucket.Take) bucket.Result {
	f.Helper()
	take.Tenant, take.Lease = f.tenant, bucket.LeaseAlways
	result, err := f.instances[instance].Take(f.ctx, take)
	f.ok(err)
	return result
}

func (f *fleet) takeAt(instance int, buckets []bucket.Bucket, amounts bucket.Amounts) bucket.Result {
	f.Helper()
	return f.ask(instance, bucket.Take{Buckets: buckets, Amounts: amounts})
}

// warm has an instance lease.
func (f *fleet) warm(instance int, buckets []bucket.Bucket) {
	f.Helper()
	for range 3 {
		f.verdict(f.takeAt(instance, buckets, points(1)), bucket.Admitted)
		f.lives(200 * time.Millisecond)
	}
	if f.instances[instance].Stats().Tenants != 1 {
		f.Fatal("nothing is leased")
	}
}

// here reports whether the first instance decides by itself.
func (f *fleet) here(take bucket.Take) (bucket.Result, bool) {
	f.Helper()
	was := f.instances[0].Stats()
	result := f.ask(0, take)
	is := f.instances[0].Stats()
	return result, is.Admitted+is.Refused > was.Admitted+was.Refused
}

func (f *fleet) shutdown() {
	f.Helper()
	for _, l := range f.instances {
		f.ok(l.Shutdown(f.ctx))
	}
}

// envelope is how much may be admitted in any interval of time: a capacity, and what comes back.
type envelope struct {
	capacity, perMilli int64
	// debt is the largest sum, over intervals that end now, of what was admitted less what came back, in thousandths.
	debt int64
	at   time.Duration
}

// admit reports whether more was admitted than may be.
func (e *envelope) admit(now time.Duration, n int64) bool {
	e.debt = max(0, e.debt-e.perMilli*(now-e.at).Milliseconds()) + n
	e.at = now
	return e.debt <= e.capacity
}

var leaseTests = []test{
	{"instances and the store admit no more than the limit in any interval", func(s *scene) {
		f := s.fleet(3)
		buckets := s.tenantOf(bucket.Limit{Name: "second", Capacity: 3000, Refill: 1000, Period: time.Second})
		bound := envelope{capacity: 3000, perMilli: 1}
		admitted, asked := int64(0), int64(0)
		for range 6000 {
			n := 1 + f.random.Int64N(4)
			if f.random.IntN(100) == 0 {
				n = 300
			}
			asked += n
			var result bucket.Result
			if which := f.random.IntN(4); which < 3 {
				result = f.takeAt(which, buckets, points(n))
			} else {
				result = s.take(buckets, points(n))
			}
			if result.Verdict == bucket.Admitted {
				admitted += n
				if !bound.admit(f.elapsed, n) {
					s.Fatalf("more than the limit after %v", f.elapsed)
				}
			}
			f.pass(time.Duration(f.random.Int64N(3)) * time.Millisecond)
			if f.random.IntN(5) == 0 {
				f.tend()
			}
		}
		if most := 3000 + f.elapsed.Milliseconds(); admitted < min(asked, most)*9/10 {
			s.Fatalf("%d of %d in %v were admitted", admitted, asked, f.elapsed)
		}
	}},
	{"an instance decides most takes by itself", func(s *scene) {
		f := s.fleet(1)
		buckets := s.tenantOf(perSecond(10_000))
		f.warm(0, buckets)
		for range 1000 {
			f.verdict(f.takeAt(0, buckets, points(5)), bucket.Admitted)
			f.pass(time.Millisecond)
		}
		stats := f.instances[0].Stats()
		if stats.Admitted < 990 || stats.Exchanges["miss"] > 20 {
			s.Fatalf("%+v", stats)
		}
	}},
	{"what is given back at the end is there for others", func(s *scene) {
		f := s.fleet(2)
		buckets := s.tenantOf(bucket.Limit{Name: "hour", Capacity: 36_000, Refill: 36_000, Period: 10 * time.Hour})
		f.warm(0, buckets)
		f.takeAt(0, buckets, points(500))
		f.shutdown()
		left := s.remaining(buckets...)[0]
		if used := 36_000 - left; used < 495 || used > 510 {
			s.Fatalf("%d are left of 36000 after 503 were taken", left)
		}
		if stats := f.instances[0].Stats(); stats.Tenants != 0 {
			s.Fatalf("%+v", stats)
		}
		_, here := f.here(bucket.Take{Buckets: buckets, Amounts: points(1)})
		s.equal(here, false, "whether it decides after its end")
	}},
	{"what is held by who is gone comes back without a level after its lease", func(s *scene) {
		f := s.fleet(2)
		buckets := s.tenantOf(bucket.Limit{Name: "second", Capacity: 10_000, Refill: 1000, Period: time.Second})
		f.warm(0, buckets)
		f.warm(1, buckets)
		f.instances = f.instances[1:]
		// The lease, and what it takes until somebody looks.
		f.lives(5 * time.Second)
		f.lives(11 * time.Second)
		f.shutdown()
		if left := s.remaining(buckets...)[0]; left != 10_000 {
			s.Fatalf("%d are left", left)
		}
	}},
	{"what is too large for a part is decided by the store, and comes in the end", func(s *scene) {
		f := s.fleet(2)
		buckets := s.tenantOf(perSecond(1000))
		f.warm(0, buckets)
		for range 400 {
			f.takeAt(1, buckets, points(2))
			f.lives(20 * time.Millisecond)
			if f.takeAt(0, buckets, points(240)).Verdict == bucket.Admitted {
				return
			}
		}
		s.Fatal("never admitted")
	}},
	{"what no limit can hold is never", func(s *scene) {
		f := s.fleet(1)
		buckets := s.tenantOf(perSecond(1000))
		f.warm(0, buckets)
		f.verdict(f.takeAt(0, buckets, points(1001)), bucket.Never)
	}},
	{"a refusal here says when to come again, and a client that does is admitted", func(s *scene) {
		f := s.fleet(1)
		buckets := s.tenantOf(perSecond(1000))
		f.warm(0, buckets)
		for f.takeAt(0, buckets, points(20)).Verdict == bucket.Admitted {
		}
		f.lives(2 * time.Second)
		for f.takeAt(0, buckets, points(20)).Verdict == bucket.Admitted {
		}
		refused, here := f.here(bucket.Take{Buckets: buckets, Amounts: points(20)})
		f.verdict(refused, bucket.Limited)
		s.equal(here, true, "whether it is decided here")
		limit := refused.Limits[0]
		if refused.RetryAfter <= 0 || refused.RetryAfter > 2*time.Second || !limit.Exceeded || !limit.Approximate || limit.RetryAfter != refused.RetryAfter {
			s.Fatalf("%+v", refused)
		}
		f.lives(refused.RetryAfter + 20*time.Millisecond)
		f.verdict(f.takeAt(0, buckets, points(20)), bucket.Admitted)
	}},
	{"a limit that counts on when it is used up is not leased", func(s *scene) {
		f := s.fleet(1)
		soft := perSecond(1000)
		soft.Soft = true
		buckets := s.tenantOf(soft)
		for range 5 {
			f.takeAt(0, buckets, points(1))
		}
		s.equal(f.instances[0].Stats().Tenants, 0, "tenants")
	}},
	{"nothing is leased where that is not allowed, and what is leased is given back when it is forbidden", func(s *scene) {
		f := s.fleet(1)
		buckets := s.tenantOf(perSecond(1000))
		f.warm(0, buckets)
		f.instances[0].Allow(false)
		f.lives(1200 * time.Millisecond)
		s.equal(f.instances[0].Stats().Tenants, 0, "tenants")
		f.takeAt(0, buckets, points(1))
		s.equal(f.instances[0].Stats().Tenants, 0, "tenants")
	}},
	{"a take that is not to be leased ends the lease", func(s *scene) {
		f := s.fleet(1)
		buckets := s.tenantOf(perSecond(1000))
		f.warm(0, buckets)
		_, err := f.instances[0].Take(s.ctx, bucket.Take{Tenant: s.tenant, Buckets: buckets, Amounts: points(1)})
		s.ok(err)
		f.lives(time.Second)
		s.equal(f.instances[0].Stats().Tenants, 0, "tenants")
	}},
	{"a quiet tenant is leased no more", func(s *scene) {
		f := s.fleet(1)
		buckets := s.tenantOf(perSecond(1000))
		f.warm(0, buckets)
		f.lives(8 * time.Second)
		s.equal(f.instances[0].Stats().Tenants, 0, "tenants")
		s.equal(s.remaining(buckets...)[0], int64(1000), "left")
	}},
	{"a tenant is leased from 50 takes a second on, or when others hold what it asks for", func(s *scene) {
		f := s.fleet(2)
		buckets := s.tenantOf(perSecond(1000))
		take := func(i int, n int64) bucket.Verdict {
			result, err := f.instances[i].Take(s.ctx, bucket.Take{Tenant: s.tenant, Buckets: buckets, Amounts: points(n), Lease: bucket.LeaseAuto})
			s.ok(err)
			return result.Verdict
		}
		for n := range 60 {
			take(0, 0)
			if leased := f.instances[0].Stats().Tenants; leased > 0 && n < 48 {
				s.Fatalf("leased after %d takes", n)
			}
		}
		s.equal(f.instances[0].Stats().Tenants, 1, "busy tenants")
		take(0, 1)
		for n := 0; take(1, 100) == bucket.Admitted; n++ {
			s.equal(f.instances[1].Stats().Tenants, 0, "tenants of whom nothing was refused")
			if n > 10 {
				s.Fatal("nothing is refused")
			}
		}
		s.equal(f.instances[1].Stats().Tenants, 1, "tenants of whom others hold something")
	}},
	{"what nobody holds is leased by nobody who is refused", func(s *scene) {
		f := s.fleet(1)
		buckets := s.tenantOf(perSecond(1000))
		for range 20 {
			_, err := f.instances[0].Take(s.ctx, bucket.Take{Tenant: s.tenant, Buckets: buckets, Amounts: points(300), Lease: bucket.LeaseAuto})
			s.ok(err)
		}
		s.equal(f.instances[0].Stats().Tenants, 0, "tenants")
	}},
	{"a window admits no more than its limit, and the next one begins full", func(s *scene) {
		f := s.fleet(2)
		limit := bucket.Limit{Name: "minute", Capacity: 5000, Period: 10 * time.Second, Window: bucket.Window{Kind: bucket.FixedWindow}}
		for _, kind := range []bucket.WindowKind{bucket.FixedWindow, bucket.SlidingWindow} {
			limit.Window.Kind, limit.Name = kind, kind.String()
			buckets := s.tenantOf(limit)
			var admitted [3]int64
			start := f.elapsed
			for f.elapsed < start+29*time.Second {
				for i := range f.instances {
					if f.takeAt(i, buckets, points(7)).Verdict == bucket.Admitted {
						admitted[(f.elapsed-start)/(10*time.Second)] += 7
					}
				}
				f.lives(20 * time.Millisecond)
			}
			f.shutdown()
			f = s.fleet(2)
			f.pass(time.Minute)
			for n, in := range admitted {
				// What begins with the first take is a little later each time.
				if in > 5000 || n == 0 && in < 4500 || in < 3500 {
					s.Fatalf("%v: windows of 5000 admitted %v", kind, admitted)
				}
			}
		}
	}},
}
