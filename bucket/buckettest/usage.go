package buckettest

import (
	"testing"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
)

// RunUsage checks a store that is a bucket.UsageStore as well against the contract of what is counted. It calls open for each
// test.
func RunUsage(t *testing.T, open func(*testing.T) Harness) {
	t.Helper()
	run(t, open, usageTests, usageSettleTests, usageReadTests)
}

// aligned moves the time to some seconds after the beginning of a minute, and returns how many minutes of its hour have passed.
func (s *scene) aligned(buckets []bucket.Bucket) int {
	s.Helper()
	s.takeCounted(buckets, bucket.Amounts{{Unit: "probe", N: 1}}, nil)
	hour, minute := s.find("probe")
	s.probed = hour
	return minute
}

// takeCounted takes and counts.
func (s *scene) takeCounted(buckets []bucket.Bucket, amounts bucket.Amounts, claim *idempotency.Claim, fields ...bucket.FieldUsage) bucket.Result {
	s.Helper()
	result, err := s.Store.Take(s.ctx, bucket.Take{
		Tenant: s.tenant, Buckets: buckets, Amounts: amounts, Claim: claim, Usage: &bucket.Usage{Fields: fields},
	})
	s.ok(err)
	return result
}

// usage returns the store as one that counts.
func (s *scene) usage() bucket.UsageStore {
	s.Helper()
	store, ok := s.Store.(bucket.UsageStore)
	if !ok {
		s.Fatalf("%T is no bucket.UsageStore", s.Store)
	}
	return store
}

// hours returns what was counted in the hours around the time of the store, by what the real time is: its clock may be days ahead.
func (s *scene) hours() []*bucket.UsageHour {
	s.Helper()
	var all []*bucket.UsageHour
	for hour := time.Now().Add(-3 * time.Hour); hour.Before(time.Now().Add(30 * time.Hour)); hour = hour.Add(time.Hour) {
		read, err := s.usage().ReadUsage(s.ctx, s.tenant, hour, bucket.UsageExact)
		s.ok(err)
		if read != nil {
			all = append(all, read)
		}
	}
	return all
}

// counted is what was counted of a unit or root field in all hours: charged, given back and calls.
func (s *scene) counted(name string) [3]int64 {
	s.Helper()
	var sum [3]int64
	for _, hour := range s.hours() {
		for i := range hour.Counts {
			c := &hour.Counts[i]
			if c.Field != name && (c.Field != "" || string(c.Unit) != name) {
				continue
			}
			for _, m := range c.Minutes {
				sum[0], sum[1], sum[2] = sum[0]+m.Charged, sum[1]+m.GivenBack, sum[2]+m.Calls
			}
		}
	}
	return sum
}

// find returns the hour and the minute in which the first of a unit was counted.
func (s *scene) find(unit bucket.Unit) (*bucket.UsageHour, int) {
	s.Helper()
	for _, hour := range s.hours() {
		for i := range hour.Counts {
			for minute, m := range hour.Counts[i].Minutes {
				if hour.Counts[i].Unit == unit && m.Charged > 0 {
					return hour, minute
				}
			}
		}
	}
	s.Fatalf("no %s was counted", unit)
	return nil, 0
}

// usual are the amounts of an operation.
func usual(points int64) bucket.Amounts {
	return bucket.Amounts{{Unit: bucket.Points, N: points}, {Unit: bucket.Requests, N: 1}}
}

