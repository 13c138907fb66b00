package validation_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"
	"pgregory.net/rapid"

	_ "github.com/gqlgen-ratelimit/ratelimit/internal/seed"
	"github.com/gqlgen-ratelimit/ratelimit/validation"
)

// similar is a schema whose types have fields of the same names, of which some may be merged and some not.
const similar = `
type Query { a: A b: B n: Node u: Any list: [A!] }
interface Node { id: ID! n: Node x(p: Int): Int }
interface Named { id: ID! name: String! n: Node }
union Any = A | B | C
enum E { ONE TWO }
type A implements Node & Named { id: ID! n: Node x(p: Int): Int name: String! y: Int z: [Int] a: A u: Any e: E }
type B implements Node & Named { id: ID! n: Node x(p: Int): Int name: String! y: String z: [Int!] a: B u: Any e: String }
type C implements Node { id: ID! n: Node x(p: Int): Int y: Int! z: Int a: [A] u: Any e: E }
`

var similarSchema = gqlparser.MustLoadSchema(&ast.Source{Input: similar})

// author writes documents at random.
type author struct {
	*rand.Rand

	fragments []string
	text      strings.Builder
}

func (a *author) one(of ...string) string { return of[a.IntN(len(of))] }

// document returns a text whose fields exist and whose fragments are used, acyclic and possible.
func (a *author) document() string {
	a.text.Reset()
	for i := range a.IntN(4) {
		a.fragments = append(a.fragments, a.one("A", "B", "C", "Node", "Query")+strconv.Itoa(i))
	}
	fragments := a.fragments
	a.text.WriteString("{")
	for i, f := range fragments {
		// All are used.
		if typeOf(f) == "Query" {
			fmt.Fprintf(&a.text, " ...F%s", f)
		} else {
			fmt.Fprintf(&a.text, " k%d: n { ...F%s }", i, f)
		}
	}
	a.set("Query", 3)
	a.text.WriteString("}")
	for i, f := range fragments {
		fmt.Fprintf(&a.text, " fragment F%s on %s {", f, typeOf(f))
		// What stands after it in the list it may spread.
		a.fragments = fragments[i+1:]
		a.set(typeOf(f), 2)
		a.text.WriteString("}")
	}
	a.fragments = nil
	return a.text.String()
}

// typeOf is the type of a fragment, whose name ends with its number.
func typeOf(fragment string) string { return fragment[:len(fragment)-1] }

// set writes some selections of a type.
func (a *author) set(on string, deep int) {
	a.text.WriteString(" __typename")
	for range 1 + a.IntN(4) {
		a.selection(on, deep)
	}
}

func (a *author) selection(on string, deep int) {
	possible := map[string][]string{
		"Query": {"Query"}, "A": {"A", "Node", "Named", "Any"}, "B": {"B", "Node", "Named", "Any"}, "C": {"C", "Node", "Any"},
		"Node": {"A", "B", "C", "Node", "Named", "Any"}, "Named": {"A", "B", "Node", "Named", "Any"},
		"Any": {"A", "B", "C", "Node", "Named", "Any"},
	}[on]
	switch k := a.IntN(10); {
	case k == 0 && len(a.fragments) > 0:
		f := a.fragments[a.IntN(len(a.fragments))]
		if slices.Contains(possible, typeOf(f)) {
			fmt.Fprintf(&a.text, " ...F%s", f)
		}
	case k <= 2 && deep > 0:
		to := a.one(possible...)
		fmt.Fprintf(&a.text, " ... on %s {", to)
		a.set(to, deep-1)
		a.text.WriteString("}")
	default:
		a.field(on, deep)
	}
}

func (a *author) field(on string, deep int) {
	definition := similarSchema.Types[on]
	if len(definition.Fields) == 0 {
		return
	}
	field := definition.Fields[a.IntN(len(definition.Fields))]
	below := similarSchema.Types[field.Type.Name()]
	if strings.HasPrefix(field.Name, "__") || below.IsCompositeType() && deep == 0 {
		return
	}
	a.text.WriteString(" ")
	if a.IntN(3) == 0 {
		a.text.WriteString(a.one("p", "q", "x", "y", "a", "id") + ": ")
	}
	a.text.WriteString(field.Name)
	if len(field.Arguments) > 0 && a.IntN(2) == 0 {
		a.text.WriteString(a.one("(p: 1)", "(p: 2)", "(p: null)"))
	}
	if below.IsCompositeType() {
		a.text.WriteString(" {")
		a.set(below.Name, deep-1)
		a.text.WriteString("}")
	}
}

