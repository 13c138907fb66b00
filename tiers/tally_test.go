package tiers_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// calls are calls with the values at paths into their arguments.
type calls []call

type call struct {
	field  string
	values map[string][]any
	sizes  map[string]float64
	// unread says that there are more values than may be read.
	unread bool
}

func (c calls) Len() int           { return len(c) }
func (c calls) Field(i int) string { return c[i].field }

func (c calls) Values(i int, path string, yield func(value any) bool) bool {
	values, given := c[i].values[path]
	if !given {
		values = []any{nil}
	}
	for _, value := range values {
		if !yield(value) {
			break
		}
	}
	return !c[i].unread
}

func (c calls) Size(i int, path string) float64 {
	if size, given := c[i].sizes[path]; given {
		return size
	}
	return 1
}

// selection returns what selects the calls.
func (c calls) selection() tiers.Selection {
	s := tiers.Selection{Calls: c}
	seen := make(map[string]bool)
	for _, call := range c {
		if !seen[call.field] {
			s.Fields = append(s.Fields, call.field)
		}
		seen[call.field] = true
	}
	return s
}

func logins(emails ...any) calls {
	var c calls
	for _, email := range emails {
		c = append(c, call{field: "Mutation.login", values: map[string][]any{"input.email": {email}}})
	}
	return c
}

// asked returns what the buckets are asked for by their owners, parts of values by the order in which they stand.
func asked(buckets []bucket.Bucket) map[string]string {
	found := make(map[string]string)
	for i, b := range buckets {
		owner := b.Owner.Level.String() + " " + b.Owner.Name
		kind, rest, _ := strings.Cut(b.Owner.Part, ":")
		if kind == "user" {
			kind = "user " + rest
		}
		if kind == "by" || kind == "across" {
			kind = fmt.Sprintf("%s %d", kind, i)
		}
		found[strings.TrimSpace(owner+" "+kind)] = fmt.Sprint(b.Amounts)
	}
	return found
}

const bruteForce = `
version: 1
default: free
tiers:
  free:
    limits:
      minute: {unit: requests, capacity: 60, per: minute}
      elements: {unit: elements, capacity: 1000, per: minute}
    users:
      operations:
        Mutation.login: {limits: {minute: {unit: requests, capacity: 5, per: minute}}}
        Mutation.*: {limits: {points: {capacity: 1000, per: minute}}}
    operations:
      Mutation.login: {limits: {minute: {unit: requests, capacity: 5, per: minute}}}
      Mutation.sign*:
        limits:
          hour: {unit: requests, capacity: 50, per: hour}
          account: {unit: requests, capacity: 10, per: hour, by: input.email}
          everywhere: {unit: requests, capacity: 20, per: hour, by: input.email, across: true}
      Query.matrix:
        units: {elements: [origins, destinations], unused: [origins]}
        limits: {elements: {unit: elements, capacity: 500, per: minute}}
      Query.*:
        units: {elements: [stops]}
`

func TestALimitInRequestsOfAnOperationRuleCountsEachCall(t *testing.T) {
	t.Parallel()
	s := compiled(t, bruteForce)
	subject := tiers.Subject{Tenant: "x"}
	many := make([]any, 300)
	rules := s.Rules(subject, logins(many...).selection())
	require.Equal(t, map[string]string{"tenant": "[]", "operation Mutation.login": "[{requests 300}]"}, asked(rules.Buckets))
	require.Empty(t, rules.Amounts)

	rules = s.Rules(subject, logins(1).selection())
	require.Equal(t, map[string]string{"tenant": "[]", "operation Mutation.login": "[]"}, asked(rules.Buckets), "the one request of every operation")

	rules = s.Rules(subject, tiers.Selection{Fields: []string{"Mutation.login"}, Calls: calls{}})
	require.Equal(t, map[string]string{"tenant": "[]", "operation Mutation.login": "[{requests 0}]"}, asked(rules.Buckets), "skipped by a variable")

	rules = s.Rules(subject, tiers.Selection{Fields: []string{"Mutation.login", "Mutation.login"}})
	require.Equal(t, "[{requests 2}]", asked(rules.Buckets)["operation Mutation.login"], "recorded without arguments")
}

