package tiers_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// cascade is a policy with budgets at every level.
const cascade = `
version: 1
default: pro
tiers:
  pro:
    limits: {minute: {capacity: 1000, per: minute}}
    teams: {limits: {minute: {capacity: 500, per: minute}, hour: {capacity: 9000, per: hour}}}
    users: {limits: {minute: {capacity: 100, per: minute}}}
    operations:
      Mutation.*: {limits: {minute: {unit: requests, capacity: 10, per: minute}}}
  free:
    limits: {minute: {capacity: 10, per: minute}}
tenants:
  acme:
    teams:
      limits: {hour: null, day: {capacity: 20000, per: day}}
      byName:
        search: {limits: {minute: {capacity: 800, per: minute}}}
        guests: {limits: {minute: null, day: null}}
    users:
      byName:
        ci: {limits: {minute: {capacity: 900, per: minute}}}
`

var (
	nobody = bucket.Owner{}
	search = bucket.Owner{Level: bucket.Team, Name: "search"}
	alice  = bucket.Owner{Level: bucket.User, Name: "alice"}
)

func TestTenantTeamUserAndOperationAreChargedTogetherInThisOrder(t *testing.T) {
	t.Parallel()
	s := compiled(t, cascade)
	for _, test := range []struct {
		name    string
		subject tiers.Subject
		want    []string
	}{
		{"all levels", tiers.Subject{Tenant: "x", Team: "search", User: "alice"}, []string{"tenant:", "team:search", "user:alice", "operation:Mutation.*"}},
		{"no team", tiers.Subject{Tenant: "x", User: "alice"}, []string{"tenant:", "user:alice", "operation:Mutation.*"}},
		{"no user", tiers.Subject{Tenant: "x", Team: "search"}, []string{"tenant:", "team:search", "operation:Mutation.*"}},
		{"the tenant itself", tiers.Subject{Tenant: "x"}, []string{"tenant:", "operation:Mutation.*"}},
		{"a tier without budgets for them", tiers.Subject{Tenant: "x", Tier: "free", Team: "search", User: "alice"}, []string{"tenant:"}},
		{"a team whose limits are all removed", tiers.Subject{Tenant: "acme", Team: "guests"}, []string{"tenant:", "operation:Mutation.*"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, owners(s.Rules(test.subject, tiers.Selection{Fields: []string{"Mutation.buy"}})))
		})
	}
}

func TestAnOverrideChangesTheBucketOfItsOwnLevelOnly(t *testing.T) {
	t.Parallel()
	s := compiled(t, cascade)
	capacities := func(tenant, team, user string, owner bucket.Owner) map[string]int64 {
		found := make(map[string]int64)
		rules := s.Rules(tiers.Subject{Tenant: tenant, Team: team, User: user}, tiers.Selection{})
		for name, limit := range limitsOf(t, rules, owner) {
			found[name] = limit.Capacity
		}
		return found
	}
	require.Equal(t, map[string]int64{"minute": 500, "hour": 9000}, capacities("x", "search", "alice", search))
	require.Equal(t, map[string]int64{"minute": 800, "day": 20000}, capacities("acme", "search", "alice", search))
	other := bucket.Owner{Level: bucket.Team, Name: "other"}
	require.Equal(t, map[string]int64{"minute": 500, "day": 20000}, capacities("acme", "other", "alice", other))
	require.Equal(t, map[string]int64{"minute": 100}, capacities("acme", "search", "alice", alice))
	ci := bucket.Owner{Level: bucket.User, Name: "ci"}
	require.Equal(t, map[string]int64{"minute": 900}, capacities("acme", "search", "ci", ci))
	require.Equal(t, map[string]int64{"minute": 100}, capacities("x", "search", "ci", ci), "it is named in another tenant")
	for _, tenant := range []string{"x", "acme"} {
		require.Equal(t, map[string]int64{"minute": 1000}, capacities(tenant, "search", "ci", nobody))
	}
}

func TestRulesIntoAllocatesNothingAtAllLevels(t *testing.T) {
	s := compiled(t, cascade)
	subject := tiers.Subject{Tenant: "acme", Team: "search", User: "alice"}
	fields := []string{"Mutation.buy"}
	room := make([]bucket.Bucket, 4)
	var rules tiers.Rules
	require.Zero(t, testing.AllocsPerRun(100, func() { rules = s.RulesInto(room, subject, tiers.Selection{Fields: fields}) }))
	require.Len(t, rules.Buckets, 4)
	require.Equal(t, s.Rules(subject, tiers.Selection{Fields: fields}), rules)

	t.Run("and Rules makes the room itself", func(t *testing.T) {
		require.EqualValues(t, 1, testing.AllocsPerRun(100, func() { rules = s.Rules(subject, tiers.Selection{Fields: fields}) }))
	})
}

