package buckettest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
)

var chargeTests = []test{
	{"a take charges every limit of every bucket", func(s *scene) {
		buckets := []bucket.Bucket{
			{Limits: s.compile(perSecond(10), perMinute(100))},
			{Owner: bucket.Owner{Level: bucket.User, Name: "ann"}, Limits: s.compile(perMinute(50))},
		}
		result := s.take(buckets, points(7))
		s.verdict(result, bucket.Admitted)
		s.equal(len(result.Limits), 3, "number of states")
		for i, want := range []struct {
			owner bucket.Owner
			name  string
			left  int64
			reset time.Duration
		}{
			{bucket.Owner{}, "second", 3, 700 * time.Millisecond},
			{bucket.Owner{}, "minute", 93, 4200 * time.Millisecond},
			{buckets[1].Owner, "minute", 43, 8400 * time.Millisecond},
		} {
			state := result.Limits[i]
			s.equal(state.Owner, want.owner, "owner")
			s.equal(state.Limit.Name, want.name, "limit")
			s.equal(state.Remaining, want.left, "remaining")
			s.equal(state.ResetAfter, want.reset, "reset")
			s.equal(state.Charged, int64(7), "charged")
		}
		s.equal(result.Receipt.IsZero(), false, "receipt is zero")
		s.equal(s.remaining(buckets...), []int64{3, 93, 43}, "remaining")
	}},
	{"any limit of three owners that refuses leaves all others as they were", func(s *scene) {
		for refuser := range 12 {
			buckets := threeOwners(s, refuser)
			s.verdict(s.take(buckets, points(6)), bucket.Admitted)
			before := s.peek(buckets...)
			result := s.take(buckets, points(5))
			s.verdict(result, bucket.Limited)
			s.equal(result.Receipt.IsZero(), true, "receipt is zero")
			for i, state := range result.Limits {
				s.equal(state.Exceeded, i == refuser, fmt.Sprintf("limit %d exceeded", i))
				s.equal(state.Charged, int64(0), "charged")
			}
			s.equal(result.RetryAfter, result.Limits[refuser].RetryAfter, "retry after")
			s.equal(s.peek(buckets...), before, "state")
			s.ok(s.Store.Reset(s.ctx, s.tenant, buckets))
		}
	}},
	{"more than the capacity is never, and has no retry", func(s *scene) {
		buckets := s.tenantOf(perSecond(10), perMinute(100))
		for _, amount := range []int64{11, math.MaxInt64} {
			result := s.take(buckets, points(amount))
			s.verdict(result, bucket.Never)
			s.equal(result.RetryAfter, time.Duration(0), "retry after")
			s.equal(result.Limits[0].Never, true, "never")
			s.equal(result.Limits[0].Exceeded, true, "exceeded")
		}
		s.equal(s.remaining(buckets...), []int64{10, 100}, "remaining")
		s.verdict(s.take(buckets, points(10)), bucket.Admitted)
		s.verdict(s.take(buckets, points(11)), bucket.Never)
	}},
	{"never outweighs limited", func(s *scene) {
		buckets := s.tenantOf(perSecond(10), perMinute(5))
		s.verdict(s.take(buckets, points(5)), bucket.Admitted)
		s.verdict(s.take(buckets, points(6)), bucket.Never)
	}},
	{"a shadow limit over its budget is uncharged, says so and refuses nothing", func(s *scene) {
		checkLenient(s, bucket.Shadow)
	}},
	{"a limit that warns is charged as a shadow limit is", func(s *scene) { checkLenient(s, bucket.Warn) }},
	{"a limit that is off is neither judged nor shown", func(s *scene) {
		off := perSecond(1)
		off.Mode = bucket.Off
		buckets := s.tenantOf(off, perMinute(100))
		result := s.take(buckets, points(50))
		s.verdict(result, bucket.Admitted)
		s.equal(len(result.Limits), 1, "number of states")
		s.equal(result.Limits[0].Limit.Name, "minute", "limit")
	}},
	{"nothing is admitted even where nothing is left", func(s *scene) {
		buckets := s.tenantOf(perMinute(10))
		receipt := s.take(buckets, points(10)).Receipt
		s.settle(bucket.Settlement{Receipt: receipt, Actual: points(15)})
		for _, amounts := range []bucket.Amounts{nil, points(0)} {
			result := s.take(buckets, amounts)
			s.verdict(result, bucket.Admitted)
			s.equal(result.Limits[0].Exceeded, false, "exceeded")
			s.equal(result.Receipt.IsZero(), true, "receipt is zero")
		}
	}},
	{"each limit is charged the amount of its own unit", func(s *scene) {
		requests := bucket.Limit{Name: "requests", Unit: bucket.Requests, Capacity: 3, Period: time.Minute}
		exports := bucket.Limit{Name: "exports", Unit: "exports", Capacity: 2, Period: time.Hour}
		buckets := s.tenantOf(perMinute(100), requests, exports)
		amounts := bucket.Amounts{{Unit: bucket.Points, N: 20}, {Unit: bucket.Requests, N: 1}}
		s.verdict(s.take(buckets, amounts), bucket.Admitted)
		s.equal(s.remaining(buckets...), []int64{80, 2, 2}, "remaining")
	}},
	{"an owner is asked for its own amounts in the place of those of the take", checkOwnAmounts},
	{"owners of equal names at different levels are different", func(s *scene) {
		limits := s.compile(perMinute(10))
		var buckets []bucket.Bucket
		for _, level := range []bucket.Level{bucket.Team, bucket.User, bucket.Operation} {
			buckets = append(buckets, bucket.Bucket{Owner: bucket.Owner{Level: level, Name: "t"}, Limits: limits})
		}
		s.take(buckets[:1], points(1))
		s.take(buckets[1:2], points(2))
		s.take(buckets[2:], points(3))
		s.equal(s.remaining(buckets...), []int64{9, 8, 7}, "remaining")
	}},
	{"parts of an operation have buckets of their own", func(s *scene) {
		limits := s.compile(perMinute(10))
		var buckets []bucket.Bucket
		for _, owner := range []bucket.Owner{
			{Name: "a"},
			{Name: "a", Part: "b"},
			{Name: "a", Part: "bc"},
			{Name: "ab", Part: "c"},
			{Name: "a:b"},
			{Name: "a", Part: "{}\x00"},
			{Name: "", Part: "a"},
		} {
			owner.Level = bucket.Operation
			buckets = append(buckets, bucket.Bucket{Owner: owner, Limits: limits})
		}
		for i := range buckets {
			s.verdict(s.take(buckets[i:i+1], points(int64(i))), bucket.Admitted)
		}
		s.equal(s.remaining(buckets...), []int64{10, 9, 8, 7, 6, 5, 4}, "remaining")
	}},
	{"names from outside neither collide nor break out", func(s *scene) {
		names := []string{
			"", "a", "{a}", "}{", "a}:t", ":", "~", "a b", "\x00", "\n", "a\xff", "Ä",
			strings.Repeat("x", 64), strings.Repeat("x", 65), strings.Repeat("x", 10_000),
		}
		buckets := s.tenantOf(perMinute(100))
		user := func(name string) []bucket.Bucket {
			return []bucket.Bucket{{Owner: bucket.Owner{Level: bucket.User, Name: name}, Limits: buckets[0].Limits}}
		}
		base := s.tenant
		for i, name := range names {
			s.tenant = base + name
			s.verdict(s.take(buckets, points(int64(i+1))), bucket.Admitted)
			s.tenant = base
			s.verdict(s.take(user(name), points(int64(i+1))), bucket.Admitted)
		}
		for i, name := range names {
			s.tenant = base + name
			s.equal(s.remaining(buckets...), []int64{int64(99 - i)}, "tenant")
			s.tenant = base
			s.equal(s.remaining(user(name)...), []int64{int64(99 - i)}, "user")
		}
	}},
	{"no limits admit everything", func(s *scene) {
		s.verdict(s.take(nil, points(5)), bucket.Admitted)
		s.verdict(s.take([]bucket.Bucket{{Limits: s.compile()}}, points(5)), bucket.Admitted)
	}},
	{"room that the caller brings is used", func(s *scene) {
		room := make([]bucket.LimitState, 0, 4)
		result, err := s.Store.Take(s.ctx, bucket.Take{
			Tenant: s.tenant, Buckets: s.tenantOf(perMinute(9)), Amounts: points(1), States: room,
		})
		s.ok(err)
		s.equal(room[:1], result.Limits, "room")
	}},
	{"a call that is wrong in itself is told so and charges nothing", checkInvalid},
	{"a caller who has gone is told that nothing happened", func(s *scene) {
		ctx, cancel := context.WithCancel(s.ctx)
		cancel()
		_, err := s.Store.Take(ctx, bucket.Take{Tenant: s.tenant, Buckets: s.tenantOf(perMinute(9)), Amounts: points(1)})
		s.equal(errors.Is(err, bucket.ErrUnavailable), true, "unavailable")
		s.equal(errors.Is(err, context.Canceled), true, "cancelled")
	}},
}