func TestEachUserHasABudgetOfAnOperationRuleForUsers(t *testing.T) {
	t.Parallel()
	s := compiled(t, bruteForce)
	rules := s.Rules(tiers.Subject{Tenant: "x", User: "ada"}, logins("a", "a").selection())
	require.Equal(t, map[string]string{
		"tenant": "[]", "operation Mutation.login": "[{requests 2}]",
		"operation Mutation.login user ada": "[{requests 2}]", "operation Mutation.* user ada": "[]",
	}, asked(rules.Buckets))
	other := s.Rules(tiers.Subject{Tenant: "x", User: "bob"}, logins("a").selection())
	require.NotEqual(t, rules.Buckets[len(rules.Buckets)-1].Owner, other.Buckets[len(other.Buckets)-1].Owner)
	require.Equal(t, tiers.UserPart("bob"), other.Buckets[len(other.Buckets)-1].Owner.Part)
}

func TestEachValueOfAnArgumentHasABudgetOfItsOwn(t *testing.T) {
	t.Parallel()
	s := compiled(t, bruteForce)
	up := func(emails ...any) calls {
		c := logins(emails...)
		for i := range c {
			c[i].field = "Mutation.signIn"
		}
		return c
	}
	rules := s.Rules(tiers.Subject{Tenant: "x"}, up("ada@x.org", "bob@x.org", "ada@x.org").selection())
	require.Equal(t, map[string]string{
		"tenant": "[]", "operation Mutation.sign*": "[{requests 3}]",
		"operation Mutation.sign* by 2": "[{requests 2}]", "operation Mutation.sign* by 3": "[{requests 1}]",
	}, asked(rules.Buckets))
	require.Equal(t, map[string]string{
		"operation Mutation.sign* across 0": "[{requests 2}]", "operation Mutation.sign* across 1": "[{requests 1}]",
	}, asked(rules.Across))
	for _, b := range append(rules.Buckets, rules.Across...) {
		require.NotContains(t, b.Owner.Part, "ada", "what a client sends is not stored")
	}

	owner := func(email any) bucket.Owner {
		return s.Rules(tiers.Subject{Tenant: "x"}, up(email).selection()).Across[0].Owner
	}
	for _, same := range []any{"ADA@x.org", "  ada@X.ORG\t", "ada@x.org\n"} {
		require.Equal(t, owner("ada@x.org"), owner(same), "%q", same)
	}
	for _, missing := range []calls{up(nil), {{field: "Mutation.signIn"}}, {{field: "Mutation.signIn", values: map[string][]any{"input.email": {}}}}} {
		require.Equal(t, owner(nil), s.Rules(tiers.Subject{Tenant: "x"}, missing.selection()).Across[0].Owner, "what is missing is one value")
	}
}

func TestMoreValuesThanFitAreRefusedInTheModeOfTheLimit(t *testing.T) {
	t.Parallel()
	emails := func(n int) tiers.Selection {
		values := make([]any, n)
		for i := range values {
			values[i] = fmt.Sprint("a", i)
		}
		return calls{{field: "Mutation.signIn", values: map[string][]any{"input.email": values}}}.selection()
	}
	for mode, want := range map[string]bucket.Mode{"enforce": bucket.Enforce, "warn": bucket.Warn, "shadow": bucket.Shadow} {
		s := compiled(t, strings.Replace(bruteForce, "  free:\n", "  free:\n    mode: "+mode+"\n", 1))
		rules := s.Rules(tiers.Subject{Tenant: "x"}, emails(16))
		require.Nil(t, rules.TooMany)
		require.Len(t, rules.Across, 16)
		rules = s.Rules(tiers.Subject{Tenant: "x"}, emails(17))
		require.Equal(t, &tiers.TooManyValues{
			Operation: "Mutation.sign*", Limit: "account", By: "input.email", Most: "16 different values", Mode: want,
		}, rules.TooMany)
		require.Empty(t, rules.Across)
	}
	s := compiled(t, strings.Replace(bruteForce, "  free:\n", "  free:\n    mode: \"off\"\n", 1))
	require.Nil(t, s.Rules(tiers.Subject{Tenant: "x"}, emails(17)).TooMany)

	s = compiled(t, bruteForce)
	endless := calls{{field: "Mutation.signIn", values: map[string][]any{"input.email": {"a"}}, unread: true}}
	require.Equal(t, "the server reads", s.Rules(tiers.Subject{Tenant: "x"}, endless.selection()).TooMany.Most)
	same := make([]any, 1<<15)
	rules := s.Rules(tiers.Subject{Tenant: "x"}, calls{{field: "Mutation.signIn", values: map[string][]any{"input.email": same}}}.selection())
	require.Equal(t, "16384 values", rules.TooMany.Most)
}

