package cost_test

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

func modelSchema(t testing.TB) *ast.Schema {
	t.Helper()
	return loadSchema(t, `
enum Model { SMALL LARGE HUGE }
enum Part { TEXT IMAGES VIDEO }
scalar Region
input Job { model: Model! @cost(weight: "5") @costWhen(value: "LARGE", weight: "50") parts: [Part!] @cost(weight: "1") @costWhen(value: "VIDEO", weight: "9") }
type Query {
  generate(model: Model = SMALL @cost(weight: "5") @costWhen(value: "LARGE", weight: "50") @costWhen(value: "HUGE", weight: "500")): String
  required(model: Model! @cost(weight: "5") @costWhen(value: "LARGE", weight: "50")): String
  run(job: Job!): String
  batch(jobs: [Job!]!): String
  flag(full: Boolean = false @costWhen(value: "true", weight: "8")): String
  level(n: Int @costWhen(value: "3", weight: "7"), region: Region @costWhen(value: "eu", weight: "2"), id: ID @costWhen(value: "5", weight: "4")): String
  configured(model: Model @costWhen(value: "LARGE", weight: "1")): String
}`, "")
}

var modelConfig = cost.Config{
	Weights:      map[string]float64{"Query": 0},
	ValueWeights: map[string]map[string]float64{"Query.configured(model:)": {"LARGE": 30, "HUGE": 300}},
}

// A weight may depend on the value of an argument or input field, wherever the value comes from.
func TestTheWeightOfAnArgumentFollowsItsValue(t *testing.T) {
	t.Parallel()
	schema := modelSchema(t)
	for _, tt := range []struct {
		text      string
		variables map[string]any
		want      float64
	}{
		{"{ generate }", nil, 5},
		{"{ generate(model: SMALL) }", nil, 5},
		{"{ generate(model: LARGE) }", nil, 50},
		{"{ generate(model: null) }", nil, 5},
		{"query ($m: Model) { generate(model: $m) }", map[string]any{"m": "LARGE"}, 50},
		{"query ($m: Model) { generate(model: $m) }", map[string]any{"m": nil}, 5},
		{"query ($m: Model) { generate(model: $m) }", nil, 5},
		{"query ($m: Model = LARGE) { generate(model: $m) }", nil, 50},
		{"{ a: generate(model: LARGE) b: generate(model: SMALL) }", nil, 55},
		// What a request does not tell, or not so that it can be read, has the dearest weight.
		{"query ($m: Model!) { generate(model: $m) }", nil, 500},
		{"query ($m: Model!) { required(model: $m) }", nil, 50},
		{"query ($m: Model) { generate(model: $m) }", map[string]any{"m": map[string]any{}}, 500},
		{"query ($m: Model) { generate(model: $m) }", map[string]any{"m": 3.5}, 500},
		{"query ($j: Job!) { run(job: $j) }", nil, 1 + 50},
		{"query ($j: Job!) { run(job: $j) }", map[string]any{"j": map[string]any{}}, 1 + 50},
		{"query ($j: Job!) { run(job: $j) }", map[string]any{"j": map[string]any{"model": "SMALL"}}, 1 + 5},
		{"query ($j: Job!) { run(job: $j) }", map[string]any{"j": map[string]any{"model": "LARGE", "parts": []any{"TEXT", "VIDEO"}}}, 1 + 50 + 1 + 9},
		{"{ run(job: {model: LARGE, parts: [TEXT, VIDEO, VIDEO]}) }", nil, 1 + 50 + 1 + 9 + 9},
		{"query ($p: Part!) { run(job: {model: SMALL, parts: [$p, TEXT]}) }", map[string]any{"p": "VIDEO"}, 1 + 5 + 9 + 1},
		{"{ run(job: {model: SMALL, parts: VIDEO}) }", nil, 1 + 5 + 9},
		{"{ run(job: {model: SMALL, parts: []}) }", nil, 1 + 5},
		{"query ($j: [Job!]!) { batch(jobs: $j) }", map[string]any{"j": []any{map[string]any{"model": "LARGE"}, map[string]any{"model": "SMALL"}}}, 1 + 50 + 5},
		{"{ flag }", nil, 0},
		{"{ flag(full: true) }", nil, 8},
		{"query ($f: Boolean) { flag(full: $f) }", map[string]any{"f": true}, 8},
		{"query ($f: Boolean) { flag(full: $f) }", map[string]any{"f": "TRUE"}, 8},
		{"query ($f: Boolean) { flag(full: $f) }", map[string]any{"f": int64(1)}, 8},
		{"{ level(n: 3, region: \"eu\", id: 5) }", nil, 7 + 2 + 4},
		{"{ level(n: 2, region: \"us\", id: \"6\") }", nil, 0},
		{"query ($n: Int) { level(n: $n) }", map[string]any{"n": json.Number("3")}, 7},
		{"query ($n: Int) { level(n: $n) }", map[string]any{"n": "+03"}, 7},
		{"query ($n: Int) { level(n: $n) }", map[string]any{"n": uint8(3)}, 7},
		{"query ($n: Int) { level(n: $n) }", map[string]any{"n": "three"}, 7},
		{"query ($n: Int) { level(n: $n) }", map[string]any{"n": strings.Repeat("0", 100) + "1"}, 7},
		{"query ($r: Region) { level(region: $r) }", map[string]any{"r": strings.Repeat("eu", 100)}, 0},
		{"query ($i: ID) { level(id: $i) }", map[string]any{"i": int64(5)}, 4},
		{"{ configured(model: LARGE) }", nil, 30},
		{"query ($m: Model!) { configured(model: $m) }", nil, 300},
	} {
		breakdown := requirePrice(t, schema, modelConfig, tt.text, tt.variables, cost.Cost{Field: tt.want})
		total := 0.0
		for _, entry := range breakdown.Entries {
			total += entry.Weight + entry.Arguments
		}
		require.Equal(t, tt.want, total, tt.text)

		estimator, err := cost.New(schema, withoutAliases(modelConfig))
		require.NoError(t, err)
		doc := parse(t, schema, tt.text, false)
		outline, err := estimator.Outline(doc, doc.Operations[0])
		require.NoError(t, err)
		tally := outline.Tally(tt.variables)
		data := `{"` + strings.Trim(strings.SplitN(strings.SplitN(tt.text, "{ ", 2)[1], "(", 2)[0], "{} ") + `": null}`
		if strings.Contains(tt.text, "a: ") {
			data = `{"a": "x", "b": "y"}`
		}
		require.NoError(t, tally.Add([]byte(data)), tt.text)
		actual, err := tally.Cost()
		require.NoError(t, err)
		require.Equal(t, tt.want, actual.Field, tt.text)
	}
}

