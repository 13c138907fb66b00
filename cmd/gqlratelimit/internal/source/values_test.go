package source_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/source"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

func TestTheVariablesOfAnOperationBeatThoseOfItsFile(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{
		"queries.graphql":            "query A($a: Int $b: Int $c: Int $d: Int) { a } query B($a: Int) { a }",
		"shared.json":                `{"a": 1, "b": 1, "c": 1, "d": 1, "unknown": 1}`,
		"queries.variables.json":     `{"b": 2, "c": 2, "d": 2}`,
		"A.variables.json":           `{"c": 3, "d": 3}`,
		"elsewhere/A.variables.json": `{"d": 4}`,
	})
	operations, _, err := source.LoadOperations([]string{filepath.Join(dir, "queries.graphql")}, nil)
	require.NoError(t, err)

	shared, err := source.LoadVariables(filepath.Join(dir, "shared.json"))
	require.NoError(t, err)
	values, err := shared.Of(operations[0])
	require.NoError(t, err)
	require.Equal(t, map[string]any{"a": json.Number("1"), "b": json.Number("2"), "c": json.Number("3"), "d": json.Number("3")}, values)

	elsewhere, err := source.LoadVariables(filepath.Join(dir, "elsewhere"))
	require.NoError(t, err)
	values, err = elsewhere.Of(operations[0])
	require.NoError(t, err)
	require.Equal(t, map[string]any{"b": json.Number("2"), "c": json.Number("3"), "d": json.Number("4")}, values)
}

func TestRequiredVariablesWithoutAValueAreNamedAndOthersCoerced(t *testing.T) {
	t.Parallel()
	schema := load(t, "type Query { a(x: Int, y: [Int!]): Int }")
	dir := write(t, map[string]string{"a.graphql": "query A($x: Int!, $d: Int! = 7, $y: [Int!], $o: Int) { a(x: $x, y: $y) }"})
	operations, _, err := source.LoadOperations([]string{dir}, nil)
	require.NoError(t, err)
	doc, err := operations[0].Document()
	require.NoError(t, err)
	for _, variable := range doc.Operations[0].VariableDefinitions {
		variable.Definition = schema.Types[variable.Type.Name()]
	}
	values, missing, err := source.Coerce(schema, operations[0], map[string]any{"y": json.Number("3")})
	require.NoError(t, err)
	require.Equal(t, []string{"x"}, missing)
	require.Len(t, values, 2)
	require.Len(t, values["y"], 1, "one value is a list of one")

	_, _, err = source.Coerce(schema, operations[0], map[string]any{"x": "many"})
	require.ErrorContains(t, err, "a.graphql:1:1: the variables of A do not fit")
}

// Opening a pipe, or a terminal, that lies where variables are looked for would wait for ever.
func TestVariablesThatNobodyNamedAreReadFromRegularFilesOnly(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{"a.graphql": "query A($x: Int) { a(x: $x) }"})
	operations, _, err := source.LoadOperations([]string{dir}, nil)
	require.NoError(t, err)
	variables, err := source.LoadVariables("")
	require.NoError(t, err)
	_, err = variables.Of(operations[0])
	require.NoError(t, err, "there are none")
	require.NoError(t, os.Symlink(os.DevNull, filepath.Join(dir, "A.variables.json")))
	_, err = variables.Of(operations[0])
	require.ErrorContains(t, err, "A.variables.json: is no regular file")
}

func TestVariablesThatAreNoObjectAreRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{\n\"a\": 1,\n}": "v.json:3: ",
		"[1]":             "cannot unmarshal array",
		"null":            "null is no object",
		"{} {}":           "something follows",
		"":                "EOF",
	} {
		_, err := source.LoadVariables(filepath.Join(write(t, map[string]string{"v.json": text}), "v.json"))
		require.ErrorContains(t, err, want, text)
	}
}

