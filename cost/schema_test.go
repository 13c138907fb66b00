package cost_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

// schemaErrors returns the mistakes that New joined.
func schemaErrors(t *testing.T, err error) []*cost.SchemaError {
	t.Helper()
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	require.True(t, ok, "%T", err)
	var all []*cost.SchemaError
	for _, one := range joined.Unwrap() {
		var mistake *cost.SchemaError
		require.ErrorAs(t, one, &mistake)
		all = append(all, mistake)
	}
	return all
}

func TestEachSchemaMistakeNamesItsCoordinate(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, sdl, coordinate, reason string }{
		{"a weight that is a word", `type Query { a: Int @cost(weight: "much") }`, "Query.a", "finite decimal"},
		{"a weight that is NaN", `type Query { a: Int @cost(weight: "NaN") }`, "Query.a", "finite decimal"},
		{"a weight that is infinite", `type Query { a: Int @cost(weight: "Infinity") }`, "Query.a", "finite decimal"},
		{"a weight that is hexadecimal", `type Query { a: Int @cost(weight: "0x10") }`, "Query.a", "finite decimal"},
		{"a weight out of range", `type Query { a: Int @cost(weight: "1e400") }`, "Query.a", "between"},
		{"an empty weight", `type Query { a: Int @cost(weight: "") }`, "Query.a", "not a number"},
		{"the weight of a type", `type T @cost(weight: "x") { a: Int } type Query { t: T }`, "T", "finite decimal"},
		{"the weight of a scalar that nothing returns", `scalar S @cost(weight: "x") type Query { a: Int }`, "S", "finite decimal"},
		{"the weight of an argument", `type Query { a(b: Int @cost(weight: "x")): Int }`, "Query.a(b:)", "finite decimal"},
		{"the weight of an input field", `input I { b: Int @cost(weight: "x") } type Query { a(i: I): Int }`, "I.b", "finite decimal"},
		{"the weight of the argument of a directive", `directive @d(b: Int @cost(weight: "x")) on FIELD type Query { a: Int }`, "@d(b:)", "finite decimal"},
		{"the weight of an interface field", `interface N { a: Int @cost(weight: "2") } type T implements N { a: Int } type Query { n: N }`, "N.a", "interface fields"},
		{"a size of what is no list", `type Query { a: Int @listSize(assumedSize: 2) }`, "Query.a", "no list"},
		{"a negative assumed size", `type Query { a: [Int] @listSize(assumedSize: -1) }`, "Query.a", "negative"},
		{"a slicing argument that does not exist", `type Query { a(first: Int): [Int] @listSize(slicingArguments: ["last"]) }`, "Query.a", `"last" does not exist`},
		{"a slicing path through a scalar", `type Query { a(first: Int): [Int] @listSize(slicingArguments: ["first.x"]) }`, "Query.a", "no input object"},
		{"a slicing path through a list", `input I { n: Int } type Query { a(i: [I]): [Int] @listSize(slicingArguments: ["i.n"]) }`, "Query.a", "through a list"},
		{"a slicing path that ends early", `input I { n: Int } type Query { a(i: I): [Int] @listSize(slicingArguments: ["i.m"]) }`, "Query.a", `"i.m" does not exist`},
		{"a slicing argument given twice", `type Query { a(first: Int): [Int] @listSize(slicingArguments: ["first", "first"]) }`, "Query.a", "twice"},
		{"a sized field that does not exist", `type T { b: [Int] } type Query { t(first: Int): T @listSize(slicingArguments: ["first"], sizedFields: ["c"]) }`, "Query.t", `"c" is no field of T`},
		{"a sized field that is no list", `type T { b: Int } type Query { t(first: Int): T @listSize(slicingArguments: ["first"], sizedFields: ["b"]) }`, "Query.t", "not a list on T"},
		{"a sized field of a scalar", `type Query { t: [Int] @listSize(assumedSize: 1, sizedFields: ["b"]) }`, "Query.t", "cannot be a field of Int"},
		{"an assumed size that never counts", `type Query { a(first: Int): [Int] @listSize(assumedSize: 5, slicingArguments: ["first"], requireOneSlicingArgument: true) }`, "Query.a", "leave one of the two out"},
		{"sized fields that are no names", `type T { b: [Int] } type Query { t: T @listSize(assumedSize: 1, sizedFields: ["b {"]) }`, "Query.t", "results { page }"},
		{"sized fields with an alias", `type T { b: [Int] } type Query { t: T @listSize(assumedSize: 1, sizedFields: ["c: b"]) }`, "Query.t", "without arguments"},
		{"sized fields through a list", `type T { b: [U] } type U { c: [Int] } type Query { t: T @listSize(assumedSize: 1, sizedFields: ["b { c }"]) }`, "Query.t", "T.b, which does not return one object"},
		{"sized fields through an interface", `type T { b: U } interface U { c: [Int] } type V implements U { c: [Int] } type Query { t: T @listSize(assumedSize: 1, sizedFields: ["b { c }"]) }`, "Query.t", "T.b, which does not return one object"},
		{"sized fields through a list size", `type T { b: U @listSize(assumedSize: 1, sizedFields: ["c"]) } type U { c: [Int] } type Query { t: T @listSize(assumedSize: 1, sizedFields: ["b { c }"]) }`, "Query.t", "T.b, which has a list size of its own"},
		{"sized fields through a negative weight", `type T { b: U } type U @cost(weight: "-1") { c: [Int] } type Query { t: T @listSize(assumedSize: 1, sizedFields: ["b { c }"]) }`, "Query.t", "negative weight"},
		{"a wrong size at an interface field", `interface N { a: [Int] @listSize(assumedSize: -1) } type T implements N { a: [Int] } type Query { n: N }`, "N.a", "negative"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := cost.New(loadSchema(t, tt.sdl, ""), cost.Config{})
			mistakes := schemaErrors(t, err)
			require.Len(t, mistakes, 1, "%v", err)
			require.Equal(t, tt.coordinate, mistakes[0].Coordinate)
			require.Contains(t, mistakes[0].Reason, tt.reason)
		})
	}
}

