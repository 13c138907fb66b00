package buckettest

import (
	"errors"
	"strings"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
)

// try takes under the live buckets and beside them under those of a candidate.
func (s *scene) try(live, candidate []bucket.Bucket, n int64, claim *idempotency.Claim) bucket.Result {
	s.Helper()
	result, err := s.Store.Take(s.ctx, bucket.Take{
		Tenant: s.tenant, Buckets: live, Amounts: points(n), Claim: claim,
		Candidate: &bucket.Candidate{ID: "next", Buckets: candidate},
	})
	s.ok(err)
	return result
}

// trial checks the verdict on the candidate, and what is left of each of its limits.
func (s *scene) trial(result bucket.Result, verdict bucket.Verdict, left ...int64) {
	s.Helper()
	if result.Candidate == nil {
		s.Fatalf("the candidate was not judged")
	}
	s.equal(result.Candidate.Verdict.String(), verdict.String(), "verdict on the candidate")
	var got []int64
	for i := range result.Candidate.Limits {
		got = append(got, result.Candidate.Limits[i].Remaining)
	}
	s.equal(got, left, "what is left to the candidate")
}

var candidateTests = []test{
	{"a candidate is charged from buckets of its own", func(s *scene) {
		live, candidate := s.tenantOf(perMinute(100)), s.tenantOf(perMinute(50))
		s.take(live, points(30))
		result := s.try(live, candidate, 20, nil)
		s.equal(result.Limits[0].Remaining, int64(50), "what is left")
		s.trial(result, bucket.Admitted, 30)
		s.equal(result.Candidate.Limits[0].Charged, int64(20), "charged")
		s.equal(s.remaining(live...), []int64{50}, "what is left")
	}},
	{"a candidate that refuses is not charged, and decides nothing", func(s *scene) {
		live, candidate := s.tenantOf(perMinute(100)), s.tenantOf(perSecond(40), perMinute(10))
		result := s.try(live, candidate, 8, nil)
		s.trial(result, bucket.Admitted, 32, 2)
		result = s.try(live, candidate, 8, nil)
		s.verdict(result, bucket.Admitted)
		s.trial(result, bucket.Limited, 32, 2)
		s.equal(result.Candidate.RetryAfter, 36*time.Second, "retry")
		s.equal(result.Candidate.Limits[1].Exceeded, true, "exceeded")
		s.trial(s.try(live, candidate, 11, nil), bucket.Never, 32, 2)
		s.equal(s.remaining(live...), []int64{73}, "what is left")
	}},
	{"a live refusal charges a candidate that admits", func(s *scene) {
		live, candidate := s.tenantOf(perMinute(10)), s.tenantOf(perMinute(30))
		s.take(live, points(10))
		for _, left := range []int64{20, 10, 0} {
			result := s.try(live, candidate, 10, nil)
			s.verdict(result, bucket.Limited)
			s.trial(result, bucket.Admitted, left)
		}
		s.trial(s.try(live, candidate, 10, nil), bucket.Limited, 0)
		s.verdict(s.try(live, candidate, 11, nil), bucket.Never)
	}},
	{"a candidate's limits in shadow mode are left uncharged as live ones are", func(s *scene) {
		live := s.tenantOf(shadow(perSecond(5)), perMinute(100))
		candidate := []bucket.Bucket{
			{Limits: s.compile(perMinute(100))}, {Owner: ann, Limits: s.compile(perSecond(100), shadow(perMinute(5)))},
		}
		for range 2 {
			s.try(live, candidate, 5, nil)
		}
		result := s.try(live, candidate, 4, nil)
		s.trial(result, bucket.Admitted, 86, 86, 0)
		s.equal(result.Limits[0].Exceeded, true, "live shadow limit")
		s.equal(result.Candidate.Limits[2].Exceeded, true, "shadow limit of the candidate")
		s.equal(result.Candidate.Limits[2].Charged, int64(0), "charged")
	}},
	{"windows and soft limits of a candidate are judged as live ones are", func(s *scene) {
		day := bucket.Limit{Name: "day", Capacity: 10, Window: bucket.Window{Kind: bucket.DayWindow}}
		soft := perMinute(4)
		soft.Soft = true
		live, candidate := s.tenantOf(perMinute(100)), s.tenantOf(day, soft)
		s.trial(s.try(live, candidate, 6, nil), bucket.Admitted, 4, 0)
		s.trial(s.try(live, candidate, 6, nil), bucket.Limited, 4, 0)
		s.trial(s.try(s.tenantOf(day), candidate, 4, nil), bucket.Admitted, 0, 0)
	}},
	{"a replay charges no candidate", func(s *scene) {
		live, candidate := s.tenantOf(perMinute(100)), s.tenantOf(perMinute(50))
		claim := s.claim("12345678", "a")
		s.trial(s.try(live, candidate, 10, claim), bucket.Admitted, 40)
		for _, repeat := range []*idempotency.Claim{claim, s.claim("12345678", "a"), s.claim("12345678", "b")} {
			result := s.try(live, candidate, 10, repeat)
			s.equal(result.Candidate == nil, true, "not judged")
		}
		s.trial(s.try(live, candidate, 10, nil), bucket.Admitted, 30)
	}},
	{"two candidates and the tenants have nothing in common", func(s *scene) {
		live, candidate := s.tenantOf(perMinute(100)), s.tenantOf(perMinute(50))
		s.trial(s.try(live, candidate, 10, nil), bucket.Admitted, 40)
		for _, take := range []bucket.Take{
			{Tenant: s.tenant, Candidate: &bucket.Candidate{ID: "other"}},
			{Tenant: s.tenant + "x", Candidate: &bucket.Candidate{ID: "next"}},
		} {
			take.Buckets, take.Amounts, take.Candidate.Buckets = live, points(10), candidate
			result, err := s.Store.Take(s.ctx, take)
			s.ok(err)
			s.trial(result, bucket.Admitted, 40)
		}
	}},
	{"a candidate alone is judged", func(s *scene) {
		candidate := s.tenantOf(perMinute(50))
		result := s.try(nil, candidate, 10, nil)
		s.verdict(result, bucket.Admitted)
		s.trial(result, bucket.Admitted, 40)
		s.equal(result.Receipt.IsZero(), true, "receipt")
	}},
	{"a promoted candidate starts from what was spent under the live policy", func(s *scene) {
		live, candidate := s.tenantOf(perMinute(100)), s.tenantOf(perMinute(200))
		s.try(live, candidate, 60, nil)
		s.take(live, points(30))
		s.equal(s.remaining(candidate...), []int64{110}, "what is left")
	}},
	{"the buckets of a candidate fill as live ones do", func(s *scene) {
		live, candidate := s.tenantOf(perMinute(100)), s.tenantOf(perMinute(60))
		s.try(live, candidate, 60, nil)
		s.Advance(10 * time.Second)
		s.trial(s.try(live, candidate, 4, nil), bucket.Admitted, 6)
	}},
	{"a candidate that is none is refused and charges nothing", func(s *scene) {
		live := s.tenantOf(perMinute(100))
		limits := s.compile(perMinute(10))
		for name, wrong := range map[string]bucket.Candidate{
			"no id": {}, "braces": {ID: "{a}"}, "colon": {ID: "a:b"}, "long": {ID: strings.Repeat("a", 65)},
			"no limits": {ID: "next", Buckets: []bucket.Bucket{{}}},
			"twice":     {ID: "next", Buckets: []bucket.Bucket{{Limits: limits}, {Limits: limits}}},
		} {
			_, err := s.Store.Take(s.ctx, bucket.Take{Tenant: s.tenant, Buckets: live, Amounts: points(1), Candidate: &wrong})
			s.equal(errors.Is(err, bucket.ErrInvalid), true, name)
		}
		s.equal(s.remaining(live...), []int64{100}, "what is left")
	}},
}

// candidateOverrideTests are of stores that keep override records as well.
var candidateOverrideTests = []test{
	{"a record changes the limits of a candidate too", func(s *scene) {
		live, candidate := s.tenantOf(perMinute(100)), s.tenantOf(perMinute(50))
		s.override(bucket.Override{Limit: "minute", Capacity: 10})
		result := s.try(live, candidate, 4, nil)
		s.equal(result.Limits[0].Remaining, int64(6), "what is left")
		s.trial(result, bucket.Admitted, 6)
	}},
	{"a blocked take judges no candidate", func(s *scene) {
		live, candidate := s.tenantOf(perMinute(100)), s.tenantOf(perMinute(50))
		s.override(bucket.Override{Blocked: true})
		s.blocked(s.try(live, candidate, 4, nil), bucket.Owner{})
	}},
}
