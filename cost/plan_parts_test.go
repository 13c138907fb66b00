package cost_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
	"pgregory.net/rapid"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

// only returns the document with those of its root fields alone that keep names: what its parts are if they are sent by themselves.
func (d document) only(keep map[string]bool) document {
	var filter func(set []selection) []selection
	filter = func(set []selection) []selection {
		var kept []selection
		for _, s := range set {
			name := s.head
			if _, called, aliased := strings.Cut(name, ": "); aliased {
				name = called
			}
			name, _, _ = strings.Cut(name, "(")
			var spread int
			switch _, err := fmt.Sscanf(s.head, "...F%d", &spread); {
			case err == nil:
				kept = append(kept, selection{"... on Query", s.where, filter(d.fragments[spread].set)})
			case strings.HasPrefix(s.head, "... on"):
				kept = append(kept, selection{s.head, s.where, filter(s.below)})
			case keep["Query."+name]:
				kept = append(kept, s)
			}
		}
		if len(kept) == 0 {
			return []selection{{head: "__typename"}}
		}
		return kept
	}
	return document{header: d.header, set: filter(d.set), fragments: d.fragments}
}

func TestAPartCostsWhatItWouldAsAnOperationOfItsOwn(t *testing.T) {
	t.Parallel()
	signed := map[string]float64{"Query": -2, "Item": -3, "User": 2, "Query.a": 4, "Item.rel": -2, "Item.heavy": 7, "User.posts": 5, "Edge": -1}
	for name, config := range map[string]cost.Config{"directives": {}, "signed": {Weights: signed, AliasWeight: cost.None}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			estimator, _ := newEstimator(t, "bypass", config)
			rapid.Check(t, func(t *rapid.T) {
				d := drawDocument(t)
				_, plan := compileText(t, estimator, d.String())
				if len(plan.RootFields()) < 2 {
					t.Skip("the part is the whole")
				}
				field, variables := rapid.SampledFrom(plan.RootFields()).Draw(t, "field"), drawVariables(t)
				only := d.only(map[string]bool{field: true})
				_, alone := compileText(t, estimator, only.String())
				want, err := alone.Evaluate(variables)
				require.NoError(t, err)
				parts := plan.Parts(variables)
				got := parts.Cost(field)
				require.InDelta(t, want.Type, got.Type, 1e-9, "%s\n%s", d, only)
				require.InDelta(t, want.Field, got.Field, 1e-9, "%s\n%s", d, only)
				require.Equal(t, want.Base, got.Base)
			})
		})
	}
}

func TestWhereSelectionsAreSummedEachPartCostsTheWhole(t *testing.T) {
	t.Parallel()
	estimator, _ := newEstimator(t, "bypass", cost.Config{})
	doc, err := parser.ParseQuery(&ast.Source{Input: `query ($m: Int!) { users(first: $m) { id } e1 { id } }`})
	require.NoError(t, err)
	plan, _, err := estimator.CompileSummed(doc, doc.Operations[0])
	require.NoError(t, err)
	variables := map[string]any{"m": 5}
	whole, err := plan.Evaluate(variables)
	require.NoError(t, err)
	parts := plan.Parts(variables)
	require.Equal(t, whole, parts.Cost("Query.e1"))
}

func TestAPartIsFreeWhereAllOfItsFieldsAre(t *testing.T) {
	t.Parallel()
	schema := loadSchema(t, "type Query { me: String, list(first: Int): [Int] @listSize(slicingArguments: [\"first\"]), rateLimit: Int }", "")
	estimator, err := cost.New(schema, cost.Config{Weights: map[string]float64{"Query.list": 5}})
	require.NoError(t, err)
	doc := parse(t, schema, "{ rateLimit me list(first: 3) __typename }", false)
	plan, err := estimator.Plan(doc, doc.Operations[0])
	require.NoError(t, err)
	parts := plan.Parts(nil)
	for field, points := range map[string]int64{"Query.rateLimit": 0, "Query.me": 1, "Query.list": 6} {
		alone := parts.Cost(field)
		require.Equal(t, points, alone.Points(), field)
	}

	single := parse(t, schema, "{ a: list(first: 3) b: list(first: 4) }", false)
	plan, err = estimator.Plan(single, single.Operations[0])
	require.NoError(t, err)
	parts = plan.Parts(nil)
	whole := parts.Cost("Query.list")
	require.EqualValues(t, 12, whole.Points(), "two aliases are two calls, and the second pays for being one")
}

func TestAPartThatReadsTooMuchIsInfinite(t *testing.T) {
	t.Parallel()
	schema := loadSchema(t, "input Page { first: Int @cost(weight: 1) } type Query { paged(page: [Page]): Int, list: Int }", "")
	estimator, err := cost.New(schema, cost.Config{MaxValues: 10, Weights: map[string]float64{"Query.list": 1}})
	require.NoError(t, err)
	doc := parse(t, schema, "query ($p: [Page]) { paged(page: $p) list }", false)
	plan, err := estimator.Plan(doc, doc.Operations[0])
	require.NoError(t, err)
	many := make([]any, 100)
	for i := range many {
		many[i] = map[string]any{"first": 1}
	}
	parts := plan.Parts(map[string]any{"p": many})
	require.EqualValues(t, cost.MaxPoints, parts.Cost("Query.list").Points(), "whichever call it was")
	parts = plan.Parts(map[string]any{"p": many[:2]})
	require.EqualValues(t, 2, parts.Cost("Query.list").Points())
}