func TestRulesAreSharedWhereNothingIsParticular(t *testing.T) { //nolint:paralleltest // It counts what the process allocates.
	s := compiled(t, `
version: 1
default: pro
tiers:
  pro:
    limits: {minute: {capacity: 1000, per: minute}}
  staffed:
    limits: {minute: {capacity: 1000, per: minute}}
    users: {limits: {minute: {capacity: 10, per: minute}}}
  ruled:
    limits: {minute: {capacity: 1000, per: minute}}
    operations: {Query.me: {maxCost: 5}}
tenants:
  acme: {limits: {minute: {capacity: 7, per: minute}}}
`)
	later := s.AtMost(bucket.Shadow)
	for _, subject := range []tiers.Subject{
		{Tenant: "x"}, {Tenant: "x", Team: "search", User: "alice"}, {Tenant: "acme"}, {Tenant: "x", Tier: "staffed"},
	} {
		for _, s := range []*tiers.Snapshot{s, later, s} {
			require.Equal(t, s.Rules(subject, tiers.Selection{}), *s.SharedRules(subject))
			first, second := s.SharedRules(subject), s.SharedRules(subject)
			require.Same(t, first, second)
			require.Zero(t, testing.AllocsPerRun(100, func() { s.SharedRules(subject) }))
		}
	}
	for what, subject := range map[string]tiers.Subject{
		"a user with a budget": {Tenant: "x", Tier: "staffed", User: "alice"}, "operation rules": {Tenant: "x", Tier: "ruled"},
		"exempt": {Tenant: "x", Exempt: true},
	} {
		require.Nil(t, s.SharedRules(subject), what)
	}
}

func TestRoomThatIsTooSmallIsLeftAlone(t *testing.T) {
	t.Parallel()
	room := make([]bucket.Bucket, 1, 2)
	s := compiled(t, cascade)
	rules := s.RulesInto(room, tiers.Subject{Tenant: "acme", Team: "search", User: "alice"}, tiers.Selection{})
	require.Len(t, rules.Buckets, 3)
	require.Zero(t, room[0])
}

func TestBudgetsThatExceedThatOfTheirTenantAreWarnedOf(t *testing.T) {
	t.Parallel()
	document := `version: 1
default: pro
tiers:
  pro:
    limits: {minute: {capacity: 1000, per: minute}}
    teams: {limits: {minute: {capacity: 500, per: 60s}, calls: {unit: requests, capacity: 5000, per: minute}}}
    users: {limits: {minute: {capacity: 1001, per: minute}}}
  wide: {limits: {minute: {capacity: 5000, per: minute}}}
tenants:
  same: {mode: shadow}
  unbounded: {tier: wide, limits: {minute: null}, users: {limits: {minute: {capacity: 9000, per: minute}}}}
  acme:
    tier: wide
    teams:
      byName:
        a: {limits: {minute: {capacity: 3000, per: minute}}}
        b: {limits: {minute: {capacity: 2001, per: minute}}}
    users:
      byName:
        c: {limits: {minute: {capacity: 5001, per: minute}}}
        d: {limits: {minute: {capacity: 9000, per: minute, mode: "off"}}}
`
	want := []string{
		`line 7, column 31: tiers.pro.users.limits.minute.capacity: a capacity of 1001 points each minute can never be used whole: their tenant has 1000`,
		`line 15, column 7: tenants.acme.teams.byName: 2 named teams have 5001 points each minute together, more than the 5000 of their tenant`,
		`line 20, column 31: tenants.acme.users.byName.c.limits.minute.capacity: a capacity of 5001 points each minute can never be used whole: their tenant has 5000`,
	}
	loaded, err := tiers.Load([]byte(document), 1)
	require.NoError(t, err)
	var got []string
	for _, warning := range loaded.Warnings() {
		got = append(got, warning.String())
	}
	require.Equal(t, want, got)

	t.Run("by path where there are no lines", func(t *testing.T) {
		t.Parallel()
		warnings := compiled(t, document).Warnings()
		require.Len(t, warnings, len(want))
		for _, warning := range warnings {
			require.Zero(t, warning.Line)
			require.True(t, strings.HasPrefix(warning.String(), "t"), warning.String())
		}
	})
	t.Run("at most a hundred", func(t *testing.T) {
		t.Parallel()
		policy := tiers.Policy{Default: "pro", Tiers: map[string]tiers.Tier{
			"pro": {Limits: map[string]*tiers.Limit{"minute": {Capacity: 1, Per: tiers.Minute}}},
		}, Tenants: make(map[string]tiers.Exception)}
		for i := range 200 {
			policy.Tenants[fmt.Sprint(i)] = tiers.Exception{Teams: &tiers.OwnerException{OwnerRule: tiers.OwnerRule{
				Limits: map[string]*tiers.Limit{"minute": {Capacity: 2, Per: tiers.Minute}},
			}}}
		}
		s, err := tiers.Compile(policy)
		require.NoError(t, err)
		require.Len(t, s.Warnings(), 100)
	})
}

