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

// fieldPrices price each call of a field, and an operation of its own at 1 more, as a base is.
type fieldPrices struct {
	calls  calls
	prices map[string]int64
}

func (p fieldPrices) Price(includes func(field string) bool) int64 {
	price := int64(1)
	for _, c := range p.calls {
		if includes(c.field) {
			price += p.prices[c.field]
		}
	}
	return price
}

// whole is the price of all calls.
func (p fieldPrices) whole() int64 { return p.Price(func(string) bool { return true }) }

func called(fields ...string) calls {
	var c calls
	for _, field := range fields {
		c = append(c, call{field: "Query." + field, sizes: map[string]float64{"rows": 30}})
	}
	return c
}

func pricesOf(c calls) fieldPrices {
	return fieldPrices{c, map[string]int64{"Query.search": 100, "Query.exportAll": 50, "Query.exportSome": 40, "Query.me": 5, "Query.matrix": 3}}
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

func TestACallThatARuleStandsForPaysToTheRuleAlone(t *testing.T) {
	t.Parallel()
	s := compiled(t, fmt.Sprintf(standing, trusted))
	ann := tiers.Subject{Tenant: "x", Team: "web", User: "ann"}
	for name, test := range map[string]struct {
		calls calls
		want  map[string]string
		split bool
	}{
		"alone": {called("search"), map[string]string{
			"operation Query.search": "points 101, requests 1", "operation Query.*": "points 101", "operation Query.search of user:ann": "requests 1",
		}, false},
		"under two aliases": {called("search", "search"), map[string]string{
			"operation Query.search": "points 201, requests 2", "operation Query.*": "points 201", "operation Query.search of user:ann": "requests 2",
		}, false},
		"beside a call that no rule stands for": {called("search", "me", "search"), map[string]string{
			"tenant": "elements 0, points 6, requests 1", "team web": "points 6", "user ann": "points 6",
			"operation Query.search": "points 201, requests 2", "operation Query.*": "points 206", "operation Query.search of user:ann": "requests 2",
		}, true},
		"beside a call of another rule": {called("search", "exportAll"), map[string]string{
			"operation Query.search": "points 101, requests 1", "operation Query.export*": "elements 30, requests 1", "operation Query.*": "points 151",
			"operation Query.search of user:ann": "requests 1",
		}, true},
		"of several fields of one pattern": {called("exportAll", "exportSome"), map[string]string{
			"operation Query.export*": "elements 60, requests 2", "operation Query.*": "points 91",
		}, false},
		"with work that is computed": {called("exportAll", "matrix"), map[string]string{
			"tenant": "elements 30, points 4, requests 1", "team web": "points 4", "user ann": "points 4",
			"operation Query.export*": "elements 30, requests 1", "operation Query.*": "points 54",
		}, true},
		"in none": {called("me"), map[string]string{
			"tenant": "elements 0, points 6, requests 1", "team web": "points 6", "user ann": "points 6", "operation Query.*": "points 6",
		}, false},
	} {
		selection, prices := test.calls.selection(), pricesOf(test.calls)
		selection.Prices = prices
		rules := s.Rules(ann, selection)
		require.Equal(t, test.want, pays(&rules, prices.whole()), name)
		require.Equal(t, test.split, rules.Split, name)
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
	selection := tiers.Selection{Fields: []string{"Query.me"}, Document: trusted, Calls: calls{}, Prices: pricesOf(nil)}
	rules := s.Rules(tiers.Subject{Tenant: "x", Tier: "document"}, selection)
	require.Equal(t, map[string]string{"operation " + trusted: "points 1"}, pays(&rules, 1))
}

func TestEachPartComesToWhatItsOwnCallsDo(t *testing.T) {
	t.Parallel()
	s := compiled(t, fmt.Sprintf(standing, trusted))
	ann := tiers.Subject{Tenant: "x", Team: "web", User: "ann"}
	own := func(r *tiers.Rules, prices tiers.Prices) map[string][2]int64 {
		found := map[string][2]int64{}
		for _, part := range r.Parts(prices) {
			for _, owner := range part.Owners {
				found[strings.TrimSpace(owner.Level.String()+" "+owner.Name)] = [2]int64{part.Asked, part.Came}
			}
		}
		return found
	}
	for name, test := range map[string]struct {
		calls calls
		came  map[string]int64
		want  map[string][2]int64
	}{
		"as estimated": {called("search", "me"), nil, map[string][2]int64{
			"tenant": {6, 6}, "team web": {6, 6}, "user ann": {6, 6}, "operation Query.search": {101, 101},
		}},
		"a short list of the rule and a long one of the tenant": {
			called("search", "me", "me"),
			map[string]int64{"Query.search": 10, "Query.me": 40},
			map[string][2]int64{"tenant": {11, 81}, "team web": {11, 81}, "user ann": {11, 81}, "operation Query.search": {101, 11}},
		},
		"calls of two rules alone": {
			called("search", "exportAll"),
			map[string]int64{"Query.search": 10, "Query.exportAll": 9},
			map[string][2]int64{"operation Query.search": {101, 11}},
		},
		"one rule alone": {called("search"), map[string]int64{"Query.search": 10}, map[string][2]int64{}},
	} {
		selection, prices := test.calls.selection(), pricesOf(test.calls)
		selection.Prices = prices
		rules := s.Rules(ann, selection)
		for field, price := range test.came {
			prices.prices[field] = price
		}
		require.Equal(t, test.want, own(&rules, prices), name)
	}
}

func TestWhoCallsNothingPaysAsAlways(t *testing.T) {
	t.Parallel()
	s := compiled(t, fmt.Sprintf(standing, trusted))
	// All calls are left out by @skip: the field is selected, and is no call.
	selection := tiers.Selection{Fields: []string{"Query.search"}, Calls: calls{}, Prices: pricesOf(nil)}
	rules := s.Rules(tiers.Subject{Tenant: "x"}, selection)
	require.Equal(t, map[string]string{
		"tenant": "elements 0, points 1, requests 1", "operation Query.search": "points 0, requests 0", "operation Query.*": "points 1",
	}, pays(&rules, 1))
	require.False(t, rules.Split)
	selection = called("me").selection()
	selection.Fields, selection.Prices = append(selection.Fields, "Query.search"), pricesOf(called("me"))
	rules = s.Rules(tiers.Subject{Tenant: "x"}, selection)
	require.Equal(t, "elements 0, points 6, requests 1", pays(&rules, 6)["tenant"])
}

func TestWhatBelongsToAnOperationIsPaidByTheTenantWhateverItCalls(t *testing.T) {
	t.Parallel()
	s := compiled(t, fmt.Sprintf(standing, trusted))
	selection := called("search").selection()
	selection.Prices = pricesOf(called("search"))
	rules := s.Rules(tiers.Subject{Tenant: "x", Tier: "recorded"}, selection)
	require.Equal(t, map[string]string{"tenant": "points 0, records 1", "operation Query.search": "points 101"}, pays(&rules, 101))
}

func TestARuleForADocumentStandsForAllThatItCalls(t *testing.T) {
	t.Parallel()
	s := compiled(t, fmt.Sprintf(standing, trusted))
	selection := called("search", "me").selection()
	selection.Document, selection.Prices = trusted, pricesOf(called("search", "me"))
	rules := s.Rules(tiers.Subject{Tenant: "x", Tier: "document"}, selection)
	require.Equal(t, map[string]string{"operation " + trusted: "points 106"}, pays(&rules, 106))
	require.False(t, rules.Split)
	selection.Document = ""
	rules = s.Rules(tiers.Subject{Tenant: "x", Tier: "document"}, selection)
	require.Equal(t, map[string]string{"tenant": "points 106"}, pays(&rules, 106))
}

func TestWithoutPricesEachPartPaysTheWhole(t *testing.T) {
	t.Parallel()
	s := compiled(t, fmt.Sprintf(standing, trusted))
	rules := s.Rules(tiers.Subject{Tenant: "x"}, tiers.Selection{Fields: []string{"Query.me", "Query.search", "Query.search"}})
	require.Equal(t, map[string]string{
		"tenant": "elements 0, points 206, requests 1", "operation Query.search": "points 206, requests 2", "operation Query.*": "points 206",
	}, pays(&rules, 206))
	rules = s.Rules(tiers.Subject{Tenant: "x"}, tiers.Selection{Fields: []string{"Query.search"}})
	require.Equal(t, map[string]string{"operation Query.search": "points 101, requests 1", "operation Query.*": "points 101"}, pays(&rules, 101))
}

// TestNoCombinationOfCallsTakesCostFromTheTenant draws operations, and compares them with their parts sent by themselves.
func TestNoCombinationOfCallsTakesCostFromTheTenant(t *testing.T) {
	t.Parallel()
	s := compiled(t, fmt.Sprintf(standing, trusted))
	subject := tiers.Subject{Tenant: "x"}
	owed := func(c calls, owner string) int64 {
		if len(c) == 0 {
			return 0
		}
		selection, prices := c.selection(), pricesOf(c)
		selection.Prices = prices
		rules := s.Rules(subject, selection)
		for _, b := range rules.Buckets {
			if b.Owner.Name == owner {
				for _, own := range b.Amounts {
					if own.Unit == bucket.Points {
						return own.N
					}
				}
				return prices.whole()
			}
		}
		return 0
	}
	rapid.Check(t, func(t *rapid.T) {
		fields := rapid.SliceOfN(rapid.SampledFrom([]string{"search", "exportAll", "exportSome", "me", "matrix"}), 1, 8).Draw(t, "fields")
		var own, searches []string
		for _, field := range fields {
			switch field {
			case "search":
				searches = append(searches, field)
			case "me", "matrix":
				own = append(own, field)
			}
		}
		require.Equal(t, owed(called(own...), ""), owed(called(fields...), ""), "the tenant pays what its calls cost by themselves")
		require.Equal(t, owed(called(searches...), "Query.search"), owed(called(fields...), "Query.search"))
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

func TestACallPaysForWhatItsResolverChargesWhereItsPricePaid(t *testing.T) {
	t.Parallel()
	s := compiled(t, fmt.Sprintf(standing, trusted))
	owners := func(rules *tiers.Rules, field string) []string {
		var names []string
		for _, b := range rules.Paying(field) {
			names = append(names, strings.TrimSpace(b.Owner.Level.String()+" "+b.Owner.Name))
		}
		return names
	}
	c := called("search", "me", "exportAll")
	selection := c.selection()
	selection.Prices = pricesOf(c)
	rules := s.Rules(tiers.Subject{Tenant: "x"}, selection)
	require.Equal(t, []string{"operation Query.*", "operation Query.search"}, owners(&rules, "Query.search"))
	require.Equal(t, []string{"operation Query.*", "operation Query.export*"}, owners(&rules, "Query.exportAll"))
	require.Equal(t, []string{"tenant", "operation Query.*"}, owners(&rules, "Query.me"))
	require.Len(t, rules.Buckets, 4, "nothing was taken out of them")

	rules = s.Rules(tiers.Subject{Tenant: "x"}, called("me").selection())
	require.Equal(t, []string{"tenant", "operation Query.*"}, owners(&rules, "Query.me"))
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
