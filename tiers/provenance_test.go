package tiers_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// levels is a policy in which each part says something that no other part does.
const levels = `
version: 1
default: free
mode: warn
enforceFrom: 2026-12-01
tiers:
  free:
    maxCost: 500
    limits: {minute: {capacity: 10, per: minute}, hour: {capacity: 20, per: hour, mode: shadow, failMode: closed}}
  pro:
    mode: enforce
    failMode: local
    maxCost: 900
    limits: {minute: {capacity: 100, per: minute}, hour: {capacity: 200, per: hour}}
    teams: {mode: shadow, limits: {minute: {capacity: 50, per: minute}}}
    users: {failMode: bounded, limits: {minute: {capacity: 5, per: minute}, day: {capacity: 70, per: day}}}
    operations:
      Mutation.*: {mode: shadow, maxCost: 300, limits: {minute: {unit: requests, capacity: 3, per: minute}}}
      Query.search: {maxCost: 200}
  banned: {blocked: true}
tenants:
  acme:
    tier: pro
    failMode: closed
    limits: {minute: {capacity: 101, per: minute}}
    teams:
      mode: warn
      limits: {minute: {capacity: 51, per: minute}}
      byName:
        web: {failMode: local, limits: {minute: {capacity: 52, per: minute, mode: "off"}}}
        ops: {limits: {minute: null, hour: {capacity: 53, per: hour}}}
    users:
      byName:
        "a.b c": {mode: shadow, limits: {day: null, minute: {capacity: 6, per: minute}}}
    operations:
      Mutation.*: {maxCost: 301, limits: {minute: {unit: requests, capacity: 4, per: minute}}}
  partner: {mode: shadow, maxCost: 600}
  evil: {blocked: true}
`