func TestUnitsComputedFromArgumentsAreAskedOfEveryLimitThatCountsThem(t *testing.T) {
	t.Parallel()
	s := compiled(t, bruteForce)
	matrix := func(origins, destinations float64) call {
		return call{field: "Query.matrix", sizes: map[string]float64{"origins": origins, "destinations": destinations}}
	}
	subject := tiers.Subject{Tenant: "x"}
	rules := s.Rules(subject, calls{matrix(10, 20), matrix(3, 4), {field: "Query.route", sizes: map[string]float64{"stops": 7}}}.selection())
	require.Equal(t, bucket.Amounts{{Unit: "elements", N: 219}}, rules.Amounts)
	require.Equal(t, map[string]string{"tenant": "[]", "operation Query.matrix": "[{elements 212}]"}, asked(rules.Buckets))
	require.Empty(t, s.Units(), "nothing waits for the code of the server")

	rules = s.Rules(subject, calls{{field: "Query.matrix"}}.selection())
	require.Equal(t, bucket.Amounts{{Unit: "elements", N: 1}}, rules.Amounts, "what is absent is one")
	for _, size := range []float64{math.Inf(1), math.MaxFloat64, 1 << 62} {
		rules = s.Rules(subject, calls{matrix(size, size), matrix(size, size)}.selection())
		require.Equal(t, bucket.Amounts{{Unit: "elements", N: 1<<53 - 1}}, rules.Amounts, "sums saturate")
	}
	rules = s.Rules(subject, calls{matrix(math.Inf(1), 0)}.selection())
	require.Equal(t, bucket.Amounts{{Unit: "elements", N: 1<<53 - 1}}, rules.Amounts, "what could not be read is not free")
}

func TestWhatOperationsAreAskedForAddsUpWhateverTheyCall(t *testing.T) {
	t.Parallel()
	s := compiled(t, bruteForce)
	rapid.Check(t, func(t *rapid.T) {
		fields := []string{"Mutation.login", "Mutation.signIn", "Mutation.signUp", "Query.matrix", "Query.me"}
		var c calls
		signs, matrices := int64(0), int64(0)
		for range rapid.IntRange(0, 40).Draw(t, "calls") {
			field := rapid.SampledFrom(fields).Draw(t, "field")
			email := rapid.SampledFrom([]any{"a", "A ", "b", nil, 5, "5"}).Draw(t, "email")
			size := float64(rapid.IntRange(0, 9).Draw(t, "size"))
			c = append(c, call{
				field: field, values: map[string][]any{"input.email": {email}},
				sizes: map[string]float64{"origins": size, "destinations": 2, "stops": 1},
			})
			switch {
			case strings.HasPrefix(field, "Mutation.sign"):
				signs++
			case field == "Query.matrix":
				matrices += int64(max(1, 2*size))
			case field == "Query.me":
				matrices++
			}
		}
		rules := s.Rules(tiers.Subject{Tenant: "x"}, c.selection())
		if rules.Amounts.Of("elements") != matrices {
			t.Fatalf("%d elements, want %d", rules.Amounts.Of("elements"), matrices)
		}
		for name, buckets := range map[string][]bucket.Bucket{"by:": rules.Buckets, "across:": rules.Across} {
			sum, owners := int64(0), make(map[bucket.Owner]bool)
			for _, b := range buckets {
				if owners[b.Owner] {
					t.Fatal("two buckets of one owner")
				}
				owners[b.Owner] = true
				if strings.HasPrefix(b.Owner.Part, name) {
					sum += b.Amounts.Of(bucket.Requests)
				}
			}
			if sum != signs {
				t.Fatalf("%s: %d calls, want %d", name, sum, signs)
			}
		}
		take := bucket.Take{Tenant: "x", Buckets: rules.Buckets, Amounts: rules.Amounts}
		if err := take.Check(); err != nil {
			t.Fatal(err)
		}
	})
}
