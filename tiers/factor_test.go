package tiers_test

import (
	"fmt"
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// followers is a policy of which tenants follow their tier.
const followers = `
version: 1
default: free
tiers:
  free:
    mode: warn
    failMode: closed
    maxCost: 500
    limits:
      minute: {capacity: 1000, refill: 300, per: minute}
      day: {capacity: 25, per: day, unit: requests, window: sliding, soft: true}
    teams: {limits: {minute: {capacity: 200, per: minute}}}
    users:
      limits: {minute: {capacity: 100, per: minute}}
      operations: {Mutation.login: {limits: {minute: {capacity: 5, per: minute, unit: requests}}}}
    operations:
      Mutation.login:
        maxCost: 50
        limits:
          minute: {capacity: 10, per: minute, unit: requests}
          each: {capacity: 3, per: hour, unit: requests, by: email}
          account: {capacity: 20, per: hour, unit: requests, by: email, across: true}
  pro: {limits: {minute: {capacity: 7000, per: minute}}}
tenants:
  tenfold: {times: 10}
  tenth: {percent: 10}
  same: {percent: 100}
  own:
    times: 10
    limits: {minute: {capacity: 77, per: minute}, hour: {capacity: 8, per: hour}, day: null}
    users: {limits: {minute: {capacity: 6, per: minute}}, byName: {ci: {limits: {minute: {capacity: 9, per: minute}}}}}
    operations: {Mutation.login: {limits: {minute: {capacity: 11, per: minute, unit: requests}}}}
  blocked: {blocked: true}
`

// numbers are what a subject may take at once and gets back, by owner and limit, of a log-in.
func numbers(s *tiers.Snapshot, subject tiers.Subject) map[string]string {
	selection := logins("a@x").selection()
	selection.Calls = emails{selection.Calls}
	rules := s.Rules(subject, selection)
	all := make(map[string]string)
	for _, b := range append(rules.Buckets, rules.Across...) {
		for _, l := range b.Limits.All() {
			key := b.Owner.Level.String() + " " + l.Name
			if b.Owner.Part == tiers.UserPart(subject.User) && subject.User != "" {
				key = "own " + key
			}
			all[key] = fmt.Sprintf("%d/%d", l.Capacity, l.Refill)
		}
	}
	return all
}

// emails are calls that give the argument email.
type emails struct{ tiers.Calls }

func (emails) Values(_ int, _ string, yield func(value any) bool) bool { yield("a@x"); return true }

func TestAnExceptionThatFollowsItsTierHasItsLimitsMultiplied(t *testing.T) {
	t.Parallel()
	s := compiled(t, followers)
	ann := func(tenant string) tiers.Subject { return tiers.Subject{Tenant: tenant, Team: "web", User: "ann"} }
	require.Equal(t, map[string]string{
		"tenant minute": "10000/3000", "tenant day": "250/250", "team minute": "2000/2000", "user minute": "1000/1000",
		"operation minute": "100/100", "operation each": "30/30", "own operation minute": "50/50",
		"operation account": "20/20", // all tenants share it
	}, numbers(s, ann("tenfold")))
	require.Equal(t, map[string]string{
		"tenant minute": "100/30", "tenant day": "2/2", "team minute": "20/20", "user minute": "10/10",
		"operation minute": "1/1", "operation each": "1/1", "own operation minute": "1/1", "operation account": "20/20",
	}, numbers(s, ann("tenth")), "rounded down, and never below 1")
	require.Equal(t, numbers(s, ann("nobody")), numbers(s, ann("same")))

	carried := ann("tenfold")
	carried.Tier = "pro"
	require.Equal(t, map[string]string{"tenant minute": "70000/70000"}, numbers(s, carried), "the tier that a subject carries")
}

func TestALimitThatAnExceptionNamesIsNotMultiplied(t *testing.T) {
	t.Parallel()
	s := compiled(t, followers)
	require.Equal(t, map[string]string{
		"tenant minute": "77/77", "tenant hour": "8/8", "team minute": "2000/2000", "user minute": "6/6",
		"operation minute": "11/11", "operation each": "30/30", "own operation minute": "50/50", "operation account": "20/20",
	}, numbers(s, tiers.Subject{Tenant: "own", Team: "web", User: "ann"}))
	require.Equal(t, "9/9", numbers(s, tiers.Subject{Tenant: "own", User: "ci"})["user minute"])
}

func TestNothingButAmountsIsMultiplied(t *testing.T) {
	t.Parallel()
	s := compiled(t, followers)
	rules := s.Rules(tiers.Subject{Tenant: "tenfold"}, logins("a@x").selection())
	plain := s.Rules(tiers.Subject{Tenant: "nobody"}, logins("a@x").selection())
	for i := range plain.Buckets {
		for j, l := range rules.Buckets[i].Limits.All() {
			was := plain.Buckets[i].Limits.All()[j]
			was.Capacity, was.Refill = l.Capacity, l.Refill
			require.Equal(t, was, l, "windows, periods, units, modes and fail modes stay")
		}
	}
	for _, tenant := range []string{"tenfold", "nobody"} {
		r := s.Rules(tiers.Subject{Tenant: tenant}, logins("a@x").selection())
		most, _ := r.MaxCost.Exceeded(math.MaxInt64)
		require.EqualValues(t, 50, most, "what one operation may cost is no budget")
	}
}

func TestARecordFollowsItsTierWhenThePolicyChanges(t *testing.T) {
	t.Parallel()
	r := parseRecord(t, `{"tier": "pro", "times": 10}`)
	acme := tiers.Subject{Tenant: "acme"}
	before := loadRecords(t, recordPolicy)
	require.NoError(t, r.Check(before))
	require.Equal(t, []int64{1000}, capacities(before, acme, r))
	after := loadRecords(t, `{version: 1, default: pro, tiers: {pro: {limits: {minute: {capacity: 300, per: minute}}}}}`)
	require.Equal(t, []int64{3000}, capacities(after, acme, r))
	require.Equal(t, []int64{1000}, capacities(before, acme, r), "each policy by itself")
	require.Equal(t, []int64{150}, capacities(before, acme, parseRecord(t, `{"tier": "pro", "percent": 150}`)))

	for _, wrong := range []string{`{"times": 0}`, `{"percent": -1}`, `{"times": 1.5}`, `{"times": "10"}`, `{"Times": 0}`} {
		_, err := tiers.ParseRecord([]byte(wrong))
		require.ErrorContains(t, err, "times and percent are whole numbers from 1 on", wrong)
	}
	require.ErrorContains(t, parseRecord(t, `{"times": 2, "percent": 2}`).Check(before), "record.percent: stands beside times; one of the two fits")
	_, err := tiers.Compile(tiers.Policy{
		Default: "a", Tiers: map[string]tiers.Tier{"a": {MaxCost: 1}}, Tenants: map[string]tiers.Exception{"x": {Times: -3}},
	})
	require.ErrorContains(t, err, "tenants.x.times: -3; at least 1 fits")
}

func TestTheProvenanceOfAMultipliedLimitNamesWhatMultipliesIt(t *testing.T) {
	t.Parallel()
	s := compiled(t, followers)
	for _, test := range []struct {
		tenant string
		owner  bucket.Owner
		limit  string
		want   []string
	}{
		{"tenfold", bucket.Owner{}, "minute", []string{"tiers.free.limits.minute", "tenants.tenfold.times"}},
		{"tenth", bucket.Owner{Level: bucket.Team, Name: "web"}, "minute", []string{"tiers.free.teams.limits.minute", "tenants.tenth.percent"}},
		{"own", bucket.Owner{}, "minute", []string{"tiers.free.limits.minute", "tenants.own.times", "tenants.own.limits.minute"}},
		{"own", bucket.Owner{}, "hour", []string{"tenants.own.limits.hour"}},
		{"same", bucket.Owner{}, "minute", []string{"tiers.free.limits.minute"}},
		{
			"tenfold",
			bucket.Owner{Level: bucket.Operation, Name: "Mutation.login"},
			"account",
			[]string{"tiers.free.operations[\"Mutation.login\"].limits.account"},
		},
		{
			"tenfold",
			bucket.Owner{Level: bucket.Operation, Name: "Mutation.login", Part: tiers.UserPart("ann")},
			"minute",
			[]string{"tiers.free.users.operations[\"Mutation.login\"].limits.minute", "tenants.tenfold.times"},
		},
	} {
		subject := tiers.Subject{Tenant: test.tenant, Team: "web", User: "ann"}
		rules := s.Rules(subject, logins("a@x").selection())
		from, found := rules.LimitProvenance(subject, test.owner, test.limit)
		require.True(t, found)
		require.Equal(t, test.want, from.Rule, test.tenant)
	}
}

// TestAProductIsExactOrTheNearestBelowThatAStoreCounts draws limits and factors up to the largest ones.
func TestAProductIsExactOrTheNearestBelowThatAStoreCounts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := &tiers.Limit{
			Capacity: rapid.Int64Range(1, 1<<52).Draw(t, "capacity"), Per: tiers.Period(rapid.Int64Range(1, 1e9).Draw(t, "ms")) * tiers.Period(time.Millisecond),
			Window: rapid.SampledFrom([]string{"", "", "fixed", "sliding"}).Draw(t, "window"),
		}
		if l.Window == "" {
			l.Refill = rapid.Int64Range(0, 1<<53-1).Draw(t, "refill")
		}
		policy := tiers.Policy{Default: "a", Tiers: map[string]tiers.Tier{"a": {Limits: map[string]*tiers.Limit{"l": l}}}}
		if _, err := tiers.Compile(policy); err != nil {
			t.Skip("the tier itself does not compile")
		}
		by, of := rapid.Int64Range(1, math.MaxInt64).Draw(t, "by"), int64(1)
		x := tiers.Exception{Times: tiers.Factor(by)}
		if rapid.Bool().Draw(t, "percent") {
			x, of = tiers.Exception{Percent: tiers.Factor(by)}, 100
		}
		policy.Tenants = map[string]tiers.Exception{"x": x}
		s, err := tiers.Compile(policy)
		require.NoError(t, err, "whatever the factor, the exception compiles where its tier does")
		got := s.Rules(tiers.Subject{Tenant: "x"}, tiers.Selection{}).Buckets[0].Limits.All()[0]
		product := func(n int64) *big.Int {
			p := new(big.Int).Mul(big.NewInt(n), big.NewInt(by))
			if p.Quo(p, big.NewInt(of)).Sign() == 0 {
				return big.NewInt(1)
			}
			return p
		}
		exact := product(l.Capacity)
		require.LessOrEqual(t, big.NewInt(got.Capacity).Cmp(exact), 0, "never more than the product")
		if l.Refill > 0 {
			require.LessOrEqual(t, big.NewInt(got.Refill).Cmp(product(l.Refill)), 0)
		}
		if !exact.IsInt64() {
			return
		}
		wanted := *l
		if wanted.Capacity = exact.Int64(); l.Refill > 0 {
			if !product(l.Refill).IsInt64() {
				return
			}
			wanted.Refill = product(l.Refill).Int64()
		}
		policy.Tenants = map[string]tiers.Exception{"x": {Limits: map[string]*tiers.Limit{"l": &wanted}}}
		if _, err := tiers.Compile(policy); err == nil {
			require.Equal(t, wanted.Capacity, got.Capacity, "exact where that can be counted")
		}
	})
}