// validate returns what the rules say of a text.
func validate(t require.TestingT, schema *ast.Schema, text string, by *rules.Rules) gqlerror.List {
	document, err := parser.ParseQuery(&ast.Source{Input: text})
	require.NoError(t, err, text)
	return validator.ValidateWithRules(schema, document, by)
}

// inlined returns what gqlparser says of a text whose fragments are written out where they are spread.
func inlined(t require.TestingT, text string) gqlerror.List {
	document, err := parser.ParseQuery(&ast.Source{Input: text})
	require.NoError(t, err)
	for _, operation := range document.Operations {
		operation.SelectionSet = writtenOut(document, operation.SelectionSet)
	}
	document.Fragments = nil
	return validator.ValidateWithRules(similarSchema, document, rules.NewRules(rules.OverlappingFieldsCanBeMergedRule))
}

func writtenOut(document *ast.QueryDocument, set ast.SelectionSet) ast.SelectionSet {
	var all ast.SelectionSet
	for _, selection := range set {
		switch s := selection.(type) {
		case *ast.Field:
			field := *s
			field.SelectionSet = writtenOut(document, s.SelectionSet)
			all = append(all, &field)
		case *ast.InlineFragment:
			fragment := *s
			fragment.SelectionSet = writtenOut(document, s.SelectionSet)
			all = append(all, &fragment)
		case *ast.FragmentSpread:
			fragment := document.Fragments.ForName(s.Name)
			all = append(all, &ast.InlineFragment{
				TypeCondition: fragment.TypeCondition, SelectionSet: writtenOut(document, fragment.SelectionSet), Position: s.Position,
			})
		}
	}
	return all
}

// documentsPerCheck is how many documents each check of rapid writes: 2 500 in make test, and -rapid.checks=2000 makes 100 000.
const documentsPerCheck = 50

func TestRandomDocumentsHaveTheVerdictOfGqlparser(t *testing.T) {
	t.Parallel()
	documents, conflicts, missed := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		a := author{Rand: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))}
		for range documentsPerCheck {
			text := a.document()
			want, got := validate(t, similarSchema, text, rules.NewDefaultRules()), validate(t, similarSchema, text, validation.Rules())
			if len(want) == 0 && len(got) > 0 {
				// gqlparser has one memory of the fragments that it has compared, in which those of nested fields stand beside
				// those of the field above: some conflicts escape it, which it finds where there are no fragments.
				want = inlined(t, text)
				missed++
			}
			require.Equalf(t, len(want) > 0, len(got) > 0, "%s\ngqlparser: %v\nhere: %v", text, want, got)
			for _, e := range want {
				require.Equal(t, validation.OverlappingFieldsCanBeMerged.Name, e.Rule, text)
			}
			documents++
			conflicts += min(1, len(want))
		}
	})
	t.Logf("%d of %d documents have conflicts, of which gqlparser misses %d unless fragments are written out", conflicts, documents, missed)
	require.Less(t, missed, 1+documents/500)
	require.Greater(t, conflicts, documents/10)
	require.Less(t, conflicts, documents*9/10)
}

// TestAConflictIsFoundWhereGqlparserHasForgottenAFragment has a document of which a search of random ones found that gqlparser
// takes it for valid.
func TestAConflictIsFoundWhereGqlparserHasForgottenAFragment(t *testing.T) {
	t.Parallel()
	const text = `{ k0: n { ...FNode0 } k1: n { ...FA1 } k2: n { ...FNode2 }
		p: a { __typename ... on Node { ...FNode0 n { x ...FA1 } ... on Any { ...FNode0 } } ...FA1 } }
		fragment FNode0 on Node { n { ...FNode2 } }
		fragment FA1 on A { n { x(p: null) } }
		fragment FNode2 on Node { n { q: id } }`
	require.NotEmpty(t, inlined(t, text))
	require.NotEmpty(t, validate(t, similarSchema, text, validation.Rules()))
	t.Logf("gqlparser: %v", validate(t, similarSchema, text, rules.NewDefaultRules()))
}
