package validation_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"github.com/gqlgen-ratelimit/ratelimit/validation"
)

// small are documents as clients send them.
var small = map[string]string{
	"one field":        `{ s }`,
	"variables":        `query Q($n: Int) { a: of(count: $n) { s } b: of(count: 2) { n { s } } }`,
	"a fragment":       `query Q { n { ...f } } fragment f on Query { s n { s __typename } }`,
	"inline fragments": `{ n { s ... on Query { a: n { s } } } }`,
}

// sets are the two sets of rules.
var sets = map[string]func() *rules.Rules{"validation.Rules": validation.Rules, "gqlparser": rules.NewDefaultRules}

// Not parallel: the test counts the allocations of the process.
func TestSmallDocumentsAllocateNoMoreThanWithTheRulesOfGqlparser(t *testing.T) {
	for name, text := range small {
		parsed, allocations := document(t, text), map[string]float64{}
		for set, made := range sets {
			require.Empty(t, validator.ValidateWithRules(valued, parsed, made()), name)
			allocations[set] = testing.AllocsPerRun(100, func() { _ = validator.ValidateWithRules(valued, parsed, made()) })
		}
		t.Logf("%s: %v", name, allocations)
		require.LessOrEqual(t, allocations["validation.Rules"], allocations["gqlparser"], name)
	}
}

func TestErrorsHaveTheNamesOfTheirRulesInGqlparser(t *testing.T) {
	t.Parallel()
	const text = `query Q($unused: Int) { s(a: 1) none ...f ...g s: n { s } } query Q { n } fragment f on Nothing { s } fragment unused on Query { s }`
	rulesOf := func(errs gqlerror.List) []string {
		names := map[string]bool{}
		for _, err := range errs {
			names[err.Rule] = true
		}
		return slices.Sorted(maps.Keys(names))
	}
	want := rulesOf(validator.ValidateWithRules(valued, document(t, text), rules.NewDefaultRules()))
	require.Greater(t, len(want), 7)
	require.Equal(t, want, rulesOf(validator.ValidateWithRules(valued, document(t, text), validation.Rules())))
}

func BenchmarkSmallDocuments(b *testing.B) {
	for name, text := range small {
		for set, made := range sets {
			b.Run(name+"/"+set, func(b *testing.B) {
				b.ReportAllocs()
				parsed := document(b, text)
				for b.Loop() {
					_ = validator.ValidateWithRules(valued, parsed, made())
				}
			})
		}
	}
}
