package tiers_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// limitsOf returns the limits of the owner by name.
func limitsOf(t testing.TB, rules tiers.Rules, owner bucket.Owner) map[string]bucket.Limit {
	t.Helper()
	for _, b := range rules.Buckets {
		if b.Owner == owner {
			limits := make(map[string]bucket.Limit)
			for _, limit := range b.Limits.All() {
				limits[limit.Name] = limit
			}
			return limits
		}
	}
	return nil
}

// owners returns whom the buckets belong to, in order.
func owners(rules tiers.Rules) []string {
	var names []string
	for _, b := range rules.Buckets {
		names = append(names, b.Owner.Level.String()+":"+b.Owner.Name)
	}
	return names
}

func TestRulesFollowTheTierOfTheSubjectThenTheAssignmentThenTheDefault(t *testing.T) {
	t.Parallel()
	s := compiled(t, document)
	for _, test := range []struct {
		name    string
		subject tiers.Subject
		want    string
	}{
		{"a stranger has the default", tiers.Subject{Tenant: "nobody"}, "free"},
		{"a tenant has its assignment", tiers.Subject{Tenant: "acme"}, "pro"},
		{"an exception without a tier has the default", tiers.Subject{Tenant: "slow"}, "free"},
		{"a carried tier goes before the assignment", tiers.Subject{Tenant: "acme", Tier: "free"}, "free"},
		{"a carried tier goes before the default", tiers.Subject{Tenant: "nobody", Tier: "banned"}, "banned"},
		{"an unknown tier falls back to the assignment", tiers.Subject{Tenant: "acme", Tier: "gold"}, "pro"},
		{"an unknown tier falls back to the default", tiers.Subject{Tenant: "nobody", Tier: "gold"}, "free"},
		{"an assignment without changes yields to a carried tier", tiers.Subject{Tenant: "corner", Tier: "pro"}, "pro"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, s.Rules(test.subject, tiers.Selection{}).Tier)
		})
	}
}

func TestLimitsMergeByNameAndNullRemoves(t *testing.T) {
	t.Parallel()
	s := compiled(t, document)

	require.Equal(t, map[string]bucket.Limit{
		// The exception replaces the limit whole, so that its refill and fail mode are not inherited.
		"minute": {Name: "minute", Unit: bucket.Points, Capacity: 20000, Refill: 20000, Period: time.Minute, FailMode: bucket.FailClosed},
	}, limitsOf(t, s.Rules(tiers.Subject{Tenant: "acme"}, tiers.Selection{}), bucket.Owner{}))

	require.Equal(t, map[string]bucket.Limit{
		"minute": {Name: "minute", Unit: bucket.Points, Capacity: 10000, Refill: 5000, Period: time.Minute},
		"day":    {Name: "day", Unit: bucket.Points, Capacity: 1e6, Refill: 1e6, Period: 24 * time.Hour, FailMode: bucket.FailClosed},
	}, limitsOf(t, s.Rules(tiers.Subject{Tenant: "other", Tier: "pro"}, tiers.Selection{}), bucket.Owner{}))

	t.Run("in the tier that the subject carries too", func(t *testing.T) {
		t.Parallel()
		limits := limitsOf(t, s.Rules(tiers.Subject{Tenant: "acme", Tier: "free"}, tiers.Selection{}), bucket.Owner{})
		require.Len(t, limits, 3)
		require.EqualValues(t, 20000, limits["minute"].Capacity)
		require.EqualValues(t, 100, limits["second"].Capacity)
	})
}

func TestLimitsStandInTheOrderOfTheirPeriods(t *testing.T) {
	t.Parallel()
	var names []string
	for _, limit := range compiled(t, document).Rules(tiers.Subject{Tenant: "x"}, tiers.Selection{}).Buckets[0].Limits.All() {
		names = append(names, limit.Name)
	}
	require.Equal(t, []string{"second", "minute", "requests"}, names)
}

