package cost_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
	"pgregory.net/rapid"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

// responder makes up a response that respects the declared sizes, and says what it cost: as naively
// as the oracle, from the concrete types that it chose.
type responder struct {
	oracle
	t *rapid.T
	// observe is told each object.
	observe func(path ast.Path, typeName string)
}

// object writes an object and returns what its calls cost.
func (r *responder) object(b *strings.Builder, object *ast.Definition, sets []ast.SelectionSet, sized float64, path ast.Path) (typ, field float64) {
	into, seen := map[string][]*ast.Field{}, map[string]bool{}
	for _, set := range sets {
		r.collect(object, set, seen, into)
	}
	field = r.furtherAliases(into)
	r.observe(path, object.Name)
	b.WriteString("{")
	for i, key := range rapid.Permutation(slices.Sorted(maps.Keys(into))).Draw(r.t, "order") {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.Quote(key) + ": ")
		t, f := r.call(b, object, into[key], sized, append(slices.Clone(path), ast.PathName(key)))
		typ, field = typ+t, field+f
	}
	b.WriteString("}")
	return typ, field
}

func (r *responder) call(b *strings.Builder, object *ast.Definition, fields []*ast.Field, sized float64, path ast.Path) (typ, field float64) {
	if fields[0].Name == "__typename" {
		b.WriteString(strconv.Quote(object.Name))
		return 0, 0
	}
	def := object.Fields.ForName(fields[0].Name)
	args := argumentMap(def, fields[0], r.variables)
	n, below := sizes(def.Name, args, sized)
	returned := r.schema.Types[def.Type.Name()]
	field = r.own(object, def, fields[0])
	var children []ast.SelectionSet
	for _, f := range fields {
		children = append(children, f.SelectionSet)
	}
	element := func(path ast.Path) {
		switch {
		case !returned.IsCompositeType():
			b.WriteString(rapid.SampledFrom([]string{`1`, `"a\"b\u00e9"`, `null`, `-1.5e3`, `{"a": [true]}`}).Draw(r.t, "scalar"))
		case rapid.IntRange(0, 6).Draw(r.t, "null") == 0:
			b.WriteString("null")
		default:
			concrete := rapid.SampledFrom(r.schema.GetPossibleTypes(returned)).Draw(r.t, "type")
			t, f := r.object(b, concrete, children, below, path)
			typ, field = typ+t+r.weight(concrete.Name, concrete.Directives, 1), field+f
		}
	}
	switch {
	case def.Type.Elem == nil:
		element(path)
	case rapid.IntRange(0, 9).Draw(r.t, "no list") == 0:
		b.WriteString("null")
	default:
		b.WriteString("[")
		for i := range rapid.IntRange(0, int(min(n, 3))).Draw(r.t, "length") {
			if i > 0 {
				b.WriteString(",")
			}
			element(append(slices.Clone(path), ast.PathIndex(i)))
		}
		b.WriteString("]")
	}
	return max(0, typ), field
}