func checkLenient(s *scene, mode bucket.Mode) {
	lenient := perSecond(5)
	lenient.Mode = mode
	buckets := s.tenantOf(lenient, perMinute(100))
	s.verdict(s.take(buckets, points(4)), bucket.Admitted)
	result := s.take(buckets, points(4))
	s.verdict(result, bucket.Admitted)
	s.equal(result.Limits[0].Exceeded, true, "exceeded")
	s.equal(result.Limits[0].Limit.Mode, mode, "mode")
	s.equal(result.Limits[0].RetryAfter, 600*time.Millisecond, "retry after")
	s.equal(result.Limits[0].Charged, int64(0), "charged")
	s.equal(result.Limits[1].Charged, int64(4), "charged")
	s.equal(result.RetryAfter, time.Duration(0), "retry after")
	s.equal(s.remaining(buckets...), []int64{1, 92}, "remaining")
	result = s.take(buckets, points(6))
	s.equal(result.Limits[0].Never, true, "never")
	s.verdict(result, bucket.Admitted)
}

// threeOwners returns owners with four limits each, of which one has a capacity of 10 and refuses a
// second take, and all others have room.
func threeOwners(s *scene, refuser int) []bucket.Bucket {
	owners := []bucket.Owner{{}, {Level: bucket.Team, Name: "core"}, {Level: bucket.User, Name: "ann"}}
	buckets := make([]bucket.Bucket, len(owners))
	for o := range owners {
		var limits []bucket.Limit
		for i, name := range []string{"second", "minute", "hour", "day"} {
			limit := bucket.Limit{Name: name, Capacity: 1000, Period: time.Hour}
			if o*4+i == refuser {
				limit.Capacity = 10
			}
			limits = append(limits, limit)
		}
		buckets[o] = bucket.Bucket{Owner: owners[o], Limits: s.compile(limits...)}
	}
	return buckets
}

