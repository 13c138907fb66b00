package tiers_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

const standing = `
version: 1
default: free
tiers:
  free:
    maxCost: 5000
    limits:
      minute: {capacity: 1000, per: minute}
      requests: {capacity: 60, per: minute, unit: requests}
      elements: {capacity: 500, per: minute, unit: elements}
    teams: {limits: {minute: {capacity: 800, per: minute}}}
    users: {limits: {minute: {capacity: 400, per: minute}}, operations: {Query.search: {limits: {minute: {capacity: 7, per: minute, unit: requests}}}}}
    operations:
      Query.search:
        instead: true
        limits: {minute: {capacity: 9000, per: minute}, requests: {capacity: 900, per: minute, unit: requests}}
      Query.export*:
        instead: true
        units: {elements: [rows]}
        limits: {day: {capacity: 5, per: day, unit: requests}, rows: {capacity: 10000, per: day, unit: elements}}
      Query.*: {limits: {hour: {capacity: 70000, per: hour}}}
      Query.matrix: {units: {elements: [rows]}}
  recorded:
    limits: {minute: {capacity: 1000, per: minute}, keys: {capacity: 10, per: day, unit: records}}
    operations: {Query.search: {instead: true, limits: {minute: {capacity: 9000, per: minute}}}}
  document:
    limits: {minute: {capacity: 1000, per: minute}}
    operations:
      %s: {instead: true, limits: {minute: {capacity: 9000, per: minute}}}
`

var trusted = "sha256:" + strings.Repeat("0", 64)

func called(fields ...string) calls {
	var c calls
	for _, field := range fields {
		c = append(c, call{field: "Query." + field, sizes: map[string]float64{"rows": 30}})
	}
	return c
}

// priceOf prices each call of a field, and an operation at 1 more, as a base is.
func priceOf(c calls) int64 {
	prices := map[string]int64{"Query.search": 100, "Query.exportAll": 50, "Query.exportSome": 40, "Query.me": 5, "Query.matrix": 3}
	price := int64(1)
	for _, call := range c {
		price += prices[call.field]
	}
	return price
}

// pays says what each owner is asked for in its limits, by unit, of a take that asks for the price and one request.
func pays(r *tiers.Rules, whole int64) map[string]string {
	found := make(map[string]string)
	for _, b := range r.Buckets {
		var units []string
		seen := map[bucket.Unit]bool{}
		for _, l := range b.Limits.All() {
			if seen[l.Unit] {
				continue
			}
			seen[l.Unit] = true
			n := append(bucket.Amounts{{Unit: bucket.Points, N: whole}, {Unit: bucket.Requests, N: 1}, {Unit: bucket.Records, N: 1}}, r.Amounts...).Of(l.Unit)
			for _, own := range b.Amounts {
				if own.Unit == l.Unit {
					n = own.N
				}
			}
			units = append(units, fmt.Sprint(l.Unit, " ", n))
		}
		owner := b.Owner.Level.String() + " " + b.Owner.Name
		if b.Owner.Part != "" {
			owner += " of " + b.Owner.Part
		}
		slices.Sort(units)
		found[strings.TrimSpace(owner)] = strings.Join(units, ", ")
	}
	return found
}

