package cost_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

// seed calls add with the queries and variables of the cases.
func seed(f *testing.F, add func(query, variables string)) {
	f.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "cases", "*.txtar"))
	require.NoError(f, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(f, err)
		_, sections := splitCase(string(text))
		add(sections["query"], sections["variables"])
	}
	for _, document := range hostile {
		add(document(8), `{"x": true, "y": false}`)
	}
}

// FuzzCompile compiles whatever parses, without validation, merged and summed.
func FuzzCompile(f *testing.F) {
	seed(f, func(query, _ string) { f.Add(query) })
	estimator, _ := newEstimator(f, "bypass", cost.Config{WorkLimit: 5000})
	f.Fuzz(func(t *testing.T, query string) {
		doc, err := parser.ParseQuery(&ast.Source{Input: query})
		if err != nil {
			return
		}
		for _, op := range doc.Operations {
			plan, err := estimator.Compile(doc, op)
			if err != nil {
				known := errors.Is(err, cost.ErrMalformed) || errors.Is(err, cost.ErrCyclicFragment) ||
					errors.Is(err, cost.ErrTooDeep) || errors.Is(err, cost.ErrWorkLimit)
				require.True(t, known, "%v", err)
				continue
			}
			merged, _ := plan.Evaluate(nil)
			requireSane(t, merged)
			if merged.Approximate {
				continue
			}
			sum, _, err := estimator.CompileSummed(doc, op)
			require.NoError(t, err)
			summed, _ := sum.Evaluate(nil)
			requireSane(t, summed)
			require.GreaterOrEqual(t, summed.Type, merged.Type)
			require.GreaterOrEqual(t, summed.Field, merged.Field)
		}
	})
}

// FuzzEvaluate evaluates one plan that reads variables in every way with whatever JSON there is.
func FuzzEvaluate(f *testing.F) {
	seed(f, func(_, variables string) { f.Add(variables) })
	f.Add(`{"n": 1e400, "b": {"and": [{"q": null}, [], {"and": {}}]}, "f": {"nested": {"nested": []}}}`)
	f.Add(`{"n": "-9223372036854775808", "x": "yes", "y": null, "ids": {"a": [1]}}`)
	estimator, schema := newEstimator(f, "library", cost.Config{})
	doc := parse(f, schema, `query ($n: Int, $x: Boolean!, $y: Boolean!, $f: Filter, $d: Defaults, $b: Both!, $ids: [ID!]) {
		shelf(first: $n) { page { title } recent { author { name } } }
		range(first: $n) @include(if: $x) { title }
		byIDs(ids: $ids) @skip(if: $y) { author { name } }
		search(filter: $f) defaults(filter: $d) both(both: {and: [$b, {q: "x"}]})
		... @include(if: $y) { shelf(first: $n) { page { author { name } } } }
	}`, false)
	plan, err := estimator.Compile(doc, doc.Operations[0])
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, text string) {
		var variables map[string]any
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.UseNumber()
		if decoder.Decode(&variables) != nil {
			return
		}
		price, err := plan.Evaluate(variables)
		var limit *cost.LimitError
		require.True(t, err == nil || errors.As(err, &limit), "%v", err)
		requireSane(t, price)
		again, _ := plan.Evaluate(variables)
		require.Equal(t, price, again)
	})
}
