package tiers_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

const keyed = `
version: 1
default: free
parameters:
  lang: {header: Accept-Language}
  plan: {claim: plan}
  region: {header: Region}
custom:
  lang:en: {limits: {minute: {capacity: 51, per: minute}}}
  lang:en,tenant:acme: {instead: true, limits: {minute: {capacity: 52, per: minute}}}
  region:eu,lang:en,plan:gold: {limits: {minute: {capacity: 53, per: minute}}}
  region:eu: {across: true, limits: {minute: {capacity: 54, per: minute, unit: requests}}}
  plan:gold: {limits: {minute: {capacity: 55, per: minute}}}
  user:bot: {limits: {minute: {capacity: 56, per: minute}}}
  tier:pro,plan:gold: {limits: {minute: {capacity: 57, per: minute}}}
  tenant:recorded,region:eu: {instead: true, limits: {minute: {capacity: 58, per: minute}}}
tiers:
  free:
    limits: {minute: {capacity: 10, per: minute}}
    users: {limits: {minute: {capacity: 5, per: minute}}}
  pro: {limits: {minute: {capacity: 100, per: minute}, keys: {capacity: 9, per: day, unit: records}}}
  shadow: {mode: shadow, limits: {minute: {capacity: 100, per: minute}}}
  open: {unlimited: true}
tenants:
  listed: {tier: pro, custom: {"lang:de": {instead: true, limits: {minute: {capacity: 61, per: minute}}}, "lang:en": {limits: {minute: {capacity: 62, per: minute}}}}}
  open: {tier: open}
  blocked: {blocked: true}
`

// under says under which limits a request is: the capacity of the first one of each owner, and what all tenants share.
func under(s *tiers.Snapshot, subject tiers.Subject, carried headers, r *tiers.Record) string {
	rules := s.Rules(subject, tiers.Selection{Parameters: carried, Record: r})
	var all []string
	for _, b := range rules.Buckets {
		all = append(all, strings.TrimSpace(fmt.Sprint(b.Owner.Level, " ", b.Owner.Name))+fmt.Sprint("=", b.Limits.All()[0].Capacity))
	}
	for _, b := range rules.Across {
		all = append(all, fmt.Sprint("all ", b.Owner.Name, "=", b.Limits.All()[0].Capacity))
	}
	return strings.Join(all, ", ")
}

func TestTheMostSpecificKeyThatARequestMatchesHolds(t *testing.T) {
	t.Parallel()
	s := compiled(t, keyed)
	gold := &tiers.Claims{"plan": "gold"}
	for _, test := range []struct {
		name    string
		subject tiers.Subject
		carried headers
		want    string
	}{
		{"nothing", tiers.Subject{Tenant: "x"}, nil, "tenant=10"},
		{"one part, beside the tenant", tiers.Subject{Tenant: "x"}, headers{"Accept-Language": "en"}, "tenant=10, operation lang:en=51"},
		{"a user beside it", tiers.Subject{Tenant: "x", User: "ann"}, headers{"Accept-Language": "en"}, "tenant=10, user ann=5, operation lang:en=51"},
		{"a value that no key has", tiers.Subject{Tenant: "x"}, headers{"Accept-Language": "fr"}, "tenant=10"},
		{"another spelling", tiers.Subject{Tenant: "x"}, headers{"Accept-Language": "EN"}, "tenant=10"},
		{"an attempt to write a key into a value", tiers.Subject{Tenant: "x"}, headers{"Accept-Language": "en,tenant:acme"}, "tenant=10"},
		{"a tenant that is named like a key", tiers.Subject{Tenant: "acme,lang:en"}, headers{"Accept-Language": "en"}, "tenant=10, operation lang:en=51"},
		{"two parts, in the place of the tenant", tiers.Subject{Tenant: "acme", User: "ann"}, headers{"Accept-Language": "en"}, "operation lang:en=52"},
		{"three parts", tiers.Subject{Tenant: "acme", Claims: gold}, headers{"Accept-Language": "en", "Region": "eu"}, "tenant=10, operation lang:en,plan:gold,region:eu=53"},
		{"a claim that the client says by itself", tiers.Subject{Tenant: "x"}, headers{"plan": "gold"}, "tenant=10"},
		{"of two with as many parts the first", tiers.Subject{Tenant: "x", Claims: gold}, headers{"Accept-Language": "en"}, "tenant=10, operation lang:en=51"},
		{"the second alone", tiers.Subject{Tenant: "x", Claims: gold}, nil, "tenant=10, operation plan:gold=55"},
		{"what all tenants share", tiers.Subject{Tenant: "x"}, headers{"Region": "eu"}, "tenant=10, all region:eu=54"},
		{"the user", tiers.Subject{Tenant: "x", User: "bot"}, nil, "tenant=10, user bot=5, operation user:bot=56"},
		{"the tier", tiers.Subject{Tenant: "x", Tier: "pro", Claims: gold}, nil, "tenant=100, operation plan:gold,tier:pro=57"},
		{"a custom limit of a tenant", tiers.Subject{Tenant: "listed"}, headers{"Accept-Language": "de"}, "tenant=100, operation lang:de=61"},
		{"before one of the policy with as many parts but the tenant", tiers.Subject{Tenant: "listed"}, headers{"Accept-Language": "en"}, "tenant=100, operation lang:en=62"},
		{
			"of two with as many parts, the tenant among them, the first",
			tiers.Subject{Tenant: "listed", Tier: "pro", Claims: gold},
			headers{"Accept-Language": "de"},
			"tenant=100, operation lang:de=61",
		},
		{"and after one with more", tiers.Subject{Tenant: "listed", Claims: gold}, headers{"Accept-Language": "en", "Region": "eu"}, "tenant=100, operation lang:en,plan:gold,region:eu=53"},
		{"a tenant without limits", tiers.Subject{Tenant: "open"}, headers{"Accept-Language": "en"}, ""},
		{"one that is blocked", tiers.Subject{Tenant: "blocked"}, headers{"Accept-Language": "en"}, ""},
		{"one that is exempt", tiers.Subject{Tenant: "acme", Exempt: true}, headers{"Accept-Language": "en"}, ""},
		{"a value that is too long", tiers.Subject{Tenant: "x"}, headers{"Accept-Language": strings.Repeat("e", 1000)}, "tenant=10"},
	} {
		require.Equal(t, test.want, under(s, test.subject, test.carried, nil), test.name)
	}
	require.Nil(t, s.SharedRules(tiers.Subject{Tenant: "x"}), "rules depend on the request")
}