func TestInsteadTakesAnOperationOfMatchingCallsAlone(t *testing.T) {
	t.Parallel()
	s := compiled(t, fmt.Sprintf(standing, trusted))
	ann := tiers.Subject{Tenant: "x", Team: "web", User: "ann"}
	for name, test := range map[string]struct {
		calls calls
		want  map[string]string
	}{
		"alone": {called("search"), map[string]string{
			"operation Query.search": "points 101, requests 1", "operation Query.*": "points 101", "operation Query.search of user:ann": "requests 1",
		}},
		"under two aliases": {called("search", "search"), map[string]string{
			"operation Query.search": "points 201, requests 2", "operation Query.*": "points 201", "operation Query.search of user:ann": "requests 2",
		}},
		"beside a call that no rule stands for": {called("search", "me", "search"), map[string]string{
			"tenant": "elements 0, points 206, requests 1", "team web": "points 206", "user ann": "points 206",
			"operation Query.search": "points 206, requests 2", "operation Query.*": "points 206", "operation Query.search of user:ann": "requests 2",
		}},
		"beside a call of another rule": {called("search", "exportAll"), map[string]string{
			"tenant": "elements 30, points 151, requests 1", "team web": "points 151", "user ann": "points 151",
			"operation Query.search": "points 151, requests 1", "operation Query.export*": "elements 30, requests 1", "operation Query.*": "points 151",
			"operation Query.search of user:ann": "requests 1",
		}},
		"of several fields of one pattern": {called("exportAll", "exportSome"), map[string]string{
			"operation Query.export*": "elements 60, requests 2", "operation Query.*": "points 91",
		}},
		"with work that is computed": {called("exportAll", "matrix"), map[string]string{
			"tenant": "elements 60, points 54, requests 1", "team web": "points 54", "user ann": "points 54",
			"operation Query.export*": "elements 30, requests 1", "operation Query.*": "points 54",
		}},
		"in none": {called("me"), map[string]string{
			"tenant": "elements 0, points 6, requests 1", "team web": "points 6", "user ann": "points 6", "operation Query.*": "points 6",
		}},
	} {
		rules := s.Rules(ann, test.calls.selection())
		require.Equal(t, test.want, pays(&rules, priceOf(test.calls)), name)
		require.True(t, rules.PaysByCall())
	}
	plain := s.Rules(tiers.Subject{Tenant: "x", Tier: "recorded"}, called("search").selection())
	require.True(t, plain.PaysByCall())
	require.False(t, compiledRules(t, "").PaysByCall())
}

// compiledRules are those of a policy without any that stands.
func compiledRules(t *testing.T, operations string) *tiers.Rules {
	t.Helper()
	rules := compiled(t, "version: 1\ndefault: free\ntiers:\n  free:\n    limits: {minute: {capacity: 10, per: minute}}\n"+operations).Rules(tiers.Subject{Tenant: "x"}, called("search").selection())
	return &rules
}

func TestADocumentThatCallsNothingIsPaidByItsRuleAlone(t *testing.T) {
	t.Parallel()
	s := compiled(t, fmt.Sprintf(standing, trusted))
	selection := tiers.Selection{Fields: []string{"Query.me"}, Document: trusted, Calls: calls{}}
	rules := s.Rules(tiers.Subject{Tenant: "x", Tier: "document"}, selection)
	require.Equal(t, map[string]string{"operation " + trusted: "points 1"}, pays(&rules, 1))
}

func TestWhoCallsNothingPaysAsAlways(t *testing.T) {
	t.Parallel()
	s := compiled(t, fmt.Sprintf(standing, trusted))
	// All calls are left out by @skip: the field is selected, and is no call.
	selection := tiers.Selection{Fields: []string{"Query.search"}, Calls: calls{}}
	rules := s.Rules(tiers.Subject{Tenant: "x"}, selection)
	require.Equal(t, map[string]string{
		"tenant": "elements 0, points 1, requests 1", "operation Query.search": "points 1, requests 0", "operation Query.*": "points 1",
	}, pays(&rules, 1))
	selection = called("me").selection()
	selection.Fields = append(selection.Fields, "Query.search")
	rules = s.Rules(tiers.Subject{Tenant: "x"}, selection)
	require.Equal(t, "elements 0, points 6, requests 1", pays(&rules, 6)["tenant"])
}

func TestWhatBelongsToAnOperationIsPaidByTheTenantWhateverItCalls(t *testing.T) {
	t.Parallel()
	s := compiled(t, fmt.Sprintf(standing, trusted))
	rules := s.Rules(tiers.Subject{Tenant: "x", Tier: "recorded"}, called("search").selection())
	require.Equal(t, map[string]string{"tenant": "points 0, records 1", "operation Query.search": "points 101"}, pays(&rules, 101))
}