func checkOwnAmounts(s *scene) {
	requests := bucket.Limit{Name: "requests", Unit: bucket.Requests, Capacity: 5, Period: time.Minute}
	limits := s.compile(perMinute(100), requests)
	login := bucket.Bucket{Owner: bucket.Owner{Level: bucket.Operation, Name: "Mutation.login"}, Limits: limits}
	tenant := bucket.Bucket{Limits: limits}
	three := login
	three.Amounts = bucket.Amounts{{Unit: bucket.Requests, N: 3}}
	amounts := bucket.Amounts{{Unit: bucket.Points, N: 20}, {Unit: bucket.Requests, N: 1}}
	first := s.take([]bucket.Bucket{tenant, three}, amounts)
	s.verdict(first, bucket.Admitted)
	s.equal(s.remaining(tenant, login), []int64{80, 4, 80, 2}, "remaining")
	var asked []int64
	for i := range first.Limits {
		asked = append(asked, first.Limits[i].Asked)
	}
	s.equal(asked, []int64{20, 1, 20, 3}, "asked")

	refused := s.take([]bucket.Bucket{tenant, three}, amounts)
	s.verdict(refused, bucket.Limited)
	s.equal(refused.RetryAfter, 12*time.Second, "retry after")
	six := login
	six.Amounts = bucket.Amounts{{Unit: bucket.Requests, N: 6}}
	s.verdict(s.take([]bucket.Bucket{six}, amounts), bucket.Never)
	s.equal(s.remaining(tenant, login), []int64{80, 4, 80, 2}, "remaining")

	none := login
	none.Amounts = bucket.Amounts{{Unit: bucket.Requests}}
	s.verdict(s.take([]bucket.Bucket{none}, amounts), bucket.Admitted)
	s.equal(s.remaining(login), []int64{60, 2}, "remaining")

	settlement := bucket.Settlement{Receipt: first.Receipt.Clone(), Actual: bucket.Amounts{{Unit: bucket.Requests}}}
	s.settle(settlement)
	s.equal(s.remaining(tenant, login), []int64{80, 5, 60, 5}, "remaining")
	checkOwnWorth(s)
}