var usageTests = []test{
	{"what is admitted is counted, and what is refused is not", func(s *scene) {
		buckets := s.tenantOf(perMinute(10))
		s.verdict(s.takeCounted(buckets, usual(7), nil), bucket.Admitted)
		s.verdict(s.takeCounted(buckets, usual(7), nil), bucket.Limited)
		s.verdict(s.takeCounted(buckets, usual(11), nil), bucket.Never)
		s.equal(s.counted("points"), [3]int64{7}, "points")
		s.equal(s.counted("requests"), [3]int64{1}, "requests")
	}},
	{"nothing is counted unless it is asked for", func(s *scene) {
		s.take(s.tenantOf(perMinute(10)), usual(7))
		s.equal(len(s.hours()), 0, "hours")
	}},
	{"a take without limits is counted", func(s *scene) {
		s.verdict(s.takeCounted(nil, usual(7), nil), bucket.Admitted)
		s.equal(s.counted("points"), [3]int64{7}, "points")
	}},
	{"what runs in shadow mode and over a soft limit is counted as it was admitted", func(s *scene) {
		soft := bucket.Limit{Name: "soft", Capacity: 5, Period: time.Minute, Soft: true}
		for range 3 {
			s.verdict(s.takeCounted(s.tenantOf(shadow(perMinute(10)), soft), usual(100), nil), bucket.Admitted)
		}
		s.equal(s.counted("points"), [3]int64{300}, "points")
	}},
	{"other units and root fields are counted by their names", func(s *scene) {
		for range 2 {
			s.takeCounted(s.tenantOf(perMinute(1000)), append(usual(5), bucket.Amount{Unit: "exports of a week|", N: 3}), nil,
				bucket.FieldUsage{Name: "Query.search", Points: 4, Calls: 2}, bucket.FieldUsage{Name: "Query.me", Points: 1, Calls: 1})
		}
		s.equal(s.counted("exports of a week|"), [3]int64{6}, "exports")
		s.equal(s.counted("Query.search"), [3]int64{8, 0, 4}, "search")
		s.equal(s.counted("Query.me"), [3]int64{2, 0, 2}, "me")
		s.equal(s.counted("requests"), [3]int64{2}, "requests")
	}},
	{"a candidate changes nothing of what is counted", func(s *scene) {
		take := bucket.Take{
			Tenant: s.tenant, Buckets: s.tenantOf(perMinute(10)), Amounts: usual(10), Usage: &bucket.Usage{},
			Candidate: &bucket.Candidate{ID: "next", Buckets: s.tenantOf(perMinute(100))},
		}
		for range 2 {
			_, err := s.Store.Take(s.ctx, take)
			s.ok(err)
		}
		s.equal(s.counted("points"), [3]int64{10}, "points")
	}},
	{"a further attempt under a key is not counted", func(s *scene) {
		claim := s.claim("12345678", "a")
		buckets := s.tenantOf(perMinute(100))
		s.verdict(s.takeCounted(buckets, usual(7), claim), bucket.Admitted)
		s.verdict(s.takeCounted(buckets, usual(7), claim), bucket.Admitted)
		other := s.claim("12345678", "a")
		s.verdict(s.takeCounted(buckets, usual(7), other), bucket.InFlight)
		s.Advance(time.Hour)
		s.equal(s.takeCounted(buckets, usual(7), other).Repeat, true, "repeat")
		s.equal(s.counted("points"), [3]int64{7}, "points")
		s.equal(s.counted("requests"), [3]int64{1}, "requests")
	}},
	{"what is counted is kept by the hour and the minute of the store", func(s *scene) {
		buckets := s.tenantOf(perMinute(1000))
		minute := s.aligned(buckets)
		s.takeCounted(buckets, usual(1), nil)
		s.Advance(time.Minute)
		s.takeCounted(buckets, usual(2), nil)
		s.Advance(time.Hour)
		s.takeCounted(buckets, usual(4), nil)
		total := int64(0)
		for _, hour := range s.hours() {
			for i, m := range hour.Counts[0].Minutes {
				at := int(hour.Hour.Sub(s.probed.Hour)/time.Minute) + i - minute
				total += m.Charged
				if m.Charged > 0 {
					s.equal(m.Charged, map[int]int64{0: 1, 1: 2, 61: 4}[at], "points of a minute")
				}
			}
		}
		s.equal(total, int64(7), "points")
	}},
}