// For each response that respects the declared sizes the actual cost is what walking it with the
// types that it was made of says, if types are told, never less if they are not, and never above the
// estimate.
func TestTheActualCostIsExactWhereTypesAreToldAndNeverAboveTheEstimate(t *testing.T) {
	t.Parallel()
	signed := map[string]float64{"Item": -3, "User": 2, "Query.a": -1, "Item.rel": -2, "Item.heavy": 7, "Query.rateLimit": 2}
	for name, config := range map[string]cost.Config{
		"directives": {}, "signed": {Weights: signed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			estimator, schema := newEstimator(t, "bypass", config)
			rapid.Check(t, func(t *rapid.T) {
				text := drawDocument(t).String()
				doc, err := parser.ParseQuery(&ast.Source{Input: text})
				require.NoError(t, err)
				outline, err := estimator.Outline(doc, doc.Operations[0])
				require.NoError(t, err)
				plan, err := estimator.Plan(doc, doc.Operations[0])
				require.NoError(t, err)
				variables := drawVariables(t)
				told, untold := outline.Tally(variables), outline.Tally(variables)
				o := oracle{schema: schema, doc: doc, variables: variables, weights: config.Weights}
				r := responder{o, t, told.Observe}
				var b strings.Builder
				typ, field := r.object(&b, schema.Query, []ast.SelectionSet{doc.Operations[0].SelectionSet}, -1, nil)
				require.True(t, json.Valid([]byte(b.String())), b.String())

				require.NoError(t, told.Add([]byte(b.String())), "%s\n%s", text, &b)
				exact, err := told.Cost()
				require.NoError(t, err)
				require.Equal(t, cost.Cost{Type: max(0, 1+typ), Field: field, Free: exact.Free}, exact, "%s\n%s", text, &b)

				require.NoError(t, untold.Add([]byte(b.String())))
				atMost, err := untold.Cost()
				require.NoError(t, err)
				estimate, err := plan.Evaluate(variables)
				require.NoError(t, err)
				requireOrder(t, exact, atMost, text)
				requireOrder(t, atMost, estimate, text)
				apart := outline.Apart().Tally(variables)
				require.NoError(t, apart.Add([]byte(b.String())))
				twice, err := apart.Cost()
				require.NoError(t, err)
				require.Equal(t, twice, atMost, "what is read once costs what is read twice\n%s\n%s", text, &b)
				if !atMost.Approximate {
					require.Equal(t, exact, atMost, "%s\n%s", text, &b)
				}
				if !outline.NeedsTypes() {
					require.False(t, atMost.Approximate, "%s\n%s", text, &b)
				}
			})
		})
	}
}

func requireOrder(t require.TestingT, lower, upper cost.Cost, text string) {
	require.LessOrEqual(t, lower.Type, upper.Type, text)
	require.LessOrEqual(t, lower.Field, upper.Field, text)
}

// Each object here tells its type after the objects in it. Reading ahead for it would read the innermost
// one as often as it is deep.
func TestAnObjectWhoseTypesAgreeIsReadOnce(t *testing.T) {
	t.Parallel()
	schema := loadSchema(t, `
interface Node { next: Node name: String }
type A implements Node { next: Node name: String a: Int @cost(weight: "1") }
type B implements Node { next: Node name: String b: Int @cost(weight: "2") }
type Query { node: Node }`, "")
	estimator, err := cost.New(schema, withoutAliases(cost.Config{}))
	require.NoError(t, err)
	const depth = 100
	last := " name ... on A { a } ... on B { b } }"
	doc := parse(t, schema, "{ node {"+strings.Repeat(" next {", depth)+strings.Repeat(last, depth+1)+" }", false)
	outline, err := estimator.Outline(doc, doc.Operations[0])
	require.NoError(t, err)
	tally := outline.Tally(nil)
	require.NoError(t, tally.Add([]byte(`{"node":`+strings.Repeat(`{"next":`, depth)+`{"name":"","a":1}`+strings.Repeat(`,"name":"","b":1}`, depth)+"}")))
	price, err := tally.Cost()
	require.NoError(t, err)
	// Query and 101 objects; 101 calls of them, one of a and 100 of b.
	require.Equal(t, cost.Cost{Type: 102, Field: 101 + 1 + 2*depth}, price)

	nobody := outline.Tally(nil)
	require.NoError(t, nobody.Add([]byte(`{"node":{"name":""}}`)))
	price, err = nobody.Cost()
	require.NoError(t, err)
	require.Equal(t, cost.Cost{Type: 2, Field: 1, Approximate: true}, price)
}