func TestAConfigurationIsReadAsTheLibraryHasIt(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{"c.yaml": `
defaultListSize: 5
weights: {Query.a: 2.5}
valueWeights: {"Query.a(m:)": {LARGE: 7}}
listSizes:
  Query.b: {slicingArguments: [first], sizedFields: [nodes], requireOneSlicingArgument: false}
  Query.c: {assumedSize: 3}
connections: {slicingArguments: [first, last], sizedFields: [nodes]}
requireListSizes: true
base: {mutation: 3}
freeFields: [Query.limit]
workLimit: 7
refuseOverWork: true
maxRepresentations: 8
maxValues: 9
aliasWeight: 0.5
shape: {maxDepth: 1, maxIntrospectionDepth: 2, maxAliases: 3, maxRootFields: 4, maxDirectives: 5, maxListNodes: 6}
`, "empty.yaml": "# nothing\n"})
	cfg, err := source.LoadConfig(filepath.Join(dir, "c.yaml"))
	require.NoError(t, err)
	three, no := 3, false
	require.Equal(t, cost.Config{
		DefaultListSize: 5,
		Weights:         map[string]float64{"Query.a": 2.5},
		ValueWeights:    map[string]map[string]float64{"Query.a(m:)": {"LARGE": 7}},
		ListSizes: map[string]cost.ListSize{
			"Query.b": {SlicingArguments: []string{"first"}, SizedFields: []string{"nodes"}, RequireOneSlicingArgument: &no},
			"Query.c": {AssumedSize: &three},
		},
		Connections:        cost.Connections{SlicingArguments: []string{"first", "last"}, SizedFields: []string{"nodes"}},
		RequireListSizes:   true,
		Base:               map[ast.Operation]float64{ast.Mutation: 3},
		FreeFields:         []string{"Query.limit"},
		WorkLimit:          7,
		RefuseOverWork:     true,
		MaxRepresentations: 8,
		MaxValues:          9,
		AliasWeight:        0.5,
		Shape: cost.Shape{
			MaxDepth: 1, MaxIntrospectionDepth: 2, MaxAliases: 3, MaxRootFields: 4, MaxDirectives: 5, MaxListNodes: 6,
		},
	}, cfg)
	for fields, i := reflect.ValueOf(cfg), 0; i < fields.NumField(); i++ {
		name := fields.Type().Field(i).Name
		if name == "Complexity" || name == "PlanCacheSize" {
			continue // A file has no functions, and nothing is asked for twice.
		}
		require.False(t, fields.Field(i).IsZero(), "a field that changes prices can be given: %s", name)
	}

	_, err = source.LoadConfig(filepath.Join(dir, "empty.yaml"))
	require.NoError(t, err)
}

func TestAMistakeInAConfigurationHasItsLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"base: {query: 1}\nweights: 3":        "c.yaml:2: the configuration is not valid: cannot unmarshal",
		"listSizes:\n  Query.a: {assumed: 3}": "c.yaml:2: the configuration is not valid: field assumed not found in type source.listSize",
		"listSizes: {Query.a: many}":          "c.yaml:1: the configuration is not valid: cannot unmarshal",
		"base: {query: much}":                 "c.yaml:1: the configuration is not valid: cannot unmarshal",
		"workLimit: 1\nweight: {}":            "c.yaml:2: the configuration is not valid: field weight not found",
		"weights:\n  Query.a: heavy":          "c.yaml:2: the configuration is not valid: cannot unmarshal",
		"weights: {a: 1":                      "c.yaml:1: the configuration is not valid: ",
		"a: &a [*a, *a]\nweights: {b: *a}":    "the configuration is not valid",
	} {
		_, err := source.LoadConfig(filepath.Join(write(t, map[string]string{"c.yaml": text}), "c.yaml"))
		require.ErrorContains(t, err, want, text)
	}
}

func TestCoordinatesAreFoundInTheSchema(t *testing.T) {
	t.Parallel()
	schema := load(t, "directive @d(x: Int) on FIELD\ntype Query {\n  a(\n    x: Int\n  ): Int\n}")
	for coordinate, line := range map[string]int{"Query": 2, "Query.a": 3, "Query.a(x:)": 4, "Query.a(y:)": 3, "@d(x:)": 1} {
		require.Equal(t, line, source.Locate(schema, coordinate).Line, coordinate)
	}
	for _, coordinate := range []string{"", "Nothing", "Query.b", "@e(x:)", "Config.Base"} {
		require.Nil(t, source.Locate(schema, coordinate), coordinate)
	}
}