func TestARecordHasCustomLimitsOfItsTenant(t *testing.T) {
	t.Parallel()
	s := compiled(t, keyed)
	r := parseRecord(t, `{"tier": "pro", "custom": {"lang:de": {"limits": {"minute": {"capacity": 71, "per": "minute"}}},
		"region:eu": {"limits": {"minute": {"capacity": 72, "per": "minute"}}}}}`)
	require.NoError(t, r.Check(s))
	subject := tiers.Subject{Tenant: "recorded"}
	require.Equal(t, "tenant=100, operation lang:de=71", under(s, subject, headers{"Accept-Language": "de"}, r))
	require.Equal(t, "tenant=100, operation region:eu=58", under(s, subject, headers{"Region": "eu"}, r), "what the policy says of the same key goes first")
	require.Equal(t, "tenant=100", under(s, subject, headers{"Accept-Language": "fr"}, r))
	for document, want := range map[string]string{
		`{"custom": {"shop:1": {"limits": {"minute": {"capacity": 7, "per": "minute"}}}}}`:      `the policy has no parameter "shop"`,
		`{"custom": {"tenant:acme": {"limits": {"minute": {"capacity": 7, "per": "minute"}}}}}`: "the key names a tenant; it stands under one",
		`{"custom": {"lang": {"limits": {"minute": {"capacity": 7, "per": "minute"}}}}}`:        "is no part of a key",
		`{"custom": {"lang:en": {}}}`:                           "an empty rule; limits fit",
		`{"custom": {"lang:en": {"limits": {"minute": null}}}}`: "there is no limit before that of a key",
		`{"unlimited": true, "custom": {"lang:en": {"limits": {"minute": {"capacity": 7, "per": "minute"}}}}}`: "has no effect on an unlimited tenant",
	} {
		require.ErrorContains(t, parseRecord(t, document).Check(s), want, document)
	}
}

