package cost_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

// chain is a schema in which types that nothing tells apart can be nested.
const chain = `
interface Link {
  next: Link
}
type Iron implements Link {
  next: Link
  weight: Int @cost(weight: "3")
}
type Gold implements Link {
  next: Link
  weight: Int @cost(weight: "5")
}
type Query {
  link: Link
  links: [Link] @listSize(assumedSize: 20000)
}
type Subscription {
  linked: Link
}
`

// outlineChain outlines an operation on the schema chain.
func outlineChain(t *testing.T, query string) (*cost.Outline, *cost.Plan) {
	t.Helper()
	schema := loadSchema(t, chain, "")
	estimator, err := cost.New(schema, cost.Config{})
	require.NoError(t, err)
	doc := parse(t, schema, query, true)
	outline, err := estimator.Outline(doc, doc.Operations[0])
	require.NoError(t, err)
	plan, err := estimator.Plan(doc, doc.Operations[0])
	require.NoError(t, err)
	return outline, plan
}

func actual(t *testing.T, tally *cost.Tally) cost.Cost {
	t.Helper()
	price, err := tally.Cost()
	require.NoError(t, err)
	return price
}

func TestADeferredPartAddsItsCallsAndNotItsObject(t *testing.T) {
	t.Parallel()
	outline, _ := outlineChain(t, `{ links { __typename next { __typename ... @defer { next { __typename ... on Gold { weight } } } } } }`)
	whole, parts := outline.Tally(nil), outline.Tally(nil)
	require.NoError(t, whole.Add([]byte(`{"links": [null, {"__typename": "Gold", "next": {"__typename": "Iron", "next": {"__typename": "Gold", "weight": 1}}}]}`)))

	require.NoError(t, parts.Add([]byte(`{"links": [null, {"__typename": "Gold", "next": {"__typename": "Iron"}}]}`)))
	at := ast.Path{ast.PathName("links"), ast.PathIndex(1), ast.PathName("next")}
	require.NoError(t, parts.AddAt(at, []byte(`{"next": {"__typename": "Gold", "weight": 1}}`)))
	require.NoError(t, parts.AddAt(at, []byte(`null`)))
	require.Equal(t, cost.Cost{Type: 4, Field: 8}, actual(t, whole))
	require.Equal(t, actual(t, whole), actual(t, parts))
}

func TestADeferredPartThatBelongsNowhereSpoilsTheTally(t *testing.T) {
	t.Parallel()
	outline, _ := outlineChain(t, `{ link { ... on Gold { weight } } }`)
	for _, path := range []ast.Path{{ast.PathName("ring")}, {ast.PathName("link"), ast.PathName("weight")}} {
		tally := outline.Tally(nil)
		err := tally.AddAt(path, []byte(`{"weight": 1}`))
		var unknown *cost.ResponseError
		require.ErrorAs(t, err, &unknown)
		require.NoError(t, tally.Add([]byte(`{"link": {}}`)))
		_, spoilt := tally.Cost()
		require.Equal(t, err, spoilt)
	}
}

func TestEventsOfASubscriptionAddUpOnOneBase(t *testing.T) {
	t.Parallel()
	outline, plan := outlineChain(t, `subscription { linked { ... on Gold { weight } } }`)
	estimate, err := plan.Evaluate(nil)
	require.NoError(t, err)
	tally := outline.Tally(nil)
	require.Equal(t, cost.Cost{Base: 10, Type: 1}, actual(t, tally))
	require.NoError(t, tally.Add([]byte(`{"linked": {"weight": 3}}`)))
	require.Equal(t, estimate, actual(t, tally))
	for range 2 {
		require.NoError(t, tally.Add([]byte(`{"linked": {"weight": 3}}`)))
	}
	require.Equal(t, cost.Cost{Base: 10, Type: 4, Field: 18}, actual(t, tally))
}

func TestAnOperationNeedsTypesWhereNothingElseTellsThem(t *testing.T) {
	t.Parallel()
	for query, needs := range map[string]bool{
		`{ link { ... on Iron { weight } ... on Gold { weight } } }`:                       true,
		`{ link { ... on Iron { weight } } }`:                                              true,
		`{ link { __typename ... on Iron { weight } ... on Gold { weight } } }`:            false,
		`{ link { ... on Iron { w: weight } ... on Gold { weight } } }`:                    false,
		`{ link { ... on Iron { __typename weight } ... on Gold { weight } } }`:            true,
		`{ link { next { next { __typename } } } }`:                                        false,
		`query ($x: Boolean!) { link { __typename @skip(if: $x) ...on Iron { weight } } }`: true,
	} {
		outline, _ := outlineChain(t, query)
		require.Equal(t, needs, outline.NeedsTypes(), query)
		require.Equal(t, needs, outline.NeedsType("Gold"), query)
		require.False(t, outline.NeedsType("Query"), query)
	}
}

