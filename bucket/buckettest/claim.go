package buckettest

import (
	"sync"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
)

// claim returns a fresh attempt under the key, for the operation that the word stands for.
func (s *scene) claim(key idempotency.Key, operation string) *idempotency.Claim {
	s.Helper()
	fingerprint, err := idempotency.NewFingerprint(operation, "", nil)
	s.ok(err)
	return &idempotency.Claim{
		Subject: "ann", Key: key, Fingerprint: fingerprint, Attempt: idempotency.NewAttemptID(),
	}
}

// query returns a fresh attempt under one key at an operation that runs again where no answer is stored.
func (s *scene) query() *idempotency.Claim {
	s.Helper()
	claim := s.claim("12345678", "a")
	claim.RunAgain, claim.TTL = true, time.Minute
	return claim
}

// finish ends the claim of an operation that ran.
func (s *scene) finish(claim *idempotency.Claim, answer []byte) bucket.Settled {
	s.Helper()
	return s.settle(bucket.Settlement{Claim: &bucket.ClaimSettlement{
		Tenant: s.tenant, Claim: claim, Outcome: idempotency.Done, Answer: answer,
	}})
}

// release ends the claim of an operation that did not run.
func (s *scene) release(claim *idempotency.Claim) bucket.Settled {
	s.Helper()
	return s.settle(bucket.Settlement{Claim: &bucket.ClaimSettlement{
		Tenant: s.tenant, Claim: claim, Outcome: idempotency.Released,
	}})
}