// checkOwnWorth settles what was asked of some owners in other amounts than of the rest.
func checkOwnWorth(s *scene) {
	owner := func(name string, own int64) bucket.Bucket {
		return bucket.Bucket{
			Owner:  bucket.Owner{Level: bucket.Operation, Name: name},
			Limits: s.compile(bucket.Limit{Name: "hour", Capacity: 100, Refill: 1, Period: 24 * time.Hour}), Amounts: points(own),
		}
	}
	whole, most, least, nothing := owner("whole", 0), owner("most", 30), owner("least", 10), owner("nothing", 0)
	whole.Amounts = nil
	all := []bucket.Bucket{whole, most, least, nothing}
	for _, test := range []struct {
		actual int64
		want   []int64
	}{
		{40, []int64{60, 70, 90, 100}},
		{0, []int64{100, 100, 100, 100}},
		{20, []int64{80, 85, 95, 100}},
		{1, []int64{99, 99, 99, 100}}, // rounded up
		{60, []int64{40, 55, 85, 100}},
	} {
		taken := s.take(all, points(40))
		s.verdict(taken, bucket.Admitted)
		s.settle(bucket.Settlement{Receipt: taken.Receipt.Clone(), Actual: points(test.actual)})
		s.equal(s.remaining(all...), test.want, fmt.Sprintf("remaining after %d of 40", test.actual))
		s.grantPoints(all, 100)
	}
}

func checkInvalid(s *scene) {
	limits := s.compile(perMinute(10))
	one := []bucket.Bucket{{Limits: limits}}
	many := make([]bucket.Limit, bucket.MaxLimits)
	for i := range many {
		many[i] = bucket.Limit{Name: fmt.Sprint("limit-", i), Capacity: 1, Period: time.Second}
	}
	for what, take := range map[string]bucket.Take{
		"negative amount":            {Buckets: one, Amounts: points(-1)},
		"unit twice":                 {Buckets: one, Amounts: append(points(1), points(1)...)},
		"negative amount of its own": {Buckets: []bucket.Bucket{{Limits: limits, Amounts: points(-1)}}, Amounts: points(1)},
		"own unit twice":             {Buckets: []bucket.Bucket{{Limits: limits, Amounts: append(points(1), points(1)...)}}},
		"owner twice":                {Buckets: append(one, one...)},
		"no limits":                  {Buckets: []bucket.Bucket{{}}},
		"unknown level":              {Buckets: []bucket.Bucket{{Owner: bucket.Owner{Level: 9}, Limits: limits}}},
		"part of a user":             {Buckets: []bucket.Bucket{{Owner: bucket.Owner{Level: bucket.User, Name: "ann", Part: "x"}, Limits: limits}}},
		"named tenant":               {Buckets: []bucket.Bucket{{Owner: bucket.Owner{Name: "x"}, Limits: limits}}},
		"too many limits": {Buckets: append(one, bucket.Bucket{
			Owner: bucket.Owner{Level: bucket.User}, Limits: s.compile(many...),
		})},
		"negative lease": {Buckets: one, Claim: &idempotency.Claim{Lease: -1}},
		"eternal record": {Buckets: one, Claim: &idempotency.Claim{TTL: math.MaxInt64}},
	} {
		take.Tenant = s.tenant
		_, err := s.Store.Take(s.ctx, take)
		s.equal(errors.Is(err, bucket.ErrInvalid), true, what)
	}
	_, err := s.Store.Settle(s.ctx, bucket.Settlement{Claim: &bucket.ClaimSettlement{}})
	s.equal(errors.Is(err, bucket.ErrInvalid), true, "no claim")
	_, err = s.Store.Renew(s.ctx, s.tenant, nil)
	s.equal(errors.Is(err, bucket.ErrInvalid), true, "no claim")
	_, err = s.Store.Grant(s.ctx, s.tenant, one, points(-1))
	s.equal(errors.Is(err, bucket.ErrInvalid), true, "negative grant")
	s.equal(s.remaining(one...), []int64{10}, "remaining")
}
