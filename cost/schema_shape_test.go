package cost_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator"
	"pgregory.net/rapid"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

// introspectionQuery is what tools send to read a whole schema.
func introspectionQuery(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "cases", "the_introspection_query_of_tools_costs_40_points.txtar"))
	require.NoError(t, err)
	_, sections := splitCase(string(text))
	return sections["query"]
}

// limited evaluates a valid operation of a schema of testdata under limits.
func limited(t *testing.T, schemaName string, limits cost.Shape, query string, variables map[string]any) (cost.Cost, *cost.ShapeError) {
	t.Helper()
	estimator, schema := newEstimator(t, schemaName, cost.Config{Shape: limits})
	doc := parse(t, schema, query, false)
	variables, err := validator.VariableValues(schema, doc.Operations[0], variables)
	require.NoError(t, err)
	plan, err := estimator.Plan(doc, doc.Operations[0])
	require.NoError(t, err)
	price, err := plan.Evaluate(variables)
	if err == nil {
		return price, nil
	}
	var limit *cost.ShapeError
	require.ErrorAs(t, err, &limit)
	return price, limit
}

func TestALimitAllowsWhatReachesItAndRefusesWhatIsAbove(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		rule  cost.Rule
		set   func(*cost.Shape, int)
		query string
		given int
	}{
		"depth counts fields": {
			cost.RuleDepth, func(l *cost.Shape, n int) { l.MaxDepth = n },
			`{ a { a { rateLimit } } e1 { id } }`, 3,
		},
		"depth follows fragments": {
			cost.RuleDepth, func(l *cost.Shape, n int) { l.MaxDepth = n },
			`{ ... { a { ...F } } } fragment F on Query { ... on Query { a { ...G } } } fragment G on Query { e1 { id } }`, 4,
		},
		"depth leaves __typename and introspection out": {
			cost.RuleDepth, func(l *cost.Shape, n int) { l.MaxDepth = n },
			`{ a { e1 { __typename } } __schema { types { fields { type { name } } } } }`, 2,
		},
		"depth does not depend on conditions": {
			cost.RuleDepth, func(l *cost.Shape, n int) { l.MaxDepth = n },
			`query ($x: Boolean! = false) { a @include(if: $x) { a { rateLimit } } rateLimit }`, 3,
		},
		"introspection has a depth of its own": {
			cost.RuleIntrospectionDepth, func(l *cost.Shape, n int) { l.MaxIntrospectionDepth = n },
			`{ a { __type(name: "Query") { ...F } } } fragment F on __Type { fields { type { name } } }`, 4,
		},
		"the query of tools needs 15 levels of introspection": {
			cost.RuleIntrospectionDepth, func(l *cost.Shape, n int) { l.MaxIntrospectionDepth = n },
			introspectionQuery(t), 15,
		},
		"aliases count at each spread": {
			cost.RuleAliases, func(l *cost.Shape, n int) { l.MaxAliases = n },
			`{ x: a { ...F } a { ...F ... { ...F } } } fragment F on Query { rateLimit y: rateLimit t: __typename }`, 7,
		},
		"root fields are response names": {
			cost.RuleRootFields, func(l *cost.Shape, n int) { l.MaxRootFields = n },
			`{ ...F ... { a { rateLimit e1 { id } } } ...F __typename } fragment F on Query { rateLimit x: rateLimit a { e1 { id } } }`, 3,
		},
		"directives count wherever they stand": {
			cost.RuleDirectives, func(l *cost.Shape, n int) { l.MaxDirectives = n },
			`query ($x: Boolean! = true) { a @skip(if: $x) { ...F @include(if: $x) ...F } ... @include(if: $x) { rateLimit } }
			fragment F on Query { rateLimit @skip(if: $x) }`, 5,
		},
		"list nodes multiply": {
			cost.RuleListNodes, func(l *cost.Shape, n int) { l.MaxListNodes = n },
			`{ users(first: 50) { posts(first: 10) { id } } e1 { id } a { e2 { id } } }`, 50 + 50*10,
		},
		"list nodes read defaults, assumed sizes and sized fields": {
			cost.RuleListNodes, func(l *cost.Shape, n int) { l.MaxListNodes = n },
			`{ def { id } items { id } conn(first: 7) { edges { node { rel(first: 2) { id } } } } }`, 4 + 20 + 7 + 7*2,
		},
		"list nodes are merged and exclude each other": {
			cost.RuleListNodes, func(l *cost.Shape, n int) { l.MaxListNodes = n },
			`{ node { ... on Item { rel(first: 3) { id } } ... on User { posts(first: 5) { id } } } users(first: 2) { id } ...F } fragment F on Query { users(first: 2) { heavy } }`, 5 + 2,
		},
		"list nodes leave introspection out": {
			cost.RuleListNodes, func(l *cost.Shape, n int) { l.MaxListNodes = n },
			`{ __schema { types { fields { name } } } users(first: 2) { id } }`, 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, allowed := range []int{0, tt.given, tt.given + 1, math.MaxInt} {
				var limits cost.Shape
				tt.set(&limits, allowed)
				_, limit := limited(t, "bypass", limits, tt.query, nil)
				require.Nil(t, limit, "allowed %d", allowed)
			}
			var limits cost.Shape
			tt.set(&limits, tt.given-1)
			price, limit := limited(t, "bypass", limits, tt.query, nil)
			require.NotNil(t, limit)
			require.Equal(t, tt.rule, limit.Rule)
			require.Equal(t, tt.given, limit.Given)
			require.Equal(t, tt.given-1, limit.Allowed)
			require.Empty(t, limit.Coordinate)
			require.Contains(t, limit.Error(), fmt.Sprintf("%d given, %d allowed", tt.given, tt.given-1))
			free, none := limited(t, "bypass", cost.Shape{}, tt.query, nil)
			require.Nil(t, none)
			require.Equal(t, free, price, "the cost is valid even then")
		})
	}
}

