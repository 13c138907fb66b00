package buckettest

import (
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
)

// hoarding is a limit of which next to nothing comes back.
func hoarding() bucket.Limit {
	return bucket.Limit{Name: "hour", Capacity: 100_000, Refill: 2, Period: time.Hour}
}

var leaseOwnerTests = []test{
	{"a refusal of another owner puts back what was taken here", func(s *scene) {
		f := s.fleet(1)
		tenant, user := s.compile(hoarding()), s.compile(perMinute(10))
		buckets := []bucket.Bucket{{Limits: tenant}}
		f.warm(0, buckets)
		both := []bucket.Bucket{{Owner: bucket.Owner{Level: bucket.User, Name: "ann"}, Limits: user}, {Limits: tenant}}
		first := f.takeAt(0, both, points(10))
		f.verdict(first, bucket.Admitted)
		s.equal(first.Limits[0].Limit.Name+" "+first.Limits[1].Limit.Name, "minute hour", "limits")
		s.equal(first.Limits[1].Charged, int64(10), "charged to the tenant")
		second := f.takeAt(0, both, points(10))
		f.verdict(second, bucket.Limited)
		s.equal(second.Limits[0].Exceeded, true, "whether the user has too little")
		s.equal(second.Limits[1].Exceeded, false, "whether the tenant has too little")
		s.equal(second.Limits[1].Charged, int64(0), "charged to the tenant")
		f.shutdown()
		s.equal(s.remaining(buckets...)[0], int64(100_000-13), "left of the tenant")
	}},
	{"a key is claimed once, and what does not run puts back what it took", func(s *scene) {
		f := s.fleet(1)
		buckets := s.tenantOf(hoarding())
		f.warm(0, buckets)
		claim := s.claim("12345678", "a")
		first := f.ask(0, bucket.Take{Buckets: buckets, Amounts: points(100), Claim: claim})
		f.verdict(first, bucket.Admitted)
		s.equal(first.Limits[0].Charged, int64(100), "charged")
		f.verdict(f.ask(0, bucket.Take{Buckets: buckets, Amounts: points(100), Claim: s.claim("12345678", "a")}), bucket.InFlight)
		settled, err := f.instances[0].Settle(s.ctx, bucket.Settlement{Receipt: first.Receipt, Claim: &bucket.ClaimSettlement{
			Tenant: s.tenant, Claim: claim, Outcome: idempotency.Done, Answer: []byte("a"),
		}})
		s.ok(err)
		s.equal(settled.Applied, true, "whether it is settled")
		replay := f.ask(0, bucket.Take{Buckets: buckets, Amounts: points(100), Claim: s.claim("12345678", "a")})
		f.verdict(replay, bucket.Replayed)
		s.equal(string(replay.Answer), "a", "answer")
		f.verdict(f.ask(0, bucket.Take{Buckets: buckets, Amounts: points(100), Claim: s.claim("12345678", "b")}), bucket.KeyReused)
		f.shutdown()
		s.equal(s.remaining(buckets...)[0], int64(100_000-103), "left")
	}},
	{"a key that was used is answered when nothing is left", func(s *scene) {
		f := s.fleet(1)
		buckets := s.tenantOf(hoarding())
		f.warm(0, buckets)
		claim := s.claim("12345678", "a")
		first := f.ask(0, bucket.Take{Buckets: buckets, Amounts: points(100), Claim: claim})
		f.verdict(first, bucket.Admitted)
		for i := 0; f.takeAt(0, buckets, points(3000)).Verdict == bucket.Admitted || i < 80; i++ {
			f.lives(100 * time.Millisecond)
		}
		for f.takeAt(0, buckets, points(10)).Verdict == bucket.Admitted {
		}
		again := func(operation string) bucket.Result {
			return f.ask(0, bucket.Take{Buckets: buckets, Amounts: points(100), Claim: s.claim("12345678", operation)})
		}
		f.verdict(again("a"), bucket.InFlight)
		f.verdict(again("b"), bucket.KeyReused)
		_, err := f.instances[0].Settle(s.ctx, bucket.Settlement{Receipt: first.Receipt, Actual: points(100), Claim: &bucket.ClaimSettlement{
			Tenant: s.tenant, Claim: claim, Outcome: idempotency.Done, Answer: []byte("a"),
		}})
		s.ok(err)
		f.verdict(again("a"), bucket.Replayed)
		other := f.ask(0, bucket.Take{Buckets: buckets, Amounts: points(100), Claim: s.claim("87654321", "a")})
		f.verdict(other, bucket.Limited)
	}},
	{"an abandoned attempt is repeated without a charge", func(s *scene) {
		f := s.fleet(1)
		buckets := s.tenantOf(hoarding())
		f.warm(0, buckets)
		claim := s.claim("12345678", "a")
		claim.Lease = time.Second
		f.verdict(f.ask(0, bucket.Take{Buckets: buckets, Amounts: points(100), Claim: claim}), bucket.Admitted)
		f.lives(1200 * time.Millisecond)
		again := f.ask(0, bucket.Take{Buckets: buckets, Amounts: points(100), Claim: s.claim("12345678", "a")})
		f.verdict(again, bucket.Admitted)
		s.equal(again.Repeat, true, "whether it is a repeat")
		f.shutdown()
		s.equal(s.remaining(buckets...)[0], int64(100_000-103), "left")
	}},
	{"a limit that only watches is charged here what it has, and refuses nothing", func(s *scene) {
		f := s.fleet(1)
		watching := shadow(bucket.Limit{Name: "watching", Capacity: 2000, Refill: 1, Period: time.Hour})
		buckets := s.tenantOf(hoarding(), watching)
		f.warm(0, buckets)
		short := false
		for range 50 {
			result := f.takeAt(0, buckets, points(50))
			f.verdict(result, bucket.Admitted)
			short = short || result.Limits[1].Exceeded && result.Limits[1].Charged == 0
			f.lives(20 * time.Millisecond)
		}
		s.equal(short, true, "whether it would have refused")
		f.shutdown()
		s.equal(s.remaining(buckets...)[0], int64(100_000-2503), "left of the limit that refuses")
	}},
	{"an override is in force after a beat", func(s *scene) {
		f := s.fleet(2)
		buckets := s.tenantOf(perSecond(1000))
		f.warm(0, buckets)
		f.warm(1, buckets)
		_, err := s.records().SetOverride(s.ctx, s.tenant, bucket.Override{Limit: "second", Capacity: 4000, Reason: "test", Actor: "test"})
		s.ok(err)
		f.lives(1500 * time.Millisecond)
		admitted := 0
		for range 100 {
			for i := range f.instances {
				if f.takeAt(i, buckets, points(20)).Verdict == bucket.Admitted {
					admitted += 20
				}
			}
			f.lives(20 * time.Millisecond)
		}
		// Four times as much comes back.
		if admitted < 2500 {
			s.Fatalf("%d were admitted in 2 s", admitted)
		}
		result := f.takeAt(0, buckets, points(1))
		s.equal(result.Limits[0].Limit.Capacity, int64(4000), "capacity")
		s.equal(result.Limits[0].Overridden, true, "whether it is overridden")
	}},
	{"a block is in force after a beat, and so is its end", func(s *scene) {
		f := s.fleet(2)
		buckets := s.tenantOf(perSecond(1000))
		f.warm(0, buckets)
		f.warm(1, buckets)
		_, err := s.records().SetOverride(s.ctx, s.tenant, bucket.Override{Blocked: true, Reason: "test", Actor: "test"})
		s.ok(err)
		for range 55 {
			f.takeAt(0, buckets, points(1))
			f.lives(20 * time.Millisecond)
		}
		for i := range f.instances {
			f.verdict(f.takeAt(i, buckets, points(1)), bucket.Blocked)
		}
		_, err = s.records().ClearOverrides(s.ctx, s.tenant)
		s.ok(err)
		for i := range f.instances {
			f.verdict(f.takeAt(i, buckets, points(1)), bucket.Admitted)
		}
	}},
	{"a block of a user is in force after a beat for takes of the tenant alone", func(s *scene) {
		f := s.fleet(1)
		buckets := s.tenantOf(perSecond(1000))
		f.warm(0, buckets)
		ann := bucket.Owner{Level: bucket.User, Name: "ann"}
		_, err := s.records().SetOverride(s.ctx, s.tenant, bucket.Override{Owner: ann, Blocked: true, Reason: "test", Actor: "test"})
		s.ok(err)
		f.lives(1200 * time.Millisecond)
		of := func(name string) bucket.Take {
			return bucket.Take{Buckets: buckets, Amounts: points(1), Owners: []bucket.Owner{{}, {Level: bucket.User, Name: name}}}
		}
		f.verdict(f.ask(0, of("ann")), bucket.Blocked)
		f.verdict(f.ask(0, of("bob")), bucket.Admitted)
	}},
	{"an override that expires ends here when it does there", func(s *scene) {
		f := s.fleet(1)
		buckets := s.tenantOf(perSecond(1000))
		f.warm(0, buckets)
		soon := s.storeTime(buckets).Add(3 * time.Second)
		ann := bucket.Owner{Level: bucket.User, Name: "ann"}
		_, err := s.records().SetOverride(s.ctx, s.tenant, bucket.Override{Owner: ann, Blocked: true, Expires: soon, Reason: "test", Actor: "test"})
		s.ok(err)
		take := bucket.Take{Buckets: buckets, Amounts: points(1), Owners: []bucket.Owner{{}, ann}}
		f.lives(1500 * time.Millisecond)
		f.verdict(f.ask(0, take), bucket.Blocked)
		f.lives(1600 * time.Millisecond)
		f.verdict(f.ask(0, take), bucket.Admitted)
	}},
	{"another policy of the same limits holds at once, and one of others after the lease", func(s *scene) {
		f := s.fleet(1)
		buckets := s.tenantOf(perSecond(1000))
		f.warm(0, buckets)
		more := s.tenantOf(perSecond(5000))
		s.equal(f.takeAt(0, more, points(1)).Limits[0].Limit.Capacity, int64(5000), "capacity")
		s.equal(f.instances[0].Stats().Tenants, 1, "tenants")
		other := s.tenantOf(perMinute(70_000), perSecond(3000))
		f.verdict(f.takeAt(0, other, points(1)), bucket.Admitted)
		f.lives(500 * time.Millisecond)
		f.takeAt(0, other, points(1))
		_, here := f.here(bucket.Take{Buckets: other, Amounts: points(1)})
		s.equal(here, true, "whether it is decided here")
	}},
	{"a candidate is judged by the store", func(s *scene) {
		f := s.fleet(1)
		buckets, tight := s.tenantOf(perSecond(1000)), s.tenantOf(perMinute(5))
		f.warm(0, buckets)
		take := bucket.Take{Buckets: buckets, Amounts: points(5), Candidate: &bucket.Candidate{ID: "next", Buckets: tight}}
		s.equal(f.ask(0, take).Candidate.Verdict, bucket.Admitted, "verdict of the candidate")
		result := f.ask(0, take)
		f.verdict(result, bucket.Admitted)
		s.equal(result.Candidate.Verdict, bucket.Limited, "verdict of the candidate")
	}},
	{"a reset and a grant are felt after a beat", func(s *scene) {
		f := s.fleet(1)
		buckets := s.tenantOf(hoarding())
		f.warm(0, buckets)
		empty := func() {
			s.Helper()
			for i := 0; f.takeAt(0, buckets, points(3000)).Verdict == bucket.Admitted || i < 80; i++ {
				f.lives(100 * time.Millisecond)
			}
		}
		empty()
		_, err := f.instances[0].Grant(s.ctx, s.tenant, buckets, points(50_000))
		s.ok(err)
		f.lives(2 * time.Second)
		f.verdict(f.takeAt(0, buckets, points(3000)), bucket.Admitted)
		empty()
		s.ok(f.instances[0].Reset(s.ctx, s.tenant, buckets))
		f.lives(2 * time.Second)
		f.verdict(f.takeAt(0, buckets, points(3000)), bucket.Admitted)
	}},
}

// storeTime is the time of the store, by an attempt that another one finds in flight.
func (s *scene) storeTime(buckets []bucket.Bucket) time.Time {
	s.Helper()
	result := s.takeCounted(buckets, points(0), nil)
	at, _ := result.Receipt.Counted()
	return at
}