// nestedLinks is a query that selects the same names on both types, n deep, and its response.
func nestedLinks(n int, typename string) (query, response string) {
	query = "{ link { ...f0 } }"
	for i := range n {
		query += fmt.Sprintf(" fragment f%[1]d on Link { %[3]s ... on Iron { weight next { ...f%[2]d } } ... on Gold { weight next { ...f%[2]d } } }", i, i+1, typename)
	}
	query += fmt.Sprintf(" fragment f%d on Link { __typename }", n)
	value := ""
	if typename != "" {
		value = `, "__typename": "Gold"`
	}
	open := strings.Repeat(`{"weight": 1, "next": `, n)
	return query, `{"link": ` + open + `{"__typename": "Gold"}` + strings.Repeat(value+"}", n) + "}"
}

// Objects that do not tell their type are read as each type that they may have, which doubles with
// every level.
func TestReadingObjectsThatDoNotTellTheirTypeIsBounded(t *testing.T) {
	t.Parallel()
	for n, known := range map[int]bool{3: true, 60: false} {
		query, response := nestedLinks(n, "")
		outline, _ := outlineChain(t, query)
		require.True(t, outline.NeedsTypes())
		tally := outline.Tally(nil)
		require.Equal(t, known, tally.Add([]byte(response)) == nil, n)
		price, err := tally.Cost()
		if known {
			require.Equal(t, cost.Cost{Type: 5, Field: 19, Approximate: true}, price)
			continue
		}
		var unknown *cost.ResponseError
		require.ErrorAs(t, err, &unknown)
	}
}

func TestObservedTypesAreReadOnce(t *testing.T) {
	t.Parallel()
	query, response := nestedLinks(60, "")
	outline, _ := outlineChain(t, query)
	tally := outline.Tally(nil)
	path := ast.Path{ast.PathName("link")}
	for range 60 {
		tally.Observe(path, "Iron")
		path = append(path, ast.PathName("next"))
	}
	require.NoError(t, tally.Add([]byte(response)))
	require.Equal(t, cost.Cost{Type: 62, Field: 61 + 60*3}, actual(t, tally))
}

func TestDeepObjectsThatTellTheirTypeAreReadExactly(t *testing.T) {
	t.Parallel()
	query, response := nestedLinks(15, "__typename")
	outline, _ := outlineChain(t, query)
	require.False(t, outline.NeedsTypes())
	tally := outline.Tally(nil)
	require.NoError(t, tally.Add([]byte(response)))
	require.Equal(t, cost.Cost{Type: 17, Field: 91}, actual(t, tally))
}

func TestATallyForgetsTypesThatAreTooMany(t *testing.T) {
	t.Parallel()
	outline, _ := outlineChain(t, `{ links { ... on Iron { weight } ... on Gold { weight } } }`)
	for count, approximate := range map[int]bool{10_000: false, 10_001: true} {
		tally := outline.Tally(nil)
		for i := range count {
			tally.Observe(ast.Path{ast.PathName("links"), ast.PathIndex(i)}, "Iron")
			tally.Observe(ast.Path{ast.PathName("links"), ast.PathIndex(i)}, "Query")
		}
		response := `{"links": [` + strings.Repeat(`{"weight": 1},`, count-1) + `{"weight": 1}]}`
		require.NoError(t, tally.Add([]byte(response)))
		price := actual(t, tally)
		require.Equal(t, approximate, price.Approximate)
		extra := 0
		if approximate {
			extra = 2
		}
		require.Equal(t, float64(1+3*count+extra), price.Field)
	}
}

func TestATallyMayBeToldTypesWhileItIsRead(t *testing.T) {
	t.Parallel()
	outline, _ := outlineChain(t, `{ links { ... on Iron { weight } ... on Gold { weight } } }`)
	tally := outline.Tally(nil)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			tally.Observe(ast.Path{ast.PathName("links"), ast.PathIndex(i)}, "Gold")
			_ = tally.Add([]byte(`{"links": [{"weight": 1}]}`))
			_, _ = tally.Cost()
		})
	}
	all.Wait()
	require.GreaterOrEqual(t, actual(t, tally).Field, 8.0*(1+3))
}
