package buckettest

import (
	"sync"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
)

// crowd is how many attempts come at once.
const crowd = 50

// attempts makes many attempts at once and counts what they are told. It returns the claims of those that
// were admitted.
func (s *scene) attempts(buckets []bucket.Bucket, claim func() *idempotency.Claim) (counted map[string]int, admitted []*idempotency.Claim) {
	s.Helper()
	counted = map[string]int{}
	var mu sync.Mutex
	var group sync.WaitGroup
	for range crowd {
		attempt := claim()
		group.Go(func() {
			result, err := s.Store.Take(s.ctx, bucket.Take{
				Tenant: s.tenant, Buckets: buckets, Amounts: points(10), Claim: attempt,
			})
			told := result.Verdict.String()
			switch {
			case err != nil:
				told = err.Error()
			case result.Repeat:
				told = "repeat"
			}
			mu.Lock()
			defer mu.Unlock()
			counted[told]++
			if result.Verdict == bucket.Admitted {
				admitted = append(admitted, attempt)
			}
		})
	}
	group.Wait()
	return counted, admitted
}

var claimCrowdTests = []test{
	{"of many attempts at once after an abandoned one, one runs again uncharged", func(s *scene) {
		buckets := s.tenantOf(bucket.Limit{Name: "day", Capacity: 1000, Period: 24 * time.Hour})
		attempt := func() *idempotency.Claim { return s.claim("12345678", "a") }
		s.takeKeyed(buckets, points(10), attempt())
		for range 3 {
			s.Advance(idempotency.DefaultLease)
			counted, _ := s.attempts(buckets, attempt)
			s.equal(counted, map[string]int{"repeat": 1, bucket.InFlight.String(): crowd - 1}, "verdicts")
		}
		s.equal(s.remaining(buckets...), []int64{991}, "remaining")
	}},
	{"of many attempts at once that refuse an abandoned one, none runs", func(s *scene) {
		buckets := s.tenantOf(bucket.Limit{Name: "day", Capacity: 1000, Period: 24 * time.Hour})
		attempt := func() *idempotency.Claim {
			claim := s.claim("12345678", "a")
			claim.RefuseAbandoned = true
			return claim
		}
		s.takeKeyed(buckets, points(10), attempt())
		s.Advance(idempotency.DefaultLease)
		counted, _ := s.attempts(buckets, attempt)
		s.equal(counted, map[string]int{bucket.OutcomeUnknown.String(): crowd}, "verdicts")
		s.equal(s.remaining(buckets...), []int64{990}, "remaining")
	}},
	{"many attempts at once after an answer are all told the answer, or that there is none", func(s *scene) {
		buckets := s.tenantOf(bucket.Limit{Name: "day", Capacity: 1000, Period: 24 * time.Hour})
		for key, answer := range map[idempotency.Key][]byte{"12345678": []byte("x"), "23456789": nil} {
			attempt := func() *idempotency.Claim { return s.claim(key, "a") }
			first := attempt()
			s.takeKeyed(buckets, points(10), first)
			s.finish(first, answer)
			want := bucket.Replayed
			if answer == nil {
				want = bucket.AnswerUnavailable
			}
			counted, _ := s.attempts(buckets, attempt)
			s.equal(counted, map[string]int{want.String(): crowd}, "verdicts")
			counted, _ = s.attempts(buckets, func() *idempotency.Claim { return s.claim(key, "b") })
			s.equal(counted, map[string]int{bucket.KeyReused.String(): crowd}, "verdicts")
		}
		s.equal(s.remaining(buckets...), []int64{980}, "remaining")
	}},
	{"many attempts at once where no answer is stored run one after the other, and each is charged", func(s *scene) {
		buckets := s.tenantOf(bucket.Limit{Name: "day", Capacity: 1000, Period: 24 * time.Hour})
		for range 3 {
			counted, admitted := s.attempts(buckets, s.query)
			s.equal(counted, map[string]int{bucket.Admitted.String(): 1, bucket.InFlight.String(): crowd - 1}, "verdicts")
			s.equal(s.finish(admitted[0], nil).Applied, true, "applied")
		}
		s.equal(s.remaining(buckets...), []int64{970}, "remaining")
	}},
	{"of many attempts at once that nothing is left for, none leaves a record", func(s *scene) {
		buckets := s.tenantOf(perMinute(60))
		s.take(buckets, points(60))
		counted, _ := s.attempts(buckets, func() *idempotency.Claim { return s.claim("12345678", "a") })
		s.equal(counted, map[string]int{bucket.Limited.String(): crowd}, "verdicts")
		s.Advance(time.Minute)
		s.verdict(s.takeKeyed(buckets, points(10), s.claim("12345678", "b")), bucket.Admitted)
	}},
}