func TestModesComeFromTheLimitThenTheExceptionThenTheTier(t *testing.T) {
	t.Parallel()
	s := compiled(t, document)
	free := s.Rules(tiers.Subject{Tenant: "x"}, tiers.Selection{})
	require.Equal(t, bucket.Enforce, free.Mode)
	require.Equal(t, bucket.Enforce, limitsOf(t, free, bucket.Owner{})["minute"].Mode)
	require.Equal(t, bucket.Shadow, limitsOf(t, free, bucket.Owner{})["requests"].Mode)

	slow := s.Rules(tiers.Subject{Tenant: "slow"}, tiers.Selection{})
	require.Equal(t, bucket.Shadow, slow.Mode)
	require.Equal(t, bucket.Shadow, limitsOf(t, slow, bucket.Owner{})["minute"].Mode)
	require.Equal(t, bucket.FailClosed, s.Rules(tiers.Subject{Tenant: "acme"}, tiers.Selection{}).FailMode)
}

func TestEveryMatchingOperationRuleHasABucketOfItsOwn(t *testing.T) {
	t.Parallel()
	s := compiled(t, document)
	subject := tiers.Subject{Tenant: "x"}
	for _, test := range []struct {
		name    string
		fields  []string
		owners  []string
		maxCost int64
	}{
		{"no root field", nil, []string{"tenant:"}, 500},
		{"a field without a rule", []string{"Query.me"}, []string{"tenant:"}, 500},
		{
			"a coordinate and a pattern",
			[]string{"Mutation.createOrder"},
			[]string{"tenant:", "operation:Mutation.*", "operation:Mutation.createOrder"},
			50,
		},
		{"a pattern alone", []string{"Mutation.cancel"}, []string{"tenant:", "operation:Mutation.*"}, 500},
		{"a field twice", []string{"Mutation.cancel", "Mutation.cancel"}, []string{"tenant:", "operation:Mutation.*"}, 500},
		{"a rule without limits", []string{"Query.searchUsers"}, []string{"tenant:"}, 200},
		{"the whole of a pattern", []string{"Query.research"}, []string{"tenant:"}, 500},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			rules := s.Rules(subject, tiers.Selection{Fields: test.fields})
			require.Equal(t, test.owners, owners(rules))
			require.Equal(t, tiers.MaxCost{Enforce: test.maxCost}, rules.MaxCost)
		})
	}

	t.Run("an exception merges with the rule of the same spelling", func(t *testing.T) {
		t.Parallel()
		rules := s.Rules(tiers.Subject{Tenant: "slow"}, tiers.Selection{Fields: []string{"Mutation.createOrder"}})
		require.Equal(t, tiers.MaxCost{Shadow: 50}, rules.MaxCost)
		limits := limitsOf(t, rules, bucket.Owner{Level: bucket.Operation, Name: "Mutation.createOrder"})
		require.Len(t, limits, 1)
		require.EqualValues(t, 50, limits["day"].Capacity)
		require.Equal(t, tiers.MaxCost{Shadow: 900}, s.Rules(tiers.Subject{Tenant: "slow"}, tiers.Selection{}).MaxCost)
	})
}

func TestUnlimitedAndBlockedAreFlagsWithoutBuckets(t *testing.T) {
	t.Parallel()
	first := tiers.Shedding{Order: 1, Floor: 10}
	s := compiled(t, document)
	enterprise := s.Rules(tiers.Subject{Tenant: "corner"}, tiers.Selection{Fields: []string{"Mutation.createOrder"}})
	require.EqualExportedValues(t, tiers.Rules{Tier: "enterprise", Unlimited: true, MaxCost: tiers.MaxCost{Enforce: 100000}, Throttle: first}, enterprise)
	banned := s.Rules(tiers.Subject{Tenant: "bad guys"}, tiers.Selection{Fields: []string{"Mutation.createOrder"}})
	require.EqualExportedValues(t, tiers.Rules{Tier: "banned", Blocked: true, Throttle: first}, banned)
	exempt := s.Rules(tiers.Subject{Exempt: true, Tenant: "acme"}, tiers.Selection{Fields: []string{"Mutation.createOrder"}})
	require.EqualExportedValues(t, tiers.Rules{Tier: "pro", Mode: bucket.Off, Unlimited: true}, exempt)

	t.Run("an unlimited tenant keeps what an operation may cost", func(t *testing.T) {
		t.Parallel()
		s := compiled(t, document+"  vip: {unlimited: true}\n")
		vip := s.Rules(tiers.Subject{Tenant: "vip"}, tiers.Selection{Fields: []string{"Mutation.createOrder"}})
		require.EqualExportedValues(t, tiers.Rules{Tier: "free", Unlimited: true, MaxCost: tiers.MaxCost{Enforce: 50}, Throttle: first}, vip)
	})
	t.Run("a blocked tier stays blocked for an unlimited tenant that carries it", func(t *testing.T) {
		t.Parallel()
		s := compiled(t, document+"  vip: {unlimited: true}\n")
		vip := s.Rules(tiers.Subject{Tenant: "vip", Tier: "banned"}, tiers.Selection{})
		require.True(t, vip.Blocked)
		require.False(t, vip.Unlimited)
	})
}

