package buckettest

import (
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
)

var claimEndTests = []test{
	{"a released key is free again", func(s *scene) {
		buckets := s.tenantOf(perMinute(60))
		claim := s.claim("12345678", "a")
		receipt := s.takeKeyed(buckets, points(10), claim).Receipt
		s.settle(bucket.Settlement{Receipt: receipt, Actual: points(0), Claim: &bucket.ClaimSettlement{
			Tenant: s.tenant, Claim: claim, Outcome: idempotency.Released,
		}})
		s.equal(s.remaining(buckets...), []int64{60}, "remaining")
		s.verdict(s.takeKeyed(buckets, points(10), s.claim("12345678", "b")), bucket.Admitted)
	}},
	{"when the lease has run out the next attempt runs uncharged and holds the claim", func(s *scene) {
		buckets := s.tenantOf(bucket.Limit{Name: "day", Capacity: 1000, Period: 24 * time.Hour})
		first, second := s.claim("12345678", "a"), s.claim("12345678", "a")
		receipt := s.takeKeyed(buckets, points(10), first).Receipt
		s.Advance(idempotency.DefaultLease - 500*time.Millisecond)
		result := s.takeKeyed(buckets, points(10), second)
		s.verdict(result, bucket.InFlight)
		s.equal(result.RetryAfter, 500*time.Millisecond, "retry after")
		s.Advance(500 * time.Millisecond)
		result = s.takeKeyed(buckets, points(10), second)
		s.verdict(result, bucket.Admitted)
		s.equal(result.Repeat, true, "repeat")
		s.equal(result.Receipt.IsZero(), true, "receipt is zero")
		s.equal(s.remaining(buckets...), []int64{990}, "remaining")
		// The first attempt has lost the claim and settles nothing.
		late := s.settle(bucket.Settlement{Receipt: receipt, Actual: points(0), Claim: &bucket.ClaimSettlement{
			Tenant: s.tenant, Claim: first, Outcome: idempotency.Done, Answer: []byte("first"),
		}})
		s.equal(late.Applied, false, "applied")
		s.equal(s.remaining(buckets...), []int64{990}, "remaining")
		s.equal(s.finish(second, []byte("second")).Applied, true, "applied")
		s.equal(s.takeKeyed(buckets, nil, s.claim("12345678", "a")).Answer, []byte("second"), "answer")
	}},
	{"after an abandoned attempt a claim that refuses it is told that its outcome is unknown", func(s *scene) {
		buckets := s.tenantOf(bucket.Limit{Name: "day", Capacity: 1000, Period: 24 * time.Hour})
		refusing := func(operation string) *idempotency.Claim {
			claim := s.claim("12345678", operation)
			claim.RefuseAbandoned = true
			return claim
		}
		first := refusing("a")
		s.takeKeyed(buckets, points(10), first)
		s.Advance(idempotency.DefaultLease - time.Millisecond)
		s.verdict(s.takeKeyed(buckets, points(10), refusing("a")), bucket.InFlight)
		s.Advance(time.Millisecond)
		for range 2 {
			result := s.takeKeyed(buckets, points(10), refusing("a"))
			s.verdict(result, bucket.OutcomeUnknown)
			s.equal(result.RetryAfter, time.Duration(0), "retry after")
			s.equal(result.Limits[0].Charged, int64(0), "charged")
			s.equal(result.Limits[0].Remaining, int64(990), "remaining")
			s.equal(result.Receipt.IsZero(), true, "receipt is zero")
		}
		s.verdict(s.takeKeyed(buckets, points(10), refusing("b")), bucket.KeyReused)
		// The attempt was only slow: it still holds the claim, and its answer counts.
		s.verdict(s.takeKeyed(buckets, points(10), first), bucket.Admitted)
		s.equal(s.finish(first, []byte("x")).Applied, true, "applied")
		s.verdict(s.takeKeyed(buckets, points(10), refusing("a")), bucket.Replayed)
		s.equal(s.remaining(buckets...), []int64{990}, "remaining")
	}},
	{"a claim that refuses an abandoned attempt refuses also when a repeat after it was released", func(s *scene) {
		s.takeKeyed(nil, nil, s.claim("12345678", "a"))
		s.Advance(idempotency.DefaultLease)
		repeat := s.claim("12345678", "a")
		s.equal(s.takeKeyed(nil, nil, repeat).Repeat, true, "repeat")
		s.equal(s.release(repeat).Applied, true, "applied")
		refusing := s.claim("12345678", "a")
		refusing.RefuseAbandoned = true
		s.verdict(s.takeKeyed(nil, nil, refusing), bucket.OutcomeUnknown)
	}},
	{"operations under a key that may be reused are charged, claimed and replayed one by one", func(s *scene) {
		buckets := s.tenantOf(bucket.Limit{Name: "day", Capacity: 1000, Period: 24 * time.Hour})
		reusable := func(operation string) *idempotency.Claim {
			claim := s.claim("12345678", operation)
			claim.ReuseAsNew = true
			return claim
		}
		a, b := reusable("a"), reusable("b")
		s.verdict(s.takeKeyed(buckets, points(10), a), bucket.Admitted)
		s.verdict(s.takeKeyed(buckets, points(10), b), bucket.Admitted)
		s.verdict(s.takeKeyed(buckets, points(10), reusable("a")), bucket.InFlight)
		s.equal(s.finish(a, []byte("answer a")).Applied, true, "applied")
		s.equal(s.finish(b, []byte("answer b")).Applied, true, "applied")
		s.equal(s.takeKeyed(buckets, points(10), reusable("b")).Answer, []byte("answer b"), "answer")
		s.equal(s.takeKeyed(buckets, points(10), reusable("a")).Answer, []byte("answer a"), "answer")
		s.equal(s.remaining(buckets...), []int64{980}, "remaining")
	}},
	{"releasing a repeat keeps the record of the attempt that was charged", func(s *scene) {
		buckets := s.tenantOf(bucket.Limit{Name: "day", Capacity: 1000, Period: 24 * time.Hour})
		s.takeKeyed(buckets, points(10), s.claim("12345678", "a"))
		s.Advance(idempotency.DefaultLease)
		repeat := s.claim("12345678", "a")
		for range 2 {
			result := s.takeKeyed(buckets, points(10), repeat)
			s.verdict(result, bucket.Admitted)
			s.equal(result.Repeat, true, "repeat")
			s.equal(s.release(repeat).Applied, true, "applied")
			s.equal(s.release(repeat).Applied, false, "applied again")
			s.equal(s.finish(repeat, []byte("late")).Applied, false, "done after the release")
			held, err := s.Store.Renew(s.ctx, s.tenant, repeat)
			s.ok(err)
			s.equal(held, false, "held after the release")
			s.verdict(s.takeKeyed(buckets, points(10), s.claim("12345678", "b")), bucket.KeyReused)
			// A released attempt may ask once more: it repeats like any other.
		}
		last := s.claim("12345678", "a")
		result := s.takeKeyed(buckets, points(10), last)
		s.verdict(result, bucket.Admitted)
		s.equal(result.Repeat, true, "repeat")
		s.equal(result.Limits[0].Charged, int64(0), "charged")
		s.equal(s.remaining(buckets...), []int64{990}, "remaining")
		s.verdict(s.takeKeyed(buckets, points(10), s.claim("12345678", "a")), bucket.InFlight)
		s.equal(s.finish(last, []byte("x")).Applied, true, "applied")
		s.verdict(s.takeKeyed(buckets, points(10), s.claim("12345678", "a")), bucket.Replayed)
	}},
	{"releasing a repeat does not extend the record", func(s *scene) {
		buckets := s.tenantOf(bucket.Limit{Name: "day", Capacity: 1000, Period: 24 * time.Hour})
		query := func() *idempotency.Claim {
			claim := s.claim("12345678", "a")
			claim.TTL, claim.Lease = time.Minute, time.Second
			return claim
		}
		s.takeKeyed(buckets, points(10), query())
		s.Advance(59 * time.Second)
		repeat := query()
		s.equal(s.takeKeyed(buckets, points(10), repeat).Repeat, true, "repeat")
		s.equal(s.release(repeat).Applied, true, "applied")
		s.Advance(time.Second)
		s.equal(s.takeKeyed(buckets, points(10), query()).Repeat, false, "repeat")
	}},
	{"a renewed lease holds", func(s *scene) {
		claim, other := s.claim("12345678", "a"), s.claim("12345678", "a")
		claim.Lease = 10 * time.Second
		s.takeKeyed(nil, nil, claim)
		for range 4 {
			s.Advance(9 * time.Second)
			held, err := s.Store.Renew(s.ctx, s.tenant, claim)
			s.ok(err)
			s.equal(held, true, "held")
		}
		s.verdict(s.takeKeyed(nil, nil, other), bucket.InFlight)
		for _, stranger := range []*idempotency.Claim{other, s.claim("87654321", "a")} {
			held, err := s.Store.Renew(s.ctx, s.tenant, stranger)
			s.ok(err)
			s.equal(held, false, "held by another")
		}
		s.finish(claim, nil)
		held, err := s.Store.Renew(s.ctx, s.tenant, claim)
		s.ok(err)
		s.equal(held, false, "held when done")
	}},
	{"a record that has ended is not renewed", func(s *scene) {
		claim := s.claim("12345678", "a")
		claim.TTL, claim.Lease = time.Second, time.Minute
		s.takeKeyed(nil, nil, claim)
		for _, want := range []bool{true, false} {
			s.Advance(999 * time.Millisecond)
			held, err := s.Store.Renew(s.ctx, s.tenant, claim)
			s.ok(err)
			s.equal(held, want, "held")
		}
	}},
	{"a record lives from the first charge on and nothing extends it", func(s *scene) {
		buckets := s.tenantOf(bucket.Limit{Name: "day", Capacity: 1000, Period: 24 * time.Hour})
		claim := s.claim("12345678", "a")
		claim.TTL = time.Minute
		s.takeKeyed(buckets, points(10), claim)
		s.Advance(20 * time.Second)
		s.finish(claim, []byte("x"))
		s.Advance(39999 * time.Millisecond)
		s.verdict(s.takeKeyed(buckets, points(10), s.claim("12345678", "a")), bucket.Replayed)
		s.Advance(time.Millisecond)
		result := s.takeKeyed(buckets, points(10), s.claim("12345678", "b"))
		s.verdict(result, bucket.Admitted)
		s.equal(result.Repeat, false, "repeat")
	}},
	{"a claim whose record is gone settles nothing", func(s *scene) {
		buckets := s.tenantOf(bucket.Limit{Name: "day", Capacity: 1000, Period: 24 * time.Hour})
		claim := s.claim("12345678", "a")
		claim.TTL = time.Second
		receipt := s.takeKeyed(buckets, points(10), claim).Receipt
		s.Advance(time.Second)
		settled := s.settle(bucket.Settlement{Receipt: receipt, Actual: points(0), Claim: &bucket.ClaimSettlement{
			Tenant: s.tenant, Claim: claim, Outcome: idempotency.Done, Answer: []byte("x"),
		}})
		s.equal(settled.Applied, false, "applied")
		s.equal(s.remaining(buckets...), []int64{990}, "remaining")
	}},
	{"a claim settles its charge however long it ran", func(s *scene) {
		buckets := s.tenantOf(bucket.Limit{Name: "day", Capacity: 1000, Period: 24 * time.Hour})
		claim := s.claim("12345678", "a")
		receipt := s.takeKeyed(buckets, points(100), claim).Receipt
		s.Advance(2 * maxReceiptAge)
		settlement := bucket.Settlement{Receipt: receipt, Actual: points(40), Claim: &bucket.ClaimSettlement{
			Tenant: s.tenant, Claim: claim, Outcome: idempotency.Done, Answer: []byte("x"),
		}}
		s.equal(s.settle(settlement).Applied, true, "applied")
		s.equal(s.remaining(buckets...), []int64{961}, "remaining")
		s.equal(s.settle(settlement).Applied, false, "applied again")
	}},
}