func TestAKeyThatIsTriedOpensNothing(t *testing.T) {
	t.Parallel()
	const policy = `{version: 1, default: free, custom: {"tenant:x": {instead: true, %slimits: {minute: {capacity: 7, per: minute%s}}}},
		tiers: {free: {limits: {minute: {capacity: 10, per: minute%s}}}}}`
	for name, test := range map[string]struct{ rule, limit, tenant, want string }{
		"enforced":           {"", "", "", "operation tenant:x=7"},
		"in shadow":          {"mode: shadow, ", "", "", "tenant=10, operation tenant:x=7"},
		"a limit that warns": {"", ", mode: warn", "", "tenant=10, operation tenant:x=7"},
		"both in shadow":     {"mode: shadow, ", "", ", mode: shadow", "operation tenant:x=7"},
	} {
		require.Equal(t, test.want, under(compiled(t, fmt.Sprintf(policy, test.rule, test.limit, test.tenant)), tiers.Subject{Tenant: "x"}, nil, nil), name)
	}
}

func TestACustomLimitAndARuleOfAnOperationEachTakeTheirPart(t *testing.T) {
	t.Parallel()
	s := compiled(t, `
version: 1
default: free
custom:
  tenant:acme: {instead: true, limits: {minute: {capacity: 500, per: minute}, requests: {capacity: 50, per: minute, unit: requests}}}
tiers:
  free:
    limits: {minute: {capacity: 10, per: minute}, keys: {capacity: 5, per: day, unit: records}}
    operations: {Query.search: {instead: true, limits: {minute: {capacity: 900, per: minute}}}}
`)
	acme := tiers.Subject{Tenant: "acme"}
	for name, test := range map[string]struct {
		calls calls
		want  map[string]string
	}{
		"other calls": {called("me"), map[string]string{"tenant": "points 0, records 1", "operation tenant:acme": "points 6, requests 1"}},
		"the rule":    {called("search"), map[string]string{"tenant": "points 0, records 1", "operation Query.search": "points 101"}},
		"both": {called("me", "search"), map[string]string{
			"tenant": "points 0, records 1", "operation tenant:acme": "points 106, requests 1", "operation Query.search": "points 106",
		}},
	} {
		rules := s.Rules(acme, test.calls.selection())
		require.Equal(t, test.want, pays(&rules, priceOf(test.calls)), name)
		require.True(t, rules.Spares(bucket.Owner{}, bucket.Points))
		require.False(t, rules.Spares(bucket.Owner{}, bucket.Records))
		for _, b := range rules.Paying() {
			require.NotEqual(t, bucket.Tenant, b.Owner.Level, "a resolver charges what stands in its place")
		}
	}
}

// TestUnknownValuesMakeNoBudgetAndNoMemory asks with values that no key has.
//
//nolint:paralleltest // it counts allocations
func TestUnknownValuesMakeNoBudgetAndNoMemory(t *testing.T) {
	s := compiled(t, keyed)
	subject := tiers.Subject{Tenant: "x"}
	want := s.Rules(subject, tiers.Selection{}).Buckets
	for i := range 1000 {
		rules := s.Rules(subject, tiers.Selection{Parameters: headers{"Accept-Language": fmt.Sprint("x", i), "Region": fmt.Sprint(i)}})
		require.Equal(t, want, rules.Buckets)
		require.Empty(t, rules.Across)
	}
	carried := headers{"Accept-Language": "fr"}
	selection := tiers.Selection{Parameters: carried}
	allocations := testing.AllocsPerRun(100, func() { s.Rules(subject, selection) })
	require.LessOrEqual(t, allocations, 4.0, "what a request carries is read once, and nothing is kept")

	plain := compiled(t, `{version: 1, default: free, tiers: {free: {limits: {minute: {capacity: 10, per: minute}}}}}`)
	require.Zero(t, testing.AllocsPerRun(100, func() { plain.Rules(subject, selection) }), "a policy without keys pays nothing for them")
}

func TestTheProvenanceOfACustomLimitNamesItsKey(t *testing.T) {
	t.Parallel()
	s := compiled(t, keyed)
	for _, test := range []struct {
		tenant, lang, want, mode string
	}{
		{"acme", "en", "custom[\"lang:en,tenant:acme\"].limits.minute", "(default)"},
		{"x", "en", "custom[\"lang:en\"].limits.minute", "(default)"},
		{"listed", "de", "tenants.listed.custom[\"lang:de\"].limits.minute", "(default)"},
	} {
		subject := tiers.Subject{Tenant: test.tenant}
		rules := s.Rules(subject, tiers.Selection{Parameters: headers{"Accept-Language": test.lang}})
		from, found := rules.LimitProvenance(subject, rules.Buckets[len(rules.Buckets)-1].Owner, "minute")
		require.True(t, found, test.want)
		require.Equal(t, []string{test.want}, from.Rule)
		require.Equal(t, test.mode, from.Mode)
	}
}