func TestTheProvenanceOfALimitNamesThePlaceOfEachOfItsValues(t *testing.T) {
	t.Parallel()
	policy, err := tiers.Parse([]byte(levels))
	require.NoError(t, err)
	snapshot, err := tiers.Compile(policy)
	require.NoError(t, err)
	before := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	snapshot = snapshot.At(before)
	all := bucket.Owner{Level: bucket.Operation, Name: "Mutation.*"}
	user := func(name string) bucket.Owner { return bucket.Owner{Level: bucket.User, Name: name} }
	team := func(name string) bucket.Owner { return bucket.Owner{Level: bucket.Team, Name: name} }
	for _, test := range []struct {
		name    string
		subject tiers.Subject
		owner   bucket.Owner
		limit   string
		// want is tier, rule, mode and failMode.
		want [4]string
	}{
		{
			"the tier by default",
			tiers.Subject{Tenant: "x"},
			nobody, "minute",
			[4]string{"default", "tiers.free.limits.minute", "mode", "(default)"},
		},
		{
			"the limit itself",
			tiers.Subject{Tenant: "x"},
			nobody, "hour",
			[4]string{"default", "tiers.free.limits.hour", "tiers.free.limits.hour.mode", "tiers.free.limits.hour.failMode"},
		},
		{
			"the tier that the subject carries",
			tiers.Subject{Tenant: "x", Tier: "pro"},
			nobody, "hour",
			[4]string{"(subject)", "tiers.pro.limits.hour", "tiers.pro.mode", "tiers.pro.failMode"},
		},
		{
			"a tier that nobody knows",
			tiers.Subject{Tenant: "x", Tier: "gold"},
			nobody, "minute",
			[4]string{"default", "tiers.free.limits.minute", "mode", "(default)"},
		},
		{
			"the tenant before the tier",
			tiers.Subject{Tenant: "acme"},
			nobody, "minute",
			[4]string{"tenants.acme.tier", "tiers.pro.limits.minute, tenants.acme.limits.minute", "tiers.pro.mode", "tenants.acme.failMode"},
		},
		{
			"an exception in another tier",
			tiers.Subject{Tenant: "acme", Tier: "free"},
			nobody, "minute",
			[4]string{"(subject)", "tiers.free.limits.minute, tenants.acme.limits.minute", "mode", "tenants.acme.failMode"},
		},
		{
			"the mode of a tenant",
			tiers.Subject{Tenant: "partner"},
			nobody, "minute",
			[4]string{"default", "tiers.free.limits.minute", "tenants.partner.mode", "(default)"},
		},
		{
			"all teams",
			tiers.Subject{Tenant: "x", Tier: "pro", Team: "any"},
			team("any"), "minute",
			[4]string{"(subject)", "tiers.pro.teams.limits.minute", "tiers.pro.teams.mode", "tiers.pro.failMode"},
		},
		{
			"all teams of a tenant",
			tiers.Subject{Tenant: "acme", Team: "any"},
			team("any"), "minute",
			[4]string{"tenants.acme.tier", "tiers.pro.teams.limits.minute, tenants.acme.teams.limits.minute", "tenants.acme.teams.mode", "tenants.acme.failMode"},
		},
		{
			"a named team",
			tiers.Subject{Tenant: "acme", Team: "web"},
			team("web"), "minute",
			[4]string{
				"tenants.acme.tier", "tiers.pro.teams.limits.minute, tenants.acme.teams.limits.minute, tenants.acme.teams.byName.web.limits.minute",
				"tenants.acme.teams.byName.web.limits.minute.mode", "tenants.acme.teams.byName.web.failMode",
			},
		},
		{
			"a limit of a named team alone",
			tiers.Subject{Tenant: "acme", Team: "ops"},
			team("ops"), "hour",
			[4]string{"tenants.acme.tier", "tenants.acme.teams.byName.ops.limits.hour", "tenants.acme.teams.mode", "tenants.acme.failMode"},
		},
		{"a limit that is removed", tiers.Subject{Tenant: "acme", Team: "ops"}, team("ops"), "minute", [4]string{}},
		{
			"all users",
			tiers.Subject{Tenant: "acme", User: "eve"},
			user("eve"), "day",
			[4]string{"tenants.acme.tier", "tiers.pro.users.limits.day", "tiers.pro.mode", "tiers.pro.users.failMode"},
		},
		{
			"a user whose name is no word",
			tiers.Subject{Tenant: "acme", User: "a.b c"},
			user("a.b c"), "minute",
			[4]string{
				"tenants.acme.tier", `tiers.pro.users.limits.minute, tenants.acme.users.byName["a.b c"].limits.minute`,
				`tenants.acme.users.byName["a.b c"].mode`, "tiers.pro.users.failMode",
			},
		},
		{
			"an operation rule",
			tiers.Subject{Tenant: "x", Tier: "pro"},
			all, "minute",
			[4]string{"(subject)", `tiers.pro.operations["Mutation.*"].limits.minute`, `tiers.pro.operations["Mutation.*"].mode`, "tiers.pro.failMode"},
		},
		{
			"an operation rule of a tenant",
			tiers.Subject{Tenant: "acme"},
			all, "minute",
			[4]string{
				"tenants.acme.tier", `tiers.pro.operations["Mutation.*"].limits.minute, tenants.acme.operations["Mutation.*"].limits.minute`,
				`tiers.pro.operations["Mutation.*"].mode`, "tenants.acme.failMode",
			},
		},
		{"a limit that nobody has", tiers.Subject{Tenant: "acme"}, nobody, "year", [4]string{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			rules := snapshot.Rules(test.subject, tiers.Selection{Fields: []string{"Mutation.a"}})
			got, found := rules.LimitProvenance(test.subject, test.owner, test.limit)
			require.Equal(t, test.want != [4]string{}, found)
			require.Equal(t, test.want, [4]string{got.Tier, strings.Join(got.Rule, ", "), got.Mode, got.FailMode})
			compiled := limitsOf(t, rules, test.owner)
			if _, judged := compiled[test.limit]; judged != found {
				t.Fatalf("the policy has the limit: %v, its provenance: %v", judged, found)
			}
		})
	}
	t.Run("on the day of enforcement and under a mode switch", func(t *testing.T) {
		t.Parallel()
		mode := func(s *tiers.Snapshot) string {
			rules := s.Rules(tiers.Subject{Tenant: "x"}, tiers.Selection{})
			p, _ := rules.LimitProvenance(tiers.Subject{Tenant: "x"}, nobody, "minute")
			return p.Mode
		}
		after := snapshot.At(time.Date(2026, 12, 2, 0, 0, 0, 0, time.UTC))
		require.Equal(t, "enforceFrom", mode(after))
		require.Equal(t, "(mode switch)", mode(after.AtMost(bucket.Shadow)))
		require.Equal(t, "mode", mode(snapshot.AtMost(bucket.Warn)), "warn is not eased to warn")
	})
}