func TestARuleForADocumentStandsForAllThatItCalls(t *testing.T) {
	t.Parallel()
	s := compiled(t, fmt.Sprintf(standing, trusted))
	selection := called("search", "me").selection()
	selection.Document = trusted
	rules := s.Rules(tiers.Subject{Tenant: "x", Tier: "document"}, selection)
	require.Equal(t, map[string]string{"operation " + trusted: "points 106"}, pays(&rules, 106))
	selection.Document = ""
	rules = s.Rules(tiers.Subject{Tenant: "x", Tier: "document"}, selection)
	require.Equal(t, map[string]string{"tenant": "points 106"}, pays(&rules, 106))
}

func TestFieldsAreCallsWhereNobodyKnowsTheCalls(t *testing.T) {
	t.Parallel()
	s := compiled(t, fmt.Sprintf(standing, trusted))
	rules := s.Rules(tiers.Subject{Tenant: "x"}, tiers.Selection{Fields: []string{"Query.me", "Query.search", "Query.search"}})
	require.Equal(t, map[string]string{
		"tenant": "elements 0, points 206, requests 1", "operation Query.search": "points 206, requests 2", "operation Query.*": "points 206",
	}, pays(&rules, 206))
	rules = s.Rules(tiers.Subject{Tenant: "x"}, tiers.Selection{Fields: []string{"Query.search"}})
	require.Equal(t, map[string]string{"operation Query.search": "points 101, requests 1", "operation Query.*": "points 101"}, pays(&rules, 101))
}

// TestMixedCallsNeverPayLess draws operations, and compares what each budget pays with what it pays for its own calls alone.
func TestMixedCallsNeverPayLess(t *testing.T) {
	t.Parallel()
	s := compiled(t, fmt.Sprintf(standing, trusted))
	owed := func(c calls) map[string]map[bucket.Unit]int64 {
		sums := make(map[string]map[bucket.Unit]int64)
		rules := s.Rules(tiers.Subject{Tenant: "x"}, c.selection())
		for _, b := range rules.Buckets {
			sums[b.Owner.Name] = make(map[bucket.Unit]int64)
			for _, l := range b.Limits.All() {
				n := append(bucket.Amounts{{Unit: bucket.Points, N: priceOf(c)}, {Unit: bucket.Requests, N: 1}}, rules.Amounts...).Of(l.Unit)
				if at := slices.IndexFunc(b.Amounts, func(a bucket.Amount) bool { return a.Unit == l.Unit }); at >= 0 {
					n = b.Amounts[at].N
				}
				sums[b.Owner.Name][l.Unit] = n
			}
		}
		return sums
	}
	rapid.Check(t, func(t *rapid.T) {
		fields := rapid.SliceOfN(rapid.SampledFrom([]string{"search", "exportAll", "exportSome", "me", "matrix"}), 1, 8).Draw(t, "fields")
		together := owed(called(fields...))
		// Each kind of calls sent by itself: the searches, the exports, and what no rule stands for.
		kinds := make(map[string][]string)
		for _, field := range fields {
			budget := ""
			switch field {
			case "search":
				budget = "Query.search"
			case "exportAll", "exportSome":
				budget = "Query.export*"
			}
			kinds[budget] = append(kinds[budget], field)
		}
		for budget, own := range kinds {
			for unit, n := range owed(called(own...))[budget] {
				require.GreaterOrEqual(t, together[budget][unit], n, "%s in %s", budget, unit)
			}
		}
	})
}