func TestEachConfigMistakeNamesItsCoordinate(t *testing.T) {
	t.Parallel()
	negative := -1
	for _, tt := range []struct {
		name       string
		cfg        cost.Config
		coordinate string
	}{
		{"negative default size", cost.Config{DefaultListSize: -1}, "Config.DefaultListSize"},
		{"negative work limit", cost.Config{WorkLimit: -1}, "Config.WorkLimit"},
		{"negative cache", cost.Config{PlanCacheSize: -1}, "Config.PlanCacheSize"},
		{"negative representations", cost.Config{MaxRepresentations: -1}, "Config.MaxRepresentations"},
		{"negative values", cost.Config{MaxValues: -1}, "Config.MaxValues"},
		{"negative base", cost.Config{Base: map[ast.Operation]float64{ast.Query: -1}}, "Config.Base"},
		{"base that is no number", cost.Config{Base: map[ast.Operation]float64{ast.Query: math.NaN()}}, "Config.Base"},
		{"base of an unknown operation", cost.Config{Base: map[ast.Operation]float64{"batch": 1}}, "Config.Base"},
		{"weight of an unknown field", cost.Config{Weights: map[string]float64{"Query.nothing": 1}}, "Query.nothing"},
		{"weight of an interface field", cost.Config{Weights: map[string]float64{"Publication.title": 1}}, "Publication.title"},
		{"weight of an input object", cost.Config{Weights: map[string]float64{"Filter": 1}}, "Filter"},
		{"weight that is NaN", cost.Config{Weights: map[string]float64{"Text": math.NaN()}}, "Text"},
		{"weight that is infinite", cost.Config{Weights: map[string]float64{"Query.value": math.Inf(1)}}, "Query.value"},
		{"size of an unknown field", cost.Config{ListSizes: map[string]cost.ListSize{"Query.nothing": {}}}, "Query.nothing"},
		{"size that is negative", cost.Config{ListSizes: map[string]cost.ListSize{"Query.unsized": {AssumedSize: &negative}}}, "Query.unsized"},
		{"pattern that fits nothing", cost.Config{ListSizes: map[string]cost.ListSize{"*.nothing": {}}}, "*.nothing"},
		{"pattern that is none", cost.Config{ListSizes: map[string]cost.ListSize{"*[a]": {}}}, "*[a]"},
		{"free field that does not exist", cost.Config{FreeFields: []string{"Query.budget"}}, "Query.budget"},
		{"free field below the root", cost.Config{FreeFields: []string{"Book.title"}}, "Book.title"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := cost.New(loadShared(t, "library"), tt.cfg)
			mistakes := schemaErrors(t, err)
			require.Len(t, mistakes, 1, "%v", err)
			require.Equal(t, tt.coordinate, mistakes[0].Coordinate)
		})
	}
}

func TestTenMistakesGiveTenErrors(t *testing.T) {
	t.Parallel()
	schema := loadSchema(t, `
type Query {
  a: Int @cost(weight: "x")
  b: Int @listSize(assumedSize: 1)
  c(first: Int): [Int] @listSize(slicingArguments: ["last"])
  d: [Int] @listSize(assumedSize: -4)
  e(x: Int @cost(weight: "NaN")): Int
  f(i: I): T
}
input I { g: Int @cost(weight: "1e400") }
type T @cost(weight: "") { h: Int @cost(weight: "h") }
`, "")
	_, err := cost.New(schema, cost.Config{DefaultListSize: -1, Weights: map[string]float64{"Query.z": 1}})
	var coordinates []string
	for _, mistake := range schemaErrors(t, err) {
		coordinates = append(coordinates, mistake.Coordinate)
	}
	require.Equal(t, []string{
		"Config.DefaultListSize", "I.g", "Query.a", "Query.b", "Query.c", "Query.d", "Query.e(x:)", "Query.z", "T", "T.h",
	}, coordinates)
}