func TestTheProvenanceOfAMaximumCostAndOfABlockNamesItsPlace(t *testing.T) {
	t.Parallel()
	policy, err := tiers.Parse([]byte(levels))
	require.NoError(t, err)
	snapshot, err := tiers.Compile(policy)
	require.NoError(t, err)
	snapshot = snapshot.At(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC))
	for name, test := range map[string]struct {
		subject tiers.Subject
		field   string
		points  int64
		want    string
	}{
		"tier":                {tiers.Subject{Tenant: "x"}, "Query.me", 501, "tiers.free.maxCost warn by mode"},
		"tenant":              {tiers.Subject{Tenant: "partner"}, "Query.me", 601, "tiers.free.maxCost tenants.partner.maxCost shadow by tenants.partner.mode"},
		"operation":           {tiers.Subject{Tenant: "x", Tier: "pro"}, "Query.search", 201, `tiers.pro.operations["Query.search"].maxCost enforce by tiers.pro.mode`},
		"tier before pattern": {tiers.Subject{Tenant: "acme"}, "Mutation.a", 901, "tiers.pro.maxCost enforce by tiers.pro.mode"},
		"pattern": {
			tiers.Subject{Tenant: "acme"},
			"Mutation.a", 302,
			`tiers.pro.operations["Mutation.*"].maxCost tenants.acme.operations["Mutation.*"].maxCost shadow by tiers.pro.operations["Mutation.*"].mode`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fields := []string{test.field}
			rules := snapshot.Rules(test.subject, tiers.Selection{Fields: fields})
			most, mode := rules.MaxCost.Exceeded(test.points)
			p, found := rules.MaxCostProvenance(test.subject, tiers.Selection{Fields: fields}, most, mode)
			require.True(t, found)
			require.Equal(t, test.want, strings.Join(p.Rule, " ")+" "+mode.String()+" by "+p.Mode)
			_, found = rules.MaxCostProvenance(test.subject, tiers.Selection{Fields: fields}, most+1, mode)
			require.False(t, found)
			_, found = rules.MaxCostProvenance(test.subject, tiers.Selection{Fields: fields}, most, bucket.Off)
			require.False(t, found, "another mode")
		})
	}
	for subject, want := range map[tiers.Subject]string{
		{Tenant: "evil"}:              "default: tenants.evil.blocked",
		{Tenant: "x", Tier: "banned"}: "(subject): tiers.banned.blocked",
		{Tenant: "x"}:                 "default: ",
	} {
		rules := snapshot.Rules(subject, tiers.Selection{})
		p := rules.Provenance(subject)
		require.Equal(t, want, p.Tier+": "+strings.Join(p.Rule, " "))
	}
	require.Equal(t, tiers.Provenance{}, (&tiers.Rules{}).Provenance(tiers.Subject{}))
}

func TestTheProvenanceOfWhatAnOperationIsDividedByNamesItsPlace(t *testing.T) {
	t.Parallel()
	snapshot := compiled(t, `
version: 1
default: free
tiers:
  free:
    users:
      mode: warn
      operations:
        Mutation.login: {limits: {minute: {unit: requests, capacity: 5, per: minute}}}
    operations:
      Mutation.login:
        mode: warn
        limits:
          minute: {unit: requests, capacity: 50, per: minute}
          account: {unit: requests, capacity: 10, per: hour, by: input.email, mode: warn, enforceFrom: 2100-01-01}
          everywhere: {unit: requests, capacity: 20, per: hour, by: input.email, across: true, mode: shadow}
tenants:
  acme:
    users:
      operations:
        Mutation.login: {mode: enforce, limits: {minute: {unit: requests, capacity: 7, per: minute}}}
`)
	subject := tiers.Subject{Tenant: "acme", User: "ada"}
	rules := snapshot.Rules(subject, logins("a").selection())
	place := func(owner bucket.Owner, limit string) string {
		p, found := rules.LimitProvenance(subject, owner, limit)
		require.True(t, found, limit)
		return strings.Join(p.Rule, " ") + " by " + p.Mode
	}
	owner := bucket.Owner{Level: bucket.Operation, Name: "Mutation.login"}
	const rule = `tiers.free.operations["Mutation.login"]`
	require.Equal(t, rule+".limits.minute by "+rule+".mode", place(owner, "minute"))
	owner.Part = tiers.UserPart("ada")
	require.Equal(t, `tiers.free.users.operations["Mutation.login"].limits.minute tenants.acme.users.operations["Mutation.login"].limits.minute `+
		`by tenants.acme.users.operations["Mutation.login"].mode`, place(owner, "minute"))
	for _, b := range rules.Buckets {
		if limit := b.Limits.All()[0].Name; limit == "account" {
			require.Equal(t, rule+".limits.account by "+rule+".limits.account.mode", place(b.Owner, limit))
			require.Equal(t, 2100, rules.LimitEnforcedFrom(b.Owner, limit).Year())
		}
	}
	require.Equal(t, rule+".limits.everywhere by "+rule+".limits.everywhere.mode", place(rules.Across[0].Owner, "everywhere"))
	require.Zero(t, rules.LimitEnforcedFrom(rules.Across[0].Owner, "everywhere"))
}