// Few servers declare directives for these places, so the document is not validated.
func TestDirectivesOfOperationsVariablesAndFragmentsCount(t *testing.T) {
	t.Parallel()
	estimator, _ := newEstimator(t, "bypass", cost.Config{Shape: cost.Shape{MaxDirectives: 8}})
	doc := raw(t, `query ($v: Int @d) @d @d { ...F @d ...F ... @d { rateLimit } } fragment F on Query @d { rateLimit @d }`)
	plan, err := estimator.Compile(doc, doc.Operations[0])
	require.NoError(t, err)
	_, err = plan.Evaluate(nil)
	var limit *cost.ShapeError
	require.ErrorAs(t, err, &limit)
	require.Equal(t, 9, limit.Given)
}

func TestThePlanForListNodesCountsInTheCache(t *testing.T) {
	t.Parallel()
	units := func(limits cost.Shape) int {
		estimator, schema := newEstimator(t, "bypass", cost.Config{Shape: limits})
		doc := parse(t, schema, `query ($n: Int!) { users(first: $n) { posts(first: $n) { id } } }`, false)
		_, err := estimator.Plan(doc, doc.Operations[0])
		require.NoError(t, err)
		_, units := estimator.Cached()
		return units
	}
	require.Greater(t, units(cost.Shape{MaxListNodes: 1}), units(cost.Shape{MaxDepth: 1}))
}

func TestListNodesFollowTheVariables(t *testing.T) {
	t.Parallel()
	limits := cost.Shape{MaxListNodes: 500_000}
	const query = `query ($n: Int!, $m: Int!, $x: Boolean! = true) { users(first: $n) @include(if: $x) { posts(first: $m) { id } } }`
	_, limit := limited(t, "bypass", limits, query, map[string]any{"n": 1000, "m": 499})
	require.Nil(t, limit)
	_, limit = limited(t, "bypass", limits, query, map[string]any{"n": 1000, "m": 500})
	require.Equal(t, 501_000, limit.Given)
	_, limit = limited(t, "bypass", limits, query, map[string]any{"n": 1000, "m": 500, "x": false})
	require.Nil(t, limit)
}

func TestRepresentationsAreListNodes(t *testing.T) {
	t.Parallel()
	const query = `query ($r: [_Any!]!) { _entities(representations: $r) { __typename } }`
	some := make([]any, 6)
	for i := range some {
		some[i] = map[string]any{"__typename": "Product", "id": "1"}
	}
	_, limit := limited(t, "federation", cost.Shape{MaxListNodes: 6}, query, map[string]any{"r": some})
	require.Nil(t, limit)
	_, limit = limited(t, "federation", cost.Shape{MaxListNodes: 5}, query, map[string]any{"r": some})
	require.Equal(t, &cost.ShapeError{Rule: cost.RuleListNodes, Reason: limit.Reason, Given: 6, Allowed: 5}, limit)
}

