package validation_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"github.com/gqlgen-ratelimit/ratelimit/validation"
)

// introspection are the rules of introspection alone.
func introspection(t testing.TB, text string) (gqlparser, here int) {
	t.Helper()
	count := func(rule string, by *rules.Rules) int {
		parsed, err := parser.ParseQuery(&ast.Source{Input: text})
		require.NoError(t, err, text)
		n := 0
		for _, e := range validator.ValidateWithRules(recursive, parsed, by) {
			if e.Rule == rule {
				n++
			}
		}
		return n
	}
	return count(rules.MaxIntrospectionDepth.Name, rules.NewRules(rules.MaxIntrospectionDepth)),
		count(validation.MaxIntrospectionDepth.Name, rules.NewRules(validation.MaxIntrospectionDepth))
}

// doubling is a document of which each fragment spreads the next one twice.
func doubling(n int, last string) string {
	var b strings.Builder
	b.WriteString("{__schema{types{...F0}}}")
	for i := range n {
		fmt.Fprintf(&b, " fragment F%d on __Type{...F%d ...F%d}", i, i+1, i+1)
	}
	fmt.Fprintf(&b, " fragment F%d on __Type{%s}", n, last)
	return b.String()
}

// gqlparser takes 2¹⁰⁰ steps for the first of these documents: without the rule of this package the test does not end.
func TestFragmentsThatSpreadTheNextOneTwiceAreReadOnce(t *testing.T) {
	t.Parallel()
	for last, refused := range map[string]bool{"name": false, "fields{type{fields{type{fields{name}}}}}": true} {
		parsed, err := parser.ParseQuery(&ast.Source{Input: doubling(100, last)})
		require.NoError(t, err)
		errs := validator.ValidateWithRules(recursive, parsed, validation.Rules())
		require.Equal(t, refused, len(errs) == 1, "%v", errs)
	}
}

// selectionsOf writes selections of a type of introspection; fragments are those that it may spread.
func selectionsOf(r *rand.Rand, b *strings.Builder, fragments []int, deep int) {
	b.WriteString("{name")
	for range 1 + r.IntN(3) {
		switch k := r.IntN(6); {
		case k == 0 && len(fragments) > 0:
			fmt.Fprintf(b, " ...F%d", fragments[r.IntN(len(fragments))])
		case k == 1 && deep > 0:
			b.WriteString(" ...on __Type")
			selectionsOf(r, b, fragments, deep-1)
		case k <= 3 && deep > 0:
			b.WriteString(" " + []string{"interfaces", "possibleTypes", "ofType"}[r.IntN(3)])
			selectionsOf(r, b, fragments, deep-1)
		case deep > 0:
			b.WriteString(" " + []string{"fields", "inputFields"}[r.IntN(2)] + "{name type")
			selectionsOf(r, b, fragments, deep-1)
			b.WriteString("}")
		}
	}
	b.WriteString("}")
}

func TestTheDepthOfIntrospectionHasTheVerdictOfGqlparser(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	refused := 0
	const documents = 3000
	for range documents {
		var b strings.Builder
		fragments := []int{0, 1, 2, 3}[:r.IntN(5)]
		b.WriteString("{__schema{types")
		selectionsOf(r, &b, fragments, 2)
		b.WriteString("} __type(name:\"Query\")")
		selectionsOf(r, &b, fragments, 2)
		b.WriteString("}")
		for i := range fragments {
			fmt.Fprintf(&b, " fragment F%d on __Type", i)
			selectionsOf(r, &b, fragments[i+1:], 1)
		}
		want, got := introspection(t, b.String())
		require.Equal(t, want, got, b.String())
		refused += min(1, want)
	}
	require.Greater(t, refused, documents/10)
	require.Less(t, refused, documents*9/10)
}
