package buckettest

import (
	"errors"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// records returns the store as one of override records.
func (s *scene) records() bucket.OverrideStore {
	s.Helper()
	store, ok := s.Store.(bucket.OverrideStore)
	if !ok {
		s.Fatalf("%T keeps no override records", s.Store)
	}
	return store
}

// override makes a record for the tenant and returns what it replaced.
func (s *scene) override(o bucket.Override) *bucket.Override {
	s.Helper()
	o.Reason, o.Actor = "ticket 17", "support"
	replaced, err := s.records().SetOverride(s.ctx, s.tenant, o)
	s.ok(err)
	return replaced
}

// blocked checks that the record of an owner blocks, and that the result has nothing else.
func (s *scene) blocked(result bucket.Result, owner bucket.Owner) {
	s.Helper()
	s.verdict(result, bucket.Blocked)
	by := result.BlockedBy()
	if by == nil {
		s.Fatal("no record is named that blocks the take")
	}
	s.equal(bucket.Override{Owner: by.Owner, Blocked: by.Blocked, Reason: by.Reason, Actor: by.Actor},
		bucket.Override{Owner: owner, Blocked: true, Reason: "ticket 17", Actor: "support"}, "record that blocks")
	s.equal(result.Limits == nil && result.Candidate == nil && result.RetryAfter == 0 && result.Receipt.IsZero(), true,
		"nothing else is answered")
}

// after returns when so much time has passed by the clock of the store.
func (s *scene) after(d time.Duration) time.Time {
	s.Helper()
	probe := bucket.Override{Owner: bucket.Owner{Level: bucket.User, Name: "probe of the clock"}, Blocked: true}
	s.override(probe)
	removed, err := s.records().DeleteOverride(s.ctx, s.tenant, probe.Owner, "")
	s.ok(err)
	return removed.SetAt.Add(d)
}

func modeOf(mode bucket.Mode) *bucket.Mode { return &mode }

var (
	ann  = bucket.Owner{Level: bucket.User, Name: "ann"}
	core = bucket.Owner{Level: bucket.Team, Name: "core"}
)

var overrideTests = []test{
	{"the record of an operation holds for its parts, and that of a part beats it", checkPartOverrides},
	{"a raised limit holds from the next take on and keeps what was spent", func(s *scene) {
		buckets := s.tenantOf(perMinute(100))
		s.verdict(s.take(buckets, points(90)), bucket.Admitted)
		s.verdict(s.take(buckets, points(20)), bucket.Limited)
		s.override(bucket.Override{Limit: "minute", Capacity: 1000})
		result := s.take(buckets, points(20))
		s.verdict(result, bucket.Admitted)
		state := result.Limits[0]
		s.equal(state.Limit.Capacity, int64(1000), "capacity of the state")
		s.equal(state.Limit.Refill, int64(1000), "refill of the state, which was the capacity")
		s.equal(state.Overridden, true, "overridden")
		s.equal(state.Remaining, int64(890), "remaining")
		s.equal(s.remaining(buckets...), []int64{890}, "peek")
	}},
	{"a record that changes nothing is named: that of a limit which the policy does not have, or whose numbers make none", func(s *scene) {
		buckets := s.tenantOf(perMinute(100))
		s.override(bucket.Override{Limit: "minuet", Capacity: 50})
		s.override(bucket.Override{Limit: "minute", Capacity: 1 << 45, Refill: 7})
		s.override(bucket.Override{Owner: ann, Limit: "minute", Capacity: 50})
		s.override(bucket.Override{Owner: core, Limit: "minute", Capacity: 50})
		result, err := s.Store.Take(s.ctx, bucket.Take{Tenant: s.tenant, Buckets: buckets, Owners: []bucket.Owner{{}, ann}, Amounts: points(1)})
		s.ok(err)
		s.verdict(result, bucket.Admitted)
		named := map[string]bool{}
		for _, o := range result.UnusedOverrides() {
			named[o.Owner.Name+"/"+o.Limit] = true
		}
		s.equal(named, map[string]bool{"/minuet": true, "/minute": true, "ann/minute": true}, "records that change nothing")
		s.equal(result.Limits[0].Overridden, false, "overridden")

		s.override(bucket.Override{Limit: "minute", Capacity: 50})
		_, err = s.records().DeleteOverride(s.ctx, s.tenant, bucket.Owner{}, "minuet")
		s.ok(err)
		result = s.take(buckets, points(1))
		s.equal(len(result.UnusedOverrides()), 0, "records that change nothing")
	}},
	{"a limit names the records that make it what it is, the one that beats the others last", func(s *scene) {
		hour := bucket.Limit{Name: "hour", Capacity: 1000, Period: time.Hour}
		buckets := s.tenantOf(perMinute(100), hour)
		s.equal(s.take(buckets, points(1)).Limits[0].Limit.Overrides() == nil, true, "records of a limit of the policy")
		s.override(bucket.Override{Limit: "minute", Capacity: 50})
		s.override(bucket.Override{Mode: modeOf(bucket.Shadow)})
		s.override(bucket.Override{Owner: ann, Limit: "minute", Capacity: 7})
		result := s.take(buckets, points(60))
		var names [][]string
		for _, state := range result.Limits {
			var of []string
			for _, o := range state.Limit.Overrides() {
				of = append(of, o.Limit+" by "+o.Actor+": "+o.Reason)
			}
			names = append(names, of)
		}
		all, minute := " by support: ticket 17", "minute by support: ticket 17"
		s.equal(names, [][]string{{all, minute}, {all}}, "records of minute and of hour")
		_, err := s.records().ClearOverrides(s.ctx, s.tenant)
		s.ok(err)
		s.equal(s.take(buckets, points(1)).Limits[0].Limit.Overrides() == nil, true, "records that are removed")
	}},
	{"a lowered limit holds at once, and what exceeds it is overdrawn", func(s *scene) {
		buckets := s.tenantOf(perMinute(100))
		s.take(buckets, points(60))
		s.override(bucket.Override{Limit: "minute", Capacity: 40, Refill: 1, Period: time.Second})
		s.verdict(s.take(buckets, points(1)), bucket.Limited)
		state := s.peek(buckets...)[0]
		s.equal(state.Overdraft, int64(20), "overdraft")
		s.equal(state.ResetAfter, 36*time.Second, "reset, when it would have been without the record")
		s.verdict(s.take(buckets, points(41)), bucket.Never)
	}},
	{"without its record a limit is that of the policy, and what was spent stays spent", func(s *scene) {
		buckets := s.tenantOf(perMinute(100))
		s.override(bucket.Override{Limit: "minute", Capacity: 1000, Refill: 7, Period: 11 * time.Second})
		s.take(buckets, points(70))
		removed, err := s.records().DeleteOverride(s.ctx, s.tenant, bucket.Owner{}, "minute")
		s.ok(err)
		s.equal(removed.Capacity, int64(1000), "capacity of the removed record")
		state := s.peek(buckets...)[0]
		s.equal(state.Overridden, false, "overridden")
		s.equal(state.Remaining, int64(30), "remaining")
	}},
	{"a record holds until it expires by the clock of the store", func(s *scene) {
		buckets := s.tenantOf(perMinute(100))
		s.override(bucket.Override{Limit: "minute", Capacity: 1000, Expires: s.after(time.Minute)})
		s.Advance(time.Minute - time.Millisecond)
		s.verdict(s.take(buckets, points(101)), bucket.Admitted)
		s.Advance(time.Millisecond)
		s.verdict(s.take(buckets, points(101)), bucket.Never)
		all, err := s.records().ListOverrides(s.ctx, s.tenant)
		s.ok(err)
		s.equal(len(all), 0, "records")
	}},
	{"one of several records expires alone", func(s *scene) {
		buckets := s.tenantOf(perSecond(100), perMinute(100))
		s.override(bucket.Override{Limit: "second", Capacity: 200, Expires: s.after(time.Second)})
		s.override(bucket.Override{Limit: "minute", Capacity: 300})
		s.equal(s.remaining(buckets...), []int64{200, 300}, "both")
		s.Advance(time.Second)
		s.equal(s.remaining(buckets...), []int64{100, 300}, "one")
	}},
	{"a record changes only the bucket of its own level", func(s *scene) {
		buckets := []bucket.Bucket{
			{Limits: s.compile(perMinute(100))},
			{Owner: core, Limits: s.compile(perMinute(100))},
			{Owner: ann, Limits: s.compile(perMinute(100))},
			{Owner: bucket.Owner{Level: bucket.Operation, Name: "Query.search"}, Limits: s.compile(perMinute(100))},
		}
		for i, want := range [][]int64{{1, 100, 100, 100}, {1, 2, 100, 100}, {1, 2, 3, 100}, {1, 2, 3, 4}} {
			s.override(bucket.Override{Owner: buckets[i].Owner, Limit: "minute", Capacity: int64(i + 1)})
			s.equal(s.remaining(buckets...), want, "capacities")
		}
	}},
	{"the record of a single limit beats that of its owner", func(s *scene) {
		buckets := s.tenantOf(perSecond(10), perMinute(10))
		s.override(bucket.Override{Limit: "minute", Mode: modeOf(bucket.Enforce)})
		s.override(bucket.Override{Mode: modeOf(bucket.Shadow)})
		result := s.take(buckets, points(11))
		s.verdict(result, bucket.Never)
		s.equal(result.Limits[0].Limit.Mode, bucket.Shadow, "mode of one")
		s.equal(result.Limits[1].Limit.Mode, bucket.Enforce, "mode of the other")
	}},
	{"a mode can be switched on and off", func(s *scene) {
		off := perMinute(10)
		off.Mode = bucket.Off
		buckets := s.tenantOf(perSecond(10), off)
		s.equal(len(s.take(buckets, points(1)).Limits), 1, "limits")
		s.override(bucket.Override{Limit: "minute", Mode: modeOf(bucket.Enforce)})
		s.override(bucket.Override{Limit: "second", Mode: modeOf(bucket.Off)})
		result := s.take(buckets, points(1))
		s.equal(len(result.Limits), 1, "limits")
		s.equal(result.Limits[0].Limit.Name, "minute", "limit")
	}},
	{"a record makes no mode stricter than the strictest of the limit", func(s *scene) {
		limit := perMinute(10)
		limit.Mode, limit.Strictest = bucket.Off, bucket.Shadow
		s.override(bucket.Override{Mode: modeOf(bucket.Enforce)})
		result := s.take(s.tenantOf(perSecond(100), limit), points(20))
		s.verdict(result, bucket.Admitted)
		s.equal(result.Limits[1].Limit.Mode, bucket.Shadow, "mode")
	}},
	{"unlimited charges nothing and keeps what was spent", func(s *scene) {
		buckets := []bucket.Bucket{{Limits: s.compile(perMinute(100))}, {Owner: ann, Limits: s.compile(perMinute(50))}}
		s.take(buckets, points(40))
		s.override(bucket.Override{Unlimited: true})
		s.verdict(s.take(buckets, points(11)), bucket.Limited)
		result := s.take(buckets, points(10))
		s.verdict(result, bucket.Admitted)
		s.equal(len(result.Limits), 1, "limits")
		s.equal(result.Limits[0].Owner, ann, "owner")
		_, err := s.records().ClearOverrides(s.ctx, s.tenant)
		s.ok(err)
		s.equal(s.remaining(buckets...), []int64{60, 0}, "remaining")
	}},
	{"a blocked owner is refused, whether or not it has a bucket", func(s *scene) {
		buckets := s.tenantOf(shadow(perMinute(100)))
		take := bucket.Take{Tenant: s.tenant, Buckets: buckets, Owners: []bucket.Owner{{}, ann}, Amounts: points(1)}
		for _, owner := range []bucket.Owner{{}, ann} {
			s.override(bucket.Override{Owner: owner, Blocked: true})
			result, err := s.Store.Take(s.ctx, take)
			s.ok(err)
			s.blocked(result, owner)
			s.equal(s.remaining(buckets...), []int64{100}, "remaining")
			_, err = s.records().DeleteOverride(s.ctx, s.tenant, owner, "")
			s.ok(err)
		}
		result, err := s.Store.Take(s.ctx, take)
		s.ok(err)
		s.verdict(result, bucket.Admitted)
	}},
	{"a blocked take writes no claim and answers none", func(s *scene) {
		buckets, claim := s.tenantOf(perMinute(100)), s.claim("12345678", "a")
		s.override(bucket.Override{Blocked: true})
		s.verdict(s.takeKeyed(buckets, points(1), claim), bucket.Blocked)
		_, err := s.records().ClearOverrides(s.ctx, s.tenant)
		s.ok(err)
		result := s.takeKeyed(buckets, points(1), s.claim("12345678", "a"))
		s.verdict(result, bucket.Admitted)
		s.equal(result.Repeat, false, "repeat")
		s.override(bucket.Override{Blocked: true})
		s.verdict(s.takeKeyed(buckets, points(1), s.claim("12345678", "a")), bucket.Blocked)
	}},
	{"a record that makes no limit with the policy changes nothing", func(s *scene) {
		window := bucket.Limit{Name: "hour", Capacity: 10, Period: time.Hour, Window: bucket.Window{Kind: bucket.FixedWindow}}
		buckets := s.tenantOf(window, perMinute(10))
		wrong := bucket.Override{Limit: "hour", Refill: 3}
		s.override(wrong)
		s.override(bucket.Override{Limit: "absent", Capacity: 7})
		s.equal(s.remaining(buckets...), []int64{10, 10}, "remaining")
		all, err := s.records().ListOverrides(s.ctx, s.tenant)
		s.ok(err)
		s.equal(len(all), 2, "records")
		wrong.Reason, wrong.Actor = "r", "a"
		var mistake *bucket.LimitError
		_, err = wrong.Apply(buckets[0].Limits)
		s.equal(errors.As(err, &mistake), true, "Apply says so")
	}},
	{"an operation settles under the limits of its take", func(s *scene) {
		buckets := s.tenantOf(perMinute(100))
		result := s.take(buckets, points(60))
		s.override(bucket.Override{Limit: "minute", Capacity: 120, Refill: 7, Period: time.Minute})
		settled := s.settle(bucket.Settlement{Receipt: result.Receipt, Actual: points(20)})
		s.equal(settled.Limits[0].Remaining, int64(80), "remaining under the policy")
		s.equal(s.remaining(buckets...), []int64{100}, "remaining under the record")
	}},
	{"what is given back is bounded by the limit as it is overridden", func(s *scene) {
		buckets := s.tenantOf(perMinute(100))
		s.override(bucket.Override{Limit: "minute", Capacity: 1000})
		s.take(buckets, points(500))
		states, err := s.Store.Grant(s.ctx, s.tenant, buckets, points(200))
		s.ok(err)
		s.equal(states[0].Remaining, int64(700), "remaining")
	}},
}