var claimTests = []test{
	{"a key without a record is charged and claimed", func(s *scene) {
		buckets := s.tenantOf(perMinute(60))
		result := s.takeKeyed(buckets, points(10), s.claim("12345678", "a"))
		s.verdict(result, bucket.Admitted)
		s.equal(result.Repeat, false, "repeat")
		s.equal(result.Limits[0].Charged, int64(10), "charged")
		result = s.takeKeyed(buckets, points(10), s.claim("12345678", "a"))
		s.verdict(result, bucket.InFlight)
		s.equal(result.RetryAfter, time.Second, "retry after")
		s.equal(result.Limits[0].Charged, int64(0), "charged")
		s.equal(result.Limits[0].Remaining, int64(50), "remaining")
		s.verdict(s.takeKeyed(buckets, points(10), s.claim("87654321", "a")), bucket.Admitted)
		other := s.claim("12345678", "a")
		other.Subject = "bob"
		s.verdict(s.takeKeyed(buckets, points(10), other), bucket.Admitted)
		s.equal(s.remaining(buckets...), []int64{30}, "remaining")
	}},
	{"a refused take writes no claim", func(s *scene) {
		buckets := s.tenantOf(perMinute(60))
		s.take(buckets, points(60))
		s.verdict(s.takeKeyed(buckets, points(10), s.claim("12345678", "a")), bucket.Limited)
		s.verdict(s.takeKeyed(buckets, points(61), s.claim("12345678", "a")), bucket.Never)
		s.Advance(10 * time.Second)
		s.verdict(s.takeKeyed(buckets, points(10), s.claim("12345678", "b")), bucket.Admitted)
	}},
	{"a key that was used for something else is told so, in every state", func(s *scene) {
		buckets := s.tenantOf(perMinute(60))
		first := s.claim("12345678", "a")
		s.takeKeyed(buckets, points(10), first)
		s.verdict(s.takeKeyed(buckets, points(10), s.claim("12345678", "b")), bucket.KeyReused)
		s.finish(first, nil)
		s.verdict(s.takeKeyed(buckets, points(10), s.claim("12345678", "b")), bucket.KeyReused)
		s.equal(s.remaining(buckets...), []int64{50}, "remaining")
	}},
	{"the same attempt is told its first verdict again and charged once", func(s *scene) {
		buckets := s.tenantOf(shadow(perSecond(5)), perMinute(60))
		claim := s.claim("12345678", "a")
		first := s.takeKeyed(buckets, points(10), claim)
		again := s.takeKeyed(buckets, points(10), claim)
		s.verdict(again, bucket.Admitted)
		s.equal(again.Repeat, false, "repeat")
		s.equal(again.Limits[0].Exceeded, true, "exceeded")
		s.equal(again.Limits[0].Never, true, "never")
		s.equal(again.Limits[1].Never, false, "never")
		s.equal(again.Limits[0].Charged, int64(0), "charged")
		s.equal(again.Limits[1].Charged, int64(10), "charged")
		s.equal(again.Limits[1].Remaining, first.Limits[1].Remaining, "remaining")
		// Its receipt settles the one charge.
		settlement := bucket.Settlement{Receipt: again.Receipt, Actual: points(4), Claim: &bucket.ClaimSettlement{
			Tenant: s.tenant, Claim: claim, Outcome: idempotency.Done, Answer: []byte("x"),
		}}
		s.equal(s.settle(settlement).Applied, true, "applied")
		settlement.Receipt = first.Receipt
		s.equal(s.settle(settlement).Applied, false, "applied again")
		s.equal(s.remaining(buckets...), []int64{5, 56}, "remaining")
	}},
	{"an attempt that asks again under other limits is admitted, and settles nothing of them", func(s *scene) {
		first, soft := perMinute(1000), bucket.Limit{Name: "soft", Capacity: 100, Period: time.Hour, Soft: true}
		last := bucket.Limit{Name: "hour", Capacity: 1000, Period: time.Hour}
		all := s.tenantOf(first, soft, last)
		s.take(all, points(150))
		claim := s.claim("12345678", "a")
		s.take(all, points(50))
		s.equal(s.takeKeyed(all, points(150), claim).Limits[1].Charged, int64(0), "charged to the soft limit")
		for _, other := range [][]bucket.Bucket{
			s.tenantOf(soft, last), s.tenantOf(first, soft), s.tenantOf(last), s.tenantOf(first, last, soft), s.tenantOf(perSecond(5000), first, soft, last),
		} {
			again := s.takeKeyed(other, points(150), claim)
			s.verdict(again, bucket.Admitted)
			s.equal(again.Receipt.IsZero(), true, "no receipt")
			for _, limit := range again.Limits {
				s.equal(limit.Charged, int64(0), "charged")
				s.equal(limit.Exceeded, false, "exceeded")
			}
		}
		s.equal(s.takeKeyed(all, points(150), claim).Limits[0].Charged, int64(150), "under the same limits again")
	}},
	{"a stored answer is replayed, charges nothing, and shows the limits as they are", func(s *scene) {
		buckets := s.tenantOf(perMinute(60))
		claim := s.claim("12345678", "a")
		receipt := s.takeKeyed(buckets, points(10), claim).Receipt
		answer := []byte("{\"data\":\x00\xff}")
		settled := s.settle(bucket.Settlement{Receipt: receipt, Actual: points(4), Claim: &bucket.ClaimSettlement{
			Tenant: s.tenant, Claim: claim, Outcome: idempotency.Done, Answer: answer,
		}})
		s.equal(settled.Applied, true, "applied")
		s.equal(settled.Limits[0].Remaining, int64(56), "remaining")
		s.take(buckets, points(6))
		for range 3 {
			result := s.takeKeyed(buckets, points(10), s.claim("12345678", "a"))
			s.verdict(result, bucket.Replayed)
			s.equal(result.Answer, answer, "answer")
			s.equal(result.Limits[0].Remaining, int64(50), "remaining")
			s.equal(result.Limits[0].Charged, int64(0), "charged")
			s.equal(result.Receipt.IsZero(), true, "receipt is zero")
		}
	}},
	{"an empty answer is an answer", func(s *scene) {
		claim := s.claim("12345678", "a")
		s.takeKeyed(nil, nil, claim)
		s.equal(s.finish(claim, []byte{}).Applied, true, "applied")
		result := s.takeKeyed(nil, nil, s.claim("12345678", "a"))
		s.verdict(result, bucket.Replayed)
		s.equal(len(result.Answer), 0, "length of the answer")
	}},
	{"without an answer a repeat that runs again is charged like the first", func(s *scene) {
		buckets := s.tenantOf(perMinute(60))
		for _, left := range []int64{50, 40, 30} {
			claim := s.query()
			claim.RefuseAbandoned = left == 40
			result := s.takeKeyed(buckets, points(10), claim)
			s.verdict(result, bucket.Admitted)
			s.equal(result.Repeat, false, "repeat")
			s.equal(result.Limits[0].Charged, int64(10), "charged")
			s.equal(result.Limits[0].Remaining, left, "remaining")
			s.verdict(s.takeKeyed(buckets, points(10), s.query()), bucket.InFlight)
			again := s.takeKeyed(buckets, points(10), claim)
			s.verdict(again, bucket.Admitted)
			s.equal(again.Repeat, false, "repeat, told again")
			s.equal(s.finish(claim, nil).Applied, true, "applied")
		}
		s.take(buckets, points(25))
		s.verdict(s.takeKeyed(buckets, points(10), s.query()), bucket.Limited)
		s.verdict(s.takeKeyed(buckets, points(10), s.claim("12345678", "a")), bucket.AnswerUnavailable)
	}},
	{"a repeat that was charged again is settled, and its answer replayed, as if it were the first", func(s *scene) {
		buckets := s.tenantOf(perMinute(60))
		claim := s.query()
		s.takeKeyed(buckets, points(10), claim)
		s.finish(claim, nil)
		claim = s.query()
		receipt := s.takeKeyed(buckets, points(10), claim).Receipt
		s.equal(s.settle(bucket.Settlement{Receipt: receipt, Actual: points(4), Claim: &bucket.ClaimSettlement{
			Tenant: s.tenant, Claim: claim, Outcome: idempotency.Done, Answer: []byte("x"),
		}}).Applied, true, "applied")
		result := s.takeKeyed(buckets, points(10), s.query())
		s.verdict(result, bucket.Replayed)
		s.equal(result.Answer, []byte("x"), "answer")
		s.equal(s.remaining(buckets...), []int64{46}, "remaining")
	}},
	{"the record of a repeat that was charged again lives from that charge on", func(s *scene) {
		buckets := s.tenantOf(bucket.Limit{Name: "day", Capacity: 1000, Period: 24 * time.Hour})
		claim := s.query()
		s.takeKeyed(buckets, points(10), claim)
		s.finish(claim, nil)
		s.Advance(59 * time.Second)
		claim = s.query()
		s.takeKeyed(buckets, points(10), claim)
		s.finish(claim, []byte("x"))
		s.Advance(59 * time.Second)
		s.verdict(s.takeKeyed(buckets, points(10), s.query()), bucket.Replayed)
		s.Advance(time.Second)
		result := s.takeKeyed(buckets, points(10), s.query())
		s.verdict(result, bucket.Admitted)
		s.equal(result.Limits[0].Charged, int64(10), "charged")
	}},
	{"a repeat that was charged again and released leaves no record", func(s *scene) {
		buckets := s.tenantOf(bucket.Limit{Name: "day", Capacity: 1000, Period: 24 * time.Hour})
		claim := s.query()
		s.takeKeyed(buckets, points(10), claim)
		s.finish(claim, nil)
		claim = s.query()
		s.takeKeyed(buckets, points(10), claim)
		s.equal(s.release(claim).Applied, true, "applied")
		result := s.takeKeyed(buckets, points(10), s.claim("12345678", "b"))
		s.verdict(result, bucket.Admitted)
		s.equal(result.Repeat, false, "repeat")
		s.equal(s.remaining(buckets...), []int64{970}, "remaining")
	}},
	{"without an answer a repeat is refused", func(s *scene) {
		buckets := s.tenantOf(perMinute(60))
		claim := s.claim("12345678", "a")
		s.takeKeyed(buckets, points(10), claim)
		s.finish(claim, nil)
		s.verdict(s.takeKeyed(buckets, points(10), s.claim("12345678", "a")), bucket.AnswerUnavailable)
		s.equal(s.remaining(buckets...), []int64{50}, "remaining")
	}},
	{"of many attempts at once one is admitted", func(s *scene) {
		buckets := s.tenantOf(perMinute(1000))
		const attempts = 50
		verdicts := make([]bucket.Verdict, attempts)
		var group sync.WaitGroup
		for i := range attempts {
			claim := s.claim("12345678", "a")
			group.Go(func() {
				result, err := s.Store.Take(s.ctx, bucket.Take{
					Tenant: s.tenant, Buckets: buckets, Amounts: points(10), Claim: claim,
				})
				if err == nil {
					verdicts[i] = result.Verdict
				}
			})
		}
		group.Wait()
		count := map[bucket.Verdict]int{}
		for _, verdict := range verdicts {
			count[verdict]++
		}
		s.equal(count, map[bucket.Verdict]int{bucket.Admitted: 1, bucket.InFlight: attempts - 1}, "verdicts")
		s.equal(s.remaining(buckets...)[0] <= 991, true, "charged once")
	}},
}