// Where they do not agree, what is read before the type is known is priced when it is.
func TestAnObjectWhoseTypesDoNotAgreeIsPricedByItsType(t *testing.T) {
	t.Parallel()
	schema := loadSchema(t, `
interface Node { price: Int next: Node }
type A implements Node { price: Int @cost(weight: "1") next: Node }
type B implements Node { price: Int @cost(weight: "5") next: Node }
type Query { node: Node }`, "")
	estimator, err := cost.New(schema, withoutAliases(cost.Config{}))
	require.NoError(t, err)
	for _, tt := range []struct {
		text, data string
		field      float64
	}{
		{"{ node { price __typename } }", `{"node":{"price":1,"__typename":"B"}}`, 1 + 5},
		{
			"{ node { price: next { a: price __typename } ... on B { price: next { b: price __typename } } __typename } }",
			`{"node":{"price":{"a":1,"b":2,"__typename":"B"},"__typename":"B"}}`, 1 + 1 + 5 + 5,
		},
	} {
		doc := raw(t, tt.text)
		outline, err := estimator.Outline(doc, doc.Operations[0])
		require.NoError(t, err)
		tally := outline.Tally(nil)
		require.NoError(t, tally.Add([]byte(tt.data)))
		price, err := tally.Cost()
		require.NoError(t, err)
		require.Equal(t, tt.field, price.Field, tt.text)
		require.False(t, price.Approximate)
	}
}

// Exclusive fragments may select different things below one response name, which tell the types apart.
func TestAnObjectIsOfATypeOnWhichAllThatItHasIsSelected(t *testing.T) {
	t.Parallel()
	schema := loadSchema(t, `
interface Node { owner: User }
type A implements Node { owner: User }
type B implements Node { owner: User }
type User { id: ID friend: User }
type Query { node: Node }`, "")
	estimator, err := cost.New(schema, withoutAliases(cost.Config{}))
	require.NoError(t, err)
	doc := parse(t, schema, `{ node { ... on A { owner { id } } ... on B { owner { friend { id } } } } }`, false)
	outline, err := estimator.Outline(doc, doc.Operations[0])
	require.NoError(t, err)
	for data, want := range map[string]float64{
		`{"node": {"owner": {"id": "1"}}}`:             2,
		`{"node": {"owner": {"friend": {"id": "1"}}}}`: 3,
	} {
		tally := outline.Tally(nil)
		require.NoError(t, tally.Add([]byte(data)), data)
		price, err := tally.Cost()
		require.NoError(t, err)
		require.Equal(t, cost.Cost{Type: 1 + want, Field: want}, price)
	}
	require.Error(t, outline.Tally(nil).Add([]byte(`{"node": {"owner": {"name": "1"}}}`)), "no type selects it")
}

// Neither is the object of a type below which nothing has the type that is told.
func TestAnObjectIsOfATypeBelowWhichTheTypesThatAreToldArePossible(t *testing.T) {
	t.Parallel()
	schema := loadSchema(t, `
interface Node { id: ID }
type A implements Node { id: ID owner: People }
type B implements Node { id: ID owner: Groups }
union People = User | Guest
union Groups = Team | Company
type User { id: ID } type Guest { id: ID } type Team { members: User } type Company { members: User }
type Query { node: Node }`, "")
	estimator, err := cost.New(schema, withoutAliases(cost.Config{}))
	require.NoError(t, err)
	doc := parse(t, schema, `{ node { ... on A { owner { __typename ... on User { id } } }
		... on B { owner { __typename ... on Team { members { id } } } } } }`, false)
	outline, err := estimator.Outline(doc, doc.Operations[0])
	require.NoError(t, err)
	for data, want := range map[string]float64{
		`{"node": {"owner": {"__typename": "User", "id": "1"}}}`:              2,
		`{"node": {"owner": {"__typename": "Guest"}}}`:                        2,
		`{"node": {"owner": {"__typename": "Team", "members": {"id": "1"}}}}`: 3,
		`{"node": {"owner": {"__typename": "Company"}}}`:                      2,
	} {
		tally := outline.Tally(nil)
		require.NoError(t, tally.Add([]byte(data)), data)
		price, err := tally.Cost()
		require.NoError(t, err)
		require.Equal(t, cost.Cost{Type: 1 + want, Field: want}, price, data)
	}
	require.Error(t, outline.Tally(nil).Add([]byte(`{"node": {"owner": {"__typename": "Node"}}}`)), "no type has it")
}