func TestWrongWeightsOfValuesAreMistakes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ argument, reason string }{
		"a value that the enum does not have": {`e: E @costWhen(value: "B", weight: "1")`, "B is no value of type E"},
		"a value that is no integer":          {`n: Int @costWhen(value: "03", weight: "1")`, "03 is no value of type Int"},
		"a value that is no Boolean":          {`b: Boolean @costWhen(value: "yes", weight: "1")`, "yes is no value of type Boolean"},
		"a value of a Float":                  {`f: Float @costWhen(value: "1", weight: "1")`, "values of type Float have no weights"},
		"a value of an input object":          {`i: I @costWhen(value: "1", weight: "1")`, "values of type I have no weights"},
		"a weight that is a word":             {`e: E @costWhen(value: "A", weight: "much")`, `weight "much" of @costWhen is not a finite decimal number`},
		"a value twice":                       {`e: E @costWhen(value: "A", weight: "1") @costWhen(value: "A", weight: "2")`, "@costWhen gives the value A twice"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			schema := loadSchema(t, "enum E { A } input I { n: Int } type Query { f("+tt.argument+"): Int }", "")
			_, err := cost.New(schema, cost.Config{})
			mistakes := schemaErrors(t, err)
			require.Len(t, mistakes, 1, "%v", err)
			require.Contains(t, mistakes[0].Reason, tt.reason)
			require.True(t, strings.HasPrefix(mistakes[0].Coordinate, "Query.f("))
		})
	}
	schema := modelSchema(t)
	for coordinate, weights := range map[string]map[string]float64{
		"Query.nothing(a:)":        {"A": 1},
		"Query.configured(model:)": {"LARGE": math.NaN()},
	} {
		_, err := cost.New(schema, cost.Config{ValueWeights: map[string]map[string]float64{coordinate: weights}})
		mistakes := schemaErrors(t, err)
		require.Len(t, mistakes, 1, "%v", err)
		require.Equal(t, coordinate, mistakes[0].Coordinate)
	}
}

func TestReadingTheValuesThatHaveWeightsAllocatesNothing(t *testing.T) {
	schema := modelSchema(t)
	estimator, err := cost.New(schema, modelConfig)
	require.NoError(t, err)
	doc := parse(t, schema, "query ($m: Model, $n: Int, $f: Boolean, $j: Job!, $i: ID) { generate(model: $m) level(n: $n, id: $i) flag(full: $f) run(job: $j) }", false)
	plan, err := estimator.Compile(doc, doc.Operations[0])
	require.NoError(t, err)
	variables := map[string]any{
		"m": "LARGE", "n": int64(3), "f": true, "i": json.Number("5"),
		"j": map[string]any{"model": "LARGE", "parts": []any{"TEXT", "VIDEO"}},
	}
	price, err := plan.Evaluate(variables)
	require.NoError(t, err)
	require.Equal(t, 50.0+7+4+8+61, price.Field)
	require.Zero(t, testing.AllocsPerRun(100, plan.Again(variables)))
}

// A list in a variable is read no further than an evaluation may read.
func TestTheValuesThatHaveWeightsAreBounded(t *testing.T) {
	t.Parallel()
	schema := modelSchema(t)
	cfg := modelConfig
	cfg.MaxValues = 100
	estimator, err := cost.New(schema, cfg)
	require.NoError(t, err)
	doc := parse(t, schema, "query ($p: [Part!]) { run(job: {model: SMALL, parts: $p}) }", false)
	plan, err := estimator.Compile(doc, doc.Operations[0])
	require.NoError(t, err)
	parts := make([]any, 101)
	for i := range parts {
		parts[i] = "TEXT"
	}
	price, err := plan.Evaluate(map[string]any{"p": parts})
	require.NoError(t, err)
	require.True(t, math.IsInf(price.Field, 1))
	price, err = plan.Evaluate(map[string]any{"p": parts[:100]})
	require.NoError(t, err)
	require.Equal(t, 1.0+5+100, price.Field)
}

// weightWith is the weight of an input with a value.
func weightWith(directives ast.DirectiveList, fallback float64, value any) float64 {
	weight := weightOf(directives, fallback)
	values := directives.ForNames("costWhen")
	if list, ok := value.([]any); ok && len(values) > 0 {
		total := 0.0
		for _, element := range list {
			total += weightWith(directives, fallback, element)
		}
		return total
	}
	for _, directive := range values {
		if n, ok := value.(int64); ok && directive.Arguments.ForName("value").Value.Raw == strconv.FormatInt(n, 10) {
			weight = weightOf(ast.DirectiveList{{Name: "cost", Arguments: directive.Arguments}}, 0)
		}
	}
	return weight
}