func TestRulesAllocateNothing(t *testing.T) {
	s := compiled(t, document)
	for _, test := range []struct {
		name    string
		subject tiers.Subject
		fields  []string
	}{
		{"default", tiers.Subject{Tenant: "nobody"}, nil},
		{"exception", tiers.Subject{Tenant: "acme"}, []string{"Query.me"}},
		{"carried tier", tiers.Subject{Tenant: "acme", Tier: "free"}, []string{"Query.me"}},
		{"operation rules", tiers.Subject{Tenant: "x"}, []string{"Mutation.createOrder"}},
		{"several calls, each of a rule of its own", tiers.Subject{Tenant: "x"}, []string{"Mutation.cancel", "Query.searchAll"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var rules tiers.Rules
			require.Zero(t, testing.AllocsPerRun(100, func() { rules = s.Rules(test.subject, tiers.Selection{Fields: test.fields}) }))
			require.NotEmpty(t, rules.Buckets)
		})
	}
}

func TestUnforeseenCombinationsOfOperationRulesApplyToo(t *testing.T) {
	t.Parallel()
	s := compiled(t, `
version: 1
default: free
tiers:
  free:
    operations:
      Query.a: {limits: {minute: {capacity: 1, per: minute}}}
      Query.b: {limits: {minute: {capacity: 2, per: minute}}}
      Query.c: {limits: {minute: {capacity: 3, per: minute}}}
`)
	rules := s.Rules(tiers.Subject{Tenant: "x"}, tiers.Selection{Fields: []string{"Query.c", "Query.a"}})
	require.Equal(t, []string{"operation:Query.a", "operation:Query.c"}, owners(rules))
}

func BenchmarkRules(b *testing.B) {
	s := compiled(b, document)
	for _, bench := range []struct {
		name    string
		subject tiers.Subject
		fields  []string
	}{
		{"default tier", tiers.Subject{Tenant: "nobody"}, []string{"Query.me"}},
		{"exception", tiers.Subject{Tenant: "acme"}, []string{"Query.me"}},
		{"operation rules", tiers.Subject{Tenant: "nobody"}, []string{"Mutation.createOrder"}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if s.Rules(bench.subject, tiers.Selection{Fields: bench.fields}).Tier == "" {
					b.Fatal("no tier")
				}
			}
		})
	}
}

func TestAskingForAPriceIsPermittedByTheTierOrItsException(t *testing.T) {
	t.Parallel()
	s, err := tiers.Compile(tiers.Policy{
		Default: "free",
		Tiers: map[string]tiers.Tier{
			"free":  {Unlimited: true},
			"pro":   {Unlimited: true, CostReport: true},
			"staff": {Unlimited: true, CostReport: true, CostValidate: true},
		},
		Tenants: map[string]tiers.Exception{"partner": {CostValidate: true}},
	})
	require.NoError(t, err)
	for _, test := range []struct {
		name             string
		subject          tiers.Subject
		report, validate bool
	}{
		{"neither by default", tiers.Subject{Tenant: "a"}, false, false},
		{"one of both", tiers.Subject{Tenant: "a", Tier: "pro"}, true, false},
		{"both", tiers.Subject{Tenant: "a", Tier: "staff"}, true, true},
		{"an exception adds", tiers.Subject{Tenant: "partner", Tier: "pro"}, true, true},
		{"an exempt subject has what its tier has", tiers.Subject{Tenant: "a", Tier: "pro", Exempt: true}, true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			rules := s.Rules(test.subject, tiers.Selection{})
			require.Equal(t, test.report, rules.CostReport)
			require.Equal(t, test.validate, rules.CostValidate)
		})
	}
}