// The first limit is reported, and a rule of a field before the size of lists, which it may explain.
func TestOfSeveralBrokenLimitsTheFirstIsReported(t *testing.T) {
	t.Parallel()
	all := cost.Shape{MaxDepth: 1, MaxIntrospectionDepth: 1, MaxAliases: 1, MaxRootFields: 1, MaxDirectives: 1, MaxListNodes: 1}
	const query = `query ($x: Boolean! = false) {
		x: a { y: e1 { id } } def @skip(if: $x) { id @skip(if: $x) } strict(first: null) { id } __schema { types { name } }
	}`
	for _, tt := range []struct {
		rule  cost.Rule
		clear func()
	}{
		{cost.RuleDepth, func() { all.MaxDepth = 0 }},
		{cost.RuleIntrospectionDepth, func() { all.MaxIntrospectionDepth = 0 }},
		{cost.RuleAliases, func() { all.MaxAliases = 0 }},
		{cost.RuleRootFields, func() { all.MaxRootFields = 0 }},
		{cost.RuleDirectives, func() { all.MaxDirectives = 0 }},
		{cost.RuleSlicingArguments, func() {}},
	} {
		_, limit := limited(t, "bypass", all, query, nil)
		require.NotNil(t, limit)
		require.Equal(t, tt.rule, limit.Rule)
		tt.clear()
	}
	_, limit := limited(t, "bypass", all, strings.Replace(query, "first: null", "first: 1", 1), nil)
	require.Equal(t, cost.RuleListNodes, limit.Rule)
}

func TestCountsSaturate(t *testing.T) {
	t.Parallel()
	const levels = 200
	doubling := func(each string) string {
		return "{ ...f0 }" + repeat(levels, " fragment f%[1]d on Query { "+each+" }") + fmt.Sprintf(" fragment f%d on Query { rateLimit @skip(if: false) }", levels)
	}
	const most = min(math.MaxInt, cost.MaxPoints)
	for name, tt := range map[string]struct {
		limits cost.Shape
		query  string
	}{
		"aliases":    {cost.Shape{MaxAliases: 1000}, doubling("x: a { ...f%[2]d } y: a { ...f%[2]d }")},
		"directives": {cost.Shape{MaxDirectives: 1000}, doubling("x: a { ...f%[2]d } y: a { ...f%[2]d }")},
		"list nodes": {cost.Shape{MaxListNodes: 1000}, "{ def" + strings.Repeat(" { rel(first: 2147483647)", levels) + " { id }" + strings.Repeat(" }", levels+1)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			estimator, _ := newEstimator(t, "bypass", cost.Config{Shape: tt.limits})
			doc := raw(t, tt.query)
			plan, err := estimator.Compile(doc, doc.Operations[0])
			require.NoError(t, err)
			_, err = plan.Evaluate(nil)
			var limit *cost.ShapeError
			require.ErrorAs(t, err, &limit)
			require.Equal(t, most, limit.Given)
		})
	}
}

func TestNegativeLimitsAreMistakes(t *testing.T) {
	t.Parallel()
	_, err := cost.New(loadShared(t, "bypass"), cost.Config{Shape: cost.Shape{MaxDepth: -1, MaxListNodes: -2}})
	require.ErrorContains(t, err, "Config.Shape.MaxDepth: -1 is negative")
	require.ErrorContains(t, err, "Config.Shape.MaxListNodes: -2 is negative")
}

// The walk that finds the fragments measures the shape as well, and list nodes are read from the form of the
// price.
func TestLimitsTakeNoWorkOfTheirOwn(t *testing.T) {
	t.Parallel()
	plain, _ := newEstimator(t, "bypass", cost.Config{})
	limited, _ := newEstimator(t, "bypass", cost.Config{Shape: cost.Shape{
		MaxDepth: 1, MaxAliases: 1, MaxRootFields: 1, MaxDirectives: 1, MaxListNodes: 1,
	}})
	for name, document := range allHostile() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc := raw(t, document(300))
			without, err := plain.Work(doc, doc.Operations[0])
			require.NoError(t, err)
			with, err := limited.Work(doc, doc.Operations[0])
			require.NoError(t, err)
			// What is lowered again for a size that a parent gives counts once more.
			require.LessOrEqual(t, with, 2*without)
		})
	}
}

func TestListNodesAreThoseOfExecution(t *testing.T) {
	t.Parallel()
	// What is refused says how many nodes it has.
	estimator, schema := newEstimator(t, "bypass", cost.Config{Shape: cost.Shape{MaxListNodes: 1}})
	rapid.Check(t, func(t *rapid.T) {
		text := drawDocument(t).String()
		doc, plan := compileText(t, estimator, text)
		variables := drawVariables(t)
		o := oracle{schema: schema, doc: doc, variables: variables, nodes: true}
		want, _ := o.price(schema.Query, []ast.SelectionSet{doc.Operations[0].SelectionSet}, -1)
		_, err := plan.Evaluate(variables)
		if want <= 1 {
			require.NoError(t, err, text)
			return
		}
		var limit *cost.ShapeError
		require.ErrorAs(t, err, &limit, text)
		require.Equal(t, want, float64(limit.Given), "%s %v", text, variables)
	})
}