func TestABudgetIsComparedWithAllThatPayBesideItAndRefuse(t *testing.T) {
	t.Parallel()
	const whole = " can never be used whole: "
	for _, test := range []struct{ name, tier, want string }{
		{
			"users above their team", `limits: {d: {capacity: 100, per: day}}, teams: {limits: {d: {capacity: 10, per: day}}}, users: {limits: {d: {capacity: 50, per: day}}}`,
			"users.limits.d.capacity: a capacity of 50 points each day" + whole + "a team has 10",
		},
		{
			"operations above the tenant", `limits: {d: {capacity: 100, per: day}}, operations: {Query.a: {limits: {d: {capacity: 1000, per: day}}}}`,
			`operations["Query.a"].limits.d.capacity: a capacity of 1000 points each day` + whole + "their tenant has 100",
		},
		{
			"a longer period", `limits: {m: {capacity: 100, per: month, window: calendar}, h: {capacity: 200, per: hour}}, users: {limits: {m: {capacity: 100000, per: minute}}}`,
			"users.limits.m.capacity: a capacity of 100000 points each minute" + whole + "their tenant has 100 each month",
		},
		{"a shorter period comes again", `limits: {m: {capacity: 100, per: minute}}, users: {limits: {d: {capacity: 1000, per: day}}}`, ""},
		{"another unit", `limits: {m: {capacity: 1, per: minute, unit: requests}}, users: {limits: {m: {capacity: 10, per: minute}}}`, ""},
		{"a tenant's limit in shadow", `limits: {a: {capacity: 10, per: minute, mode: shadow}, b: {capacity: 1000, per: minute}}, users: {limits: {m: {capacity: 500, per: minute}}}`, ""},
		{"all in shadow", `mode: shadow, limits: {a: {capacity: 10, per: minute}}, users: {limits: {m: {capacity: 500, per: minute}}}`, ""},
		{"off from above", `mode: "off", limits: {a: {capacity: 10, per: minute}}, users: {mode: enforce, limits: {m: {capacity: 500, per: minute}}}`, ""},
		{
			"warned of with a day", `mode: warn, enforceFrom: 2126-12-01, limits: {a: {capacity: 10, per: minute}}, users: {limits: {m: {capacity: 500, per: minute}}}`,
			"users.limits.m.capacity: a capacity of 500 points each minute" + whole + "their tenant has 10",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var got string
			for _, warning := range compiled(t, "{version: 1, default: pro, tiers: {pro: {"+test.tier+"}}}").Warnings() {
				got += strings.TrimPrefix(warning.String(), "tiers.pro.")
			}
			require.Equal(t, test.want, got)
		})
	}
}

func TestNamedTeamsAndUsersAreBounded(t *testing.T) {
	t.Parallel()
	policy := tiers.Policy{Default: "t0", Tiers: make(map[string]tiers.Tier), Tenants: make(map[string]tiers.Exception)}
	for i := range maxTiers {
		policy.Tiers[fmt.Sprintf("t%d", i)] = tiers.Tier{MaxCost: 1}
	}
	named := make(map[string]tiers.OwnerRule)
	for i := range 3 * maxCompiled / maxTiers {
		named[fmt.Sprint(i)] = tiers.OwnerRule{Limits: map[string]*tiers.Limit{"minute": {Capacity: 1, Per: tiers.Minute}}}
	}
	policy.Tenants["acme"] = tiers.Exception{Users: &tiers.UserException{OwnerException: tiers.OwnerException{ByName: named}}}
	_, err := tiers.Compile(policy)
	require.ErrorContains(t, err, "tenants: the policy comes to more than 524288 limits")
}

func BenchmarkRulesAtAllLevels(b *testing.B) {
	s := compiled(b, cascade)
	subject := tiers.Subject{Tenant: "acme", Team: "search", User: "alice"}
	fields := []string{"Mutation.buy"}
	var room [4]bucket.Bucket
	b.ReportAllocs()
	for b.Loop() {
		if len(s.RulesInto(room[:], subject, tiers.Selection{Fields: fields}).Buckets) != 4 {
			b.Fatal("not all levels")
		}
	}
}