func TestADefaultThatContainsItselfIsAMistake(t *testing.T) {
	t.Parallel()
	schema := loadSchema(t, `input I { i: I n: Int @cost(weight: "1") } type Query { a(i: I): Int }`, "")
	// gqlparser may refuse such a schema; one that was built by hand reaches New.
	schema.Types["I"].Fields.ForName("i").DefaultValue = &ast.Value{Kind: ast.ObjectValue}
	_, err := cost.New(schema, cost.Config{})
	mistakes := schemaErrors(t, err)
	require.Len(t, mistakes, 1)
	require.Equal(t, "I.i", mistakes[0].Coordinate)
}

func TestNewWithoutASchemaIsAnError(t *testing.T) {
	t.Parallel()
	_, err := cost.New(nil, cost.Config{})
	var mistake *cost.SchemaError
	require.ErrorAs(t, err, &mistake)
}

func TestUnsizedListsAreCountedAndRefusedWhenStrict(t *testing.T) {
	t.Parallel()
	schema := loadShared(t, "library")
	estimator, err := cost.New(schema, cost.Config{})
	require.NoError(t, err)
	// Shelf.page is sized by its parents, and grid is sized although its inner lists are not.
	want := []string{"Query.shelves", "Query.tags", "Query.unsized", "Shelf.recent"}
	require.Equal(t, want, estimator.UnsizedLists())

	_, err = cost.New(schema, cost.Config{RequireListSizes: true})
	mistakes := schemaErrors(t, err)
	require.Len(t, mistakes, len(want))
	for i := range want {
		require.Equal(t, want[i], mistakes[i].Coordinate)
	}

	three := 3
	sizes := map[string]cost.ListSize{}
	for _, coordinate := range want {
		sizes[coordinate] = cost.ListSize{AssumedSize: &three}
	}
	_, err = cost.New(schema, cost.Config{RequireListSizes: true, ListSizes: sizes})
	require.NoError(t, err)
}

func TestSchemaErrorsAreSentences(t *testing.T) {
	t.Parallel()
	_, err := cost.New(loadSchema(t, `type Query { a: Int @cost(weight: "x") b: Int @cost(weight: "y") }`, ""), cost.Config{})
	require.Len(t, strings.Split(err.Error(), "\n"), 2)
	var mistake *cost.SchemaError
	require.ErrorAs(t, err, &mistake)
	require.Equal(t, `cost: Query.a: weight "x" of @cost is not a finite decimal number`, mistake.Error())
}

// A directive that the schema applies to a field adds what its arguments cost to the weight of the field.
func TestArgumentsOfDirectivesInTheSchemaCostForEachCall(t *testing.T) {
	t.Parallel()
	schema := loadSchema(t, `
directive @fetch(from: String @cost(weight: "3"), options: Options = {retries: 1} @cost(weight: "2")) repeatable on FIELD_DEFINITION | FIELD
input Options { retries: Int @cost(weight: "0.5") }
type Query { none: Int given: Int @fetch(from: "x", options: null) twice: Int @fetch @fetch(from: "y") @cost(weight: "1") list: [Item] @listSize(assumedSize: 4) }
type Item { name: String @fetch(options: {}) }`, "")
	for text, want := range map[string]float64{
		"{ none }":                    0,
		"{ given }":                   3 + 2,
		"{ twice }":                   1 + 2.5 + 3 + 2.5,
		"{ list { name } }":           1 + 4*2,
		`{ given @fetch(from: "z") }`: 5 + 3 + 2.5,
	} {
		typ := 1.0
		if text == "{ list { name } }" {
			typ += 4
		}
		requirePrice(t, schema, cost.Config{}, text, nil, cost.Cost{Type: typ, Field: want})
	}
}

// An abstract type weighs the most of its possible object types, whether an interface implements it or not
// and in whatever order they are declared.
func TestAnInterfaceThatImplementsAnotherHasNoWeightOfItsOwn(t *testing.T) {
	t.Parallel()
	parts := []string{
		"interface Named implements Node { id: ID name: String }",
		`type A implements Node @cost(weight: "0.25") { id: ID }`,
		`type B implements Named & Node @cost(weight: "0") { id: ID name: String }`,
	}
	for _, order := range [][3]int{{0, 1, 2}, {1, 0, 2}, {2, 1, 0}} {
		text := "type Query { nodes(first: Int): [Node] @listSize(slicingArguments: [\"first\"]) } interface Node { id: ID }"
		for _, i := range order {
			text += " " + parts[i]
		}
		schema := loadSchema(t, text, "")
		estimator, err := cost.New(schema, cost.Config{})
		require.NoError(t, err)
		doc := parse(t, schema, "{ nodes(first: 100) { id } }", false)
		plan, err := estimator.Plan(doc, doc.Operations[0])
		require.NoError(t, err)
		price, err := plan.Evaluate(nil)
		require.NoError(t, err)
		require.Equal(t, 1+100*0.25, price.Type, text)
	}
}