// What a response to summed selections costs has the rules of the price: at least what it would cost if they
// were merged, at most the estimate.
func TestAnOperationThatIsSummedHasABreakdownAndAnActualCost(t *testing.T) {
	t.Parallel()
	estimator, schema := newEstimator(t, "bypass", cost.Config{})
	rapid.Check(t, func(t *rapid.T) {
		doc, err := parser.ParseQuery(&ast.Source{Input: drawDocument(t).String()})
		require.NoError(t, err)
		outline, err := estimator.OutlineSummed(doc, doc.Operations[0])
		require.NoError(t, err)
		plan, _, err := estimator.CompileSummed(doc, doc.Operations[0])
		require.NoError(t, err)
		variables := drawVariables(t)
		estimate, err := plan.Evaluate(variables)
		require.NoError(t, err)
		requireSum(t, outline.Explain(variables, cost.ExplainOptions{MaxEntries: rapid.SampledFrom([]int{0, 3}).Draw(t, "max")}), "")

		tally := outline.Tally(variables)
		o := oracle{schema: schema, doc: doc, variables: variables}
		r := responder{o, t, tally.Observe}
		var b strings.Builder
		typ, field := r.object(&b, schema.Query, []ast.SelectionSet{doc.Operations[0].SelectionSet}, -1, nil)
		require.NoError(t, tally.Add([]byte(b.String())), "%s", &b)
		actual, err := tally.Cost()
		require.NoError(t, err)
		require.True(t, actual.Approximate)
		require.LessOrEqual(t, 1+typ, actual.Type)
		require.LessOrEqual(t, field, actual.Field)
		requireOrder(t, actual, estimate, b.String())
	})
}

// gqlgen writes null for what it defers, and the value later.
func TestACallThatWasNullUntilItsValueCameIsPaidOnce(t *testing.T) {
	t.Parallel()
	estimator, _ := newEstimator(t, "bypass", cost.Config{})
	doc, err := parser.ParseQuery(&ast.Source{Input: `{ node { id ... @defer { ... on Item { rel(first: 2) { id ... @defer { heavy } } } } } }`})
	require.NoError(t, err)
	outline, err := estimator.Outline(doc, doc.Operations[0])
	require.NoError(t, err)
	whole := outline.Tally(nil)
	require.NoError(t, whole.Add([]byte(`{"node": {"id": "1", "rel": [{"id": "2", "heavy": 1}, {"id": "3", "heavy": null}]}}`)))
	want, err := whole.Cost()
	require.NoError(t, err)

	node, rel := ast.Path{ast.PathName("node")}, ast.PathName("rel")
	parts := outline.Tally(nil)
	for _, payload := range []struct {
		path ast.Path
		data string
	}{
		{nil, `{"node": {"id": "1", "rel": null}}`},
		{node, `{"rel": [{"id": "2", "heavy": null}, {"id": "3", "heavy": null}]}`},
		{append(node, rel, ast.PathIndex(0)), `{"heavy": 1}`},
		{append(node, rel, ast.PathIndex(1)), `{"heavy": null}`},
	} {
		require.NoError(t, parts.AddAt(payload.path, []byte(payload.data)))
	}
	got, err := parts.Cost()
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// tallyCase prices the response of a case.
func tallyCase(t *testing.T, sections map[string]string) string {
	t.Helper()
	c := loadCase(t, sections)
	outline, err := c.estimator.Outline(c.doc, c.op)
	require.NoError(t, err)
	tally := outline.Tally(c.variables)
	if err := tally.Add([]byte(sections["response"])); err != nil {
		return "error " + err.Error() + "\n"
	}
	actual, err := tally.Cost()
	require.NoError(t, err)
	return describe(actual, nil)
}