func TestARuleThatIsTriedOpensNothing(t *testing.T) {
	t.Parallel()
	const general = "    limits: {minute: {capacity: 10, per: minute%s}}\n    operations: {Query.search: {instead: true, %slimits: {minute: {capacity: 99, per: minute%s}}}}\n"
	for name, test := range map[string]struct {
		tenant, rule, limit string
		stands              bool
	}{
		"enforced":                         {"", "", "", true},
		"the rule in shadow":               {"", "mode: shadow, ", "", false},
		"the rule off":                     {"", "mode: 'off', ", "", false},
		"the limit in warn":                {"", "", ", mode: warn", false},
		"both in shadow":                   {", mode: shadow", "mode: shadow, ", "", true},
		"the tenant in shadow, not a rule": {", mode: shadow", "", "", true},
		"the tenant warns, a rule shadows": {", mode: warn", "mode: shadow, ", "", false},
		"a tenant that only reports":       {", soft: true", "mode: shadow, ", "", true},
	} {
		s := compiled(t, "version: 1\ndefault: free\ntiers:\n  free:\n"+fmt.Sprintf(general, test.tenant, test.rule, test.limit))
		got := s.Rules(tiers.Subject{Tenant: "x"}, called("search").selection())
		_, tenant := pays(&got, 101)["tenant"]
		require.Equal(t, test.stands, !tenant, name)
		require.Equal(t, test.stands, got.PaysByCall(), name)
		eased := s.AtMost(bucket.Shadow).Rules(tiers.Subject{Tenant: "x"}, called("search").selection())
		require.Equal(t, test.stands, eased.PaysByCall(), "what a switch eases is charged as before")
	}
	s := compiled(t, "version: 1\ndefault: free\ntiers:\n  free:\n"+fmt.Sprintf(general, "", "mode: warn, enforceFrom: 2026-12-01, ", ""))
	for day, stands := range map[int]bool{1: true, 0: false} {
		rules := s.At(time.Date(2026, 12, day, 12, 0, 0, 0, time.UTC)).Rules(tiers.Subject{Tenant: "x"}, called("search").selection())
		require.Equal(t, stands, rules.PaysByCall(), "from its day on")
	}
}

func TestWhatAResolverChargesIsPaidByWhoPaidThePrice(t *testing.T) {
	t.Parallel()
	s := compiled(t, fmt.Sprintf(standing, trusted))
	owners := func(tier string, fields ...string) []string {
		rules := s.Rules(tiers.Subject{Tenant: "x", Tier: tier}, called(fields...).selection())
		var names []string
		for _, b := range rules.Paying() {
			names = append(names, strings.TrimSpace(b.Owner.Level.String()+" "+b.Owner.Name))
		}
		return names
	}
	require.Equal(t, []string{"tenant", "operation Query.*", "operation Query.export*", "operation Query.search"}, owners("free", "search", "me", "exportAll"))
	require.Equal(t, []string{"operation Query.*", "operation Query.search"}, owners("free", "search"))
	require.Equal(t, []string{"operation Query.search"}, owners("recorded", "search"), "the tenant stays for its records alone")
	require.Equal(t, []string{"tenant", "operation Query.*"}, owners("free", "me"))
}

func TestAnExceptionMakesARuleStand(t *testing.T) {
	t.Parallel()
	s := compiled(t, `
version: 1
default: free
tiers:
  free:
    limits: {minute: {capacity: 10, per: minute}}
    operations: {Query.search: {limits: {minute: {capacity: 99, per: minute}}}}
tenants:
  acme: {operations: {Query.search: {instead: true}}}
  strict: {limits: {minute: {capacity: 9, per: minute, mode: enforce}}, mode: shadow, operations: {Query.search: {instead: true}}}
`)
	_, tenant := pays(ptr(s.Rules(tiers.Subject{Tenant: "acme"}, called("search").selection())), 101)["tenant"]
	require.False(t, tenant)
	_, tenant = pays(ptr(s.Rules(tiers.Subject{Tenant: "other"}, called("search").selection())), 101)["tenant"]
	require.True(t, tenant)
	_, tenant = pays(ptr(s.Rules(tiers.Subject{Tenant: "strict"}, called("search").selection())), 101)["tenant"]
	require.True(t, tenant, "the limit of the tenant is enforced, and the rule in shadow")
}

func ptr[T any](value T) *T { return &value }
