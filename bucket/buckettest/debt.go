package buckettest

import (
	"math"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// The rules of this file hold however the policies differ that meet in one owner: tiers of one tenant, plans that
// change, override records that come and go, deploys that roll.

// kinds returns a limit of each kind, of a name of its own.
func kinds(capacity int64) []bucket.Limit {
	return []bucket.Limit{
		{Name: "token", Capacity: capacity, Period: time.Hour},
		fixed("fixed", capacity, time.Hour),
		sliding("sliding", capacity, time.Hour),
		calendar("month", capacity, bucket.Window{Kind: bucket.MonthWindow}),
	}
}

// requests is a limit of another unit, which every operation is charged.
var requests = bucket.Limit{Name: "requests", Unit: bucket.Requests, Capacity: 1000, Period: time.Second}

// costing is an operation of some points.
func costing(n int64) bucket.Amounts {
	return append(points(n), bucket.Amount{Unit: bucket.Requests, N: 1})
}

// limitOf returns the state of the limit of a name.
func (s *scene) limitOf(states []bucket.LimitState, name string) bucket.LimitState {
	s.Helper()
	for i := range states {
		if states[i].Limit.Name == name {
			return states[i]
		}
	}
	s.Fatalf("no limit %s", name)
	return bucket.LimitState{}
}

// spent returns what the limit has spent, in whole tokens.
func (s *scene) spent(buckets []bucket.Bucket, name string) int64 {
	s.Helper()
	state := s.limitOf(s.peek(buckets...), name)
	return state.Limit.Capacity - state.Remaining + state.Overdraft
}

// grantPoints gives points back and returns the states.
func (s *scene) grantPoints(buckets []bucket.Bucket, n int64) []bucket.LimitState {
	s.Helper()
	states, err := s.Store.Grant(s.ctx, s.tenant, buckets, points(n))
	s.ok(err)
	return states
}

var debtTests = []test{
	{"what costs nothing gives nothing back, whatever capacity it is judged under", func(s *scene) {
		for i, large := range kinds(1000) {
			small := kinds(10)[i]
			many, few := s.tenantOf(requests, large), s.tenantOf(small, requests)
			s.verdict(s.take(many, costing(1000)), bucket.Admitted)
			for range 3 {
				s.verdict(s.take(few, costing(0)), bucket.Admitted)
				s.verdict(s.take(few, costing(1)), bucket.Limited)
				s.equal(s.spent(many, large.Name), int64(1000), large.Name)
				s.verdict(s.take(many, costing(1)), bucket.Limited)
			}
			s.ok(s.Store.Reset(s.ctx, s.tenant, many))
		}
	}},
	{"a limit in shadow or warn, or a soft one, of a smaller capacity gives nothing back", func(s *scene) {
		for i, large := range kinds(1000) {
			for _, change := range []func(*bucket.Limit){
				func(l *bucket.Limit) { l.Mode = bucket.Shadow }, func(l *bucket.Limit) { l.Mode = bucket.Warn },
				func(l *bucket.Limit) { l.Soft = true },
			} {
				small := kinds(10)[i]
				change(&small)
				many, few := s.tenantOf(large, requests), s.tenantOf(small, requests)
				s.verdict(s.take(many, costing(1000)), bucket.Admitted)
				for _, n := range []int64{0, 1, 7, 5000} {
					s.verdict(s.take(few, costing(n)), bucket.Admitted)
				}
				s.equal(s.spent(many, large.Name), int64(1000), large.Name)
				s.ok(s.Store.Reset(s.ctx, s.tenant, many))
			}
		}
	}},
	{"a settlement under a smaller capacity gives back what it says, and charges on without giving back", func(s *scene) {
		for i, large := range kinds(1000) {
			small := kinds(10)[i]
			many, few := s.tenantOf(large, requests), s.tenantOf(small, requests)
			less, more := s.take(few, costing(5)).Receipt, s.take(few, costing(5)).Receipt
			s.verdict(s.take(many, costing(990)), bucket.Admitted)
			s.equal(s.limitOf(s.settle(bucket.Settlement{Receipt: less, Actual: points(4)}).Limits, small.Name).Charged, int64(-1), large.Name)
			s.equal(s.spent(many, large.Name), int64(999), large.Name)
			// A limit is overdrawn to twice its capacity, which is spent already.
			s.equal(s.limitOf(s.settle(bucket.Settlement{Receipt: more, Actual: points(400)}).Limits, small.Name).Charged, int64(0), large.Name)
			s.equal(s.spent(many, large.Name), int64(999), large.Name)
			s.ok(s.Store.Reset(s.ctx, s.tenant, many))
		}
	}},
	{"a grant under a smaller capacity gives back what it says", func(s *scene) {
		for i, large := range kinds(1000) {
			many, few := s.tenantOf(large, requests), s.tenantOf(kinds(10)[i], requests)
			s.verdict(s.take(many, costing(1000)), bucket.Admitted)
			s.equal(s.limitOf(s.grantPoints(few, 3), large.Name).Charged, int64(-3), large.Name)
			s.equal(s.spent(many, large.Name), int64(997), large.Name)
			// What is given back is not bounded by the capacity of whoever gives.
			s.equal(s.limitOf(s.grantPoints(few, 500), large.Name).Charged, int64(-500), large.Name)
			s.equal(s.spent(many, large.Name), int64(497), large.Name)
			s.grantPoints(few, math.MaxInt64)
			s.equal(s.spent(many, large.Name), int64(0), large.Name)
			s.ok(s.Store.Reset(s.ctx, s.tenant, many))
		}
	}},
	{"an honest downgrade waits for what it owes as long as it would have before, and no longer", func(s *scene) {
		month := 30 * 24 * time.Hour
		pro := s.tenantOf(bucket.Limit{Name: "month", Capacity: 1_000_000, Period: month}, requests)
		free := s.tenantOf(bucket.Limit{Name: "month", Capacity: 1000, Period: month}, requests)
		s.take(pro, costing(1_000_000))
		result := s.take(free, costing(1000))
		// It comes back as pro's does.
		s.equal(result.RetryAfter, month, "retry of all that the new plan has")
		s.equal(result.Limits[0].ResetAfter, month, "reset")
		s.equal(s.take(free, costing(1)).RetryAfter, ceil(month, 999_001, 1_000_000), "retry of a point")
		s.Advance(month - time.Millisecond)
		s.verdict(s.take(free, costing(1000)), bucket.Limited)
		s.Advance(time.Millisecond)
		s.verdict(s.take(free, costing(1000)), bucket.Admitted)
		// What is charged now is of the new plan, and comes back as that says.
		s.equal(s.take(free, costing(1)).RetryAfter, ceil(month, 1, 1000), "retry under the new plan")
	}},
	{"a debt within the capacity comes back as the policy says that charges it, and no faster", func(s *scene) {
		pro := s.tenantOf(bucket.Limit{Name: "hour", Capacity: 1000, Refill: 1000, Period: time.Minute}, requests)
		free := s.tenantOf(bucket.Limit{Name: "hour", Capacity: 1000, Period: time.Hour}, requests)
		s.take(pro, costing(900))
		s.verdict(s.take(free, costing(1)), bucket.Admitted)
		s.Advance(time.Minute)
		s.equal(s.spent(free, "hour"), int64(885), "as free") // 901 − 1000/60, rounded up
	}},
	{"a request under a slower plan takes away nothing that the refill of a faster one has brought back", func(s *scene) {
		day := 24 * time.Hour
		pro := s.tenantOf(bucket.Limit{Name: "month", Capacity: 10_000, Period: day}, requests)
		free := s.tenantOf(bucket.Limit{Name: "month", Capacity: 5000, Period: 30 * day}, requests)
		s.take(pro, costing(5000))
		s.Advance(6 * time.Hour)
		s.equal(s.spent(pro, "month"), int64(2500), "as pro")
		s.equal(s.spent(free, "month"), int64(2500), "as free")
		s.verdict(s.take(free, costing(100)), bucket.Admitted)
		s.equal(s.spent(pro, "month"), int64(2600), "as pro")
		s.equal(s.spent(free, "month"), int64(2600), "as free")
	}},
	{"a request that costs nothing changes nothing for a slower plan", func(s *scene) {
		pro := s.tenantOf(perMinute(1000), requests)
		free := s.tenantOf(bucket.Limit{Name: "minute", Capacity: 1000, Period: 30 * 24 * time.Hour}, requests)
		s.take(pro, costing(900))
		s.Advance(50 * time.Second)
		s.equal(s.spent(free, "minute"), int64(67), "before")
		s.take(pro, costing(0))
		s.equal(s.spent(free, "minute"), int64(67), "after")
	}},
	{"a soft limit charges nothing above its capacity in slower terms, in which it would be owed for longer than it says", func(s *scene) {
		month := 30 * 24 * time.Hour
		slow := s.tenantOf(bucket.Limit{Name: "month", Capacity: 3, Period: month}, requests)
		s.take(slow, costing(3))
		for capacity := int64(2); capacity < 2000; capacity = 2*capacity - 1 {
			soft := s.tenantOf(bucket.Limit{Name: "month", Capacity: capacity, Period: time.Second, Soft: true}, requests)
			s.verdict(s.take(soft, costing(5*capacity)), bucket.Admitted)
		}
		s.equal(s.take(slow, costing(1)).RetryAfter <= 2*month/3, true, "retry")
	}},
	{"a debt beyond what a faster plan can count falls no faster than it was made", func(s *scene) {
		made := s.tenantOf(bucket.Limit{Name: "month", Capacity: 1 << 30, Refill: 1 << 20, Period: time.Second}, requests)
		// Of its units, less than 1/2^32 of a token, 2^53 are 2^21 tokens, which its refill brings in a second.
		const period = 1<<32 + 1
		fine := s.tenantOf(bucket.Limit{Name: "month", Capacity: 1_000_000, Refill: 2000*period + 1, Period: period * time.Millisecond}, requests)
		coarse := s.tenantOf(bucket.Limit{Name: "month", Capacity: 1_000_000, Refill: 1 << 22, Period: time.Second}, requests)
		for _, faster := range [][]bucket.Bucket{fine, coarse} {
			s.take(made, costing(1<<30))
			s.verdict(s.take(faster, costing(1)), bucket.Limited)
			s.Advance(100 * time.Second)
			s.verdict(s.take(faster, costing(1)), bucket.Limited)
			s.ok(s.Store.Reset(s.ctx, s.tenant, made))
		}
	}},
	{"what an operation under a window turned out to be worth is not owed at the refill of a slow token bucket", func(s *scene) {
		slow := s.tenantOf(bucket.Limit{Name: "b", Capacity: 10, Refill: 1, Period: 24 * time.Hour}, requests)
		window := s.tenantOf(fixed("b", 1_000_000, time.Second), requests)
		receipt := s.take(window, costing(1)).Receipt
		s.take(slow, costing(1))
		settled := s.settle(bucket.Settlement{Receipt: receipt, Actual: points(1_000_000)})
		s.equal(s.limitOf(settled.Limits, "b").Charged, int64(999_999), "charged on")
		s.Advance(time.Second)
		s.verdict(s.take(window, costing(1000)), bucket.Admitted)
		s.Advance(time.Second)
		s.verdict(s.take(slow, costing(10)), bucket.Admitted)
	}},
	{"no sliding window counts more than the state has room for", func(s *scene) {
		soft := sliding("b", 800_000, 30*24*time.Hour)
		soft.Soft = true
		slid, large := s.tenantOf(soft, requests), s.tenantOf(fixed("b", 10_000_000, time.Minute), requests)
		receipt := s.take(large, costing(1)).Receipt
		s.take(slid, costing(1))
		s.settle(bucket.Settlement{Receipt: receipt, Actual: points(4_000_000)})
		for range 3 {
			s.Advance(29 * 24 * time.Hour)
			receipt = s.take(slid, costing(1_600_000)).Receipt
			s.settle(bucket.Settlement{Receipt: receipt, Actual: points(4_000_000)})
			s.Advance(3 * 24 * time.Hour)
			s.verdict(s.take(slid, costing(1_600_000)), bucket.Admitted)
			s.peek(large...)
		}
	}},
	{"a raised refill counts from the next call on, also for what was spent before", func(s *scene) {
		s.take(s.tenantOf(perMinute(60), requests), costing(60))
		raised := s.tenantOf(bucket.Limit{Name: "minute", Capacity: 60, Refill: 6000, Period: time.Minute}, requests)
		s.Advance(100 * time.Millisecond)
		s.verdict(s.take(raised, costing(10)), bucket.Admitted)
		s.Advance(600 * time.Millisecond)
		s.verdict(s.take(raised, costing(60)), bucket.Admitted)
	}},
	{"a slower plan starves no faster one", func(s *scene) {
		fast := s.tenantOf(bucket.Limit{Name: "b", Capacity: 100, Period: time.Second}, requests)
		slow := s.tenantOf(bucket.Limit{Name: "b", Capacity: 200, Refill: 1, Period: time.Hour}, requests)
		admitted := int64(0)
		for range 20 {
			s.take(slow, costing(1))
			for s.take(fast, costing(10)).Verdict == bucket.Admitted {
				admitted += 10
			}
			s.Advance(500 * time.Millisecond)
		}
		s.equal(admitted >= 900, true, "admitted")
		s.equal(admitted <= 100+950, true, "admitted")
	}},
	{"a grant and a settlement under another refill give back what they say, for whoever looks", func(s *scene) {
		slow := bucket.Limit{Name: "b", Capacity: 1000, Period: time.Hour}
		fast := bucket.Limit{Name: "b", Capacity: 1000, Period: 100 * time.Second}
		for _, policies := range [][2]bucket.Limit{{slow, fast}, {fast, slow}} {
			charged, other := s.tenantOf(policies[0], requests), s.tenantOf(policies[1], requests)
			s.take(other, costing(500))
			receipt := s.take(other, costing(400)).Receipt
			s.take(charged, costing(10))
			s.Advance(20 * time.Second)
			before := s.spent(charged, "b")
			s.equal(s.limitOf(s.grantPoints(other, 1), "b").Charged, int64(-1), "granted")
			s.equal(s.spent(charged, "b"), before-1, "after a grant")
			settled := s.settle(bucket.Settlement{Receipt: receipt, Actual: points(399)})
			s.equal(s.limitOf(settled.Limits, "b").Charged, int64(-1), "settled")
			s.equal(s.spent(charged, "b"), before-2, "after a settlement")
			s.Advance(20 * time.Second)
			came := 1000 * int64(20*time.Second) / int64(policies[0].Period)
			s.equal(before-2-s.spent(charged, "b") <= came+1, true, "it comes back as it did")
			s.ok(s.Store.Reset(s.ctx, s.tenant, charged))
		}
	}},
	{"two tiers of one tenant share what the larger one has, whoever spends it", func(s *scene) {
		pro, free := s.tenantOf(perMinute(1000), requests), s.tenantOf(perMinute(100), requests)
		total := int64(0)
		for range 200 {
			for _, tier := range [][]bucket.Bucket{free, pro} {
				if s.take(tier, costing(60)).Verdict == bucket.Admitted {
					total += 60
				}
				s.take(tier, costing(0))
			}
			s.Advance(10 * time.Millisecond)
		}
		// 1000, and what 1000 a minute bring in 2 s.
		s.equal(total <= 1000+34, true, "admitted")
		s.equal(total >= 960, true, "admitted")
	}},
	{"a limit keeps its budget while its unit comes and goes", func(s *scene) {
		with, without := s.tenantOf(perMinute(100), requests), s.tenantOf(requests)
		s.take(with, costing(100))
		for range 3 {
			s.take(without, costing(50))
		}
		s.equal(s.spent(with, "minute"), int64(100), "spent")
	}},
	{"a soft limit gives back what it was charged, and no more", func(s *scene) {
		for _, limit := range kinds(100) {
			limit.Soft = true
			buckets := s.tenantOf(limit, requests)
			var receipts []bucket.Receipt
			for range 20 {
				receipts = append(receipts, s.take(buckets, costing(100)).Receipt)
			}
			s.equal(s.spent(buckets, limit.Name), int64(200), limit.Name)
			// Two of them were charged, and give back 20 each; what the others took was never counted.
			for _, receipt := range receipts {
				s.settle(bucket.Settlement{Receipt: receipt, Actual: points(80)})
			}
			s.equal(s.spent(buckets, limit.Name), int64(160), limit.Name)
			s.ok(s.Store.Reset(s.ctx, s.tenant, buckets))
		}
	}},
	{"a soft limit that was charged a part gives back of that part what the operation did not come to", func(s *scene) {
		limit := perMinute(100)
		limit.Soft = true
		buckets := s.tenantOf(limit)
		s.take(buckets, points(170))
		receipt := s.take(buckets, points(90)).Receipt
		s.equal(s.settle(bucket.Settlement{Receipt: receipt, Actual: points(60)}).Limits[0].Charged, int64(0), "charged 30 of 90, came to 60")
		receipt = s.take(buckets, points(90)).Receipt
		s.equal(receipt.IsZero(), true, "nothing was charged")
		s.Advance(30 * time.Second)
		receipt = s.take(buckets, points(90)).Receipt
		s.equal(s.settle(bucket.Settlement{Receipt: receipt, Actual: points(20)}).Limits[0].Charged, int64(-30), "charged 50 of 90, came to 20")
	}},
}

// ceil is the part n/of of a time, rounded up to milliseconds.
func ceil(of time.Duration, n, parts int64) time.Duration {
	ms := of.Milliseconds() * n
	return time.Duration((ms+parts-1)/parts) * time.Millisecond
}

var debtOverrideTests = []test{
	{"an override record that lowers a limit and is taken away leaves what was spent", func(s *scene) {
		for _, limit := range kinds(100_000) {
			buckets := s.tenantOf(limit, requests)
			s.verdict(s.take(buckets, costing(100_000)), bucket.Admitted)
			s.override(bucket.Override{Limit: limit.Name, Capacity: 10})
			s.verdict(s.take(buckets, costing(1)), bucket.Limited)
			s.verdict(s.take(buckets, costing(0)), bucket.Admitted)
			_, err := s.records().DeleteOverride(s.ctx, s.tenant, bucket.Owner{}, limit.Name)
			s.ok(err)
			s.equal(s.spent(buckets, limit.Name), int64(100_000), limit.Name)
			s.verdict(s.take(buckets, costing(1)), bucket.Limited)
			s.ok(s.Store.Reset(s.ctx, s.tenant, buckets))
		}
	}},
	{"a settlement, and a grant, while an override record lowers a limit give back what they say", func(s *scene) {
		for _, limit := range kinds(100_000) {
			buckets := s.tenantOf(limit, requests)
			receipt := s.take(buckets, costing(50_000)).Receipt
			s.take(buckets, costing(50_000))
			s.override(bucket.Override{Limit: limit.Name, Capacity: 10})
			s.take(buckets, costing(0))
			s.settle(bucket.Settlement{Receipt: receipt, Actual: points(49_999)})
			s.equal(s.limitOf(s.grantPoints(buckets, 9), limit.Name).Charged, int64(-9), limit.Name)
			_, err := s.records().DeleteOverride(s.ctx, s.tenant, bucket.Owner{}, limit.Name)
			s.ok(err)
			s.equal(s.spent(buckets, limit.Name), int64(99_990), limit.Name)
			s.ok(s.Store.Reset(s.ctx, s.tenant, buckets))
		}
	}},
	{"a candidate of a smaller capacity washes neither its own budget nor the live one", func(s *scene) {
		for i, large := range kinds(1000) {
			live, small := s.tenantOf(large, requests), s.tenantOf(kinds(10)[i], requests)
			try := func(n int64, candidate []bucket.Bucket) *bucket.CandidateResult {
				result, err := s.Store.Take(s.ctx, bucket.Take{
					Tenant: s.tenant, Buckets: live, Amounts: costing(n),
					Candidate: &bucket.Candidate{ID: "next", Buckets: candidate},
				})
				s.ok(err)
				return result.Candidate
			}
			s.equal(try(1000, live).Verdict, bucket.Admitted, "the candidate is as large")
			s.equal(try(0, small).Verdict, bucket.Admitted, "the candidate shrinks")
			s.equal(try(1, live).Verdict, bucket.Limited, "the candidate is as large again")
			s.equal(s.spent(live, large.Name), int64(1000), large.Name)
			s.ok(s.Store.Reset(s.ctx, s.tenant, live))
			// The candidate of the next kind has a limit of another name.
		}
	}},
}
