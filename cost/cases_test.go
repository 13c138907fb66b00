package cost_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

var update = flag.Bool("update", false, "write what the estimator says into testdata/cases")

// directives are the definitions that users bring into their schema; the type of the weight varies.
const directives = `
directive @cost(weight: %s!) on ARGUMENT_DEFINITION | ENUM | FIELD_DEFINITION | INPUT_FIELD_DEFINITION | OBJECT | SCALAR
directive @listSize(assumedSize: Int, slicingArguments: [String!], sizedFields: [String!], requireOneSlicingArgument: Boolean = true) on FIELD_DEFINITION
`

// caseOptions are the options of a case: those of the estimator, and how the case is run.
type caseOptions struct {
	DefaultListSize    int
	Weights            map[string]float64
	ListSizes          map[string]cost.ListSize
	Base               map[ast.Operation]float64
	WorkLimit          int
	RefuseOverWork     bool
	FreeFields         []string
	MaxRepresentations int
	// Operation is the name of the operation to price.
	Operation string
	// Raw prices the document without validating it.
	Raw bool
	// WeightType is the declared type of the weight of @cost, String by default.
	WeightType string
}

func loadSchema(t testing.TB, sdl, weightType string) *ast.Schema {
	t.Helper()
	if weightType == "" {
		weightType = "String"
	}
	schema, err := gqlparser.LoadSchema(
		&ast.Source{Name: "directives.graphqls", Input: fmt.Sprintf(directives, weightType)},
		&ast.Source{Name: "schema.graphqls", Input: sdl},
	)
	require.NoError(t, err)
	return schema
}

// loadShared loads a schema of testdata/schemas by name.
func loadShared(t testing.TB, name string) *ast.Schema {
	t.Helper()
	sdl, err := os.ReadFile(filepath.Join("testdata", "schemas", name+".graphqls"))
	require.NoError(t, err)
	return loadSchema(t, string(sdl), "")
}

// parse parses a query and, unless it is raw, validates it.
func parse(t testing.TB, schema *ast.Schema, query string, raw bool) *ast.QueryDocument {
	t.Helper()
	if raw {
		doc, err := parser.ParseQuery(&ast.Source{Input: query})
		require.NoError(t, err)
		return doc
	}
	doc, errs := gqlparser.LoadQueryWithRules(schema, query, nil)
	require.Empty(t, errs)
	return doc
}

// TestCases runs testdata/cases. Each file is a rule, which its name states; the text before the
// first section says more where that is needed.
func TestCases(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "cases", "*.txtar"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			head, sections := splitCase(string(text))
			got := runCase(t, sections)
			if *update {
				before, _, _ := strings.Cut(string(text), "-- expect --\n")
				require.NoError(t, os.WriteFile(file, []byte(before+"-- expect --\n"+got), 0o644))
				return
			}
			require.Equal(t, sections["expect"], got, "%s%s", head, sections["query"])
		})
	}
}

// splitCase splits a file at its lines of the form -- name --.
func splitCase(text string) (head string, sections map[string]string) {
	sections = map[string]string{}
	name := ""
	for line := range strings.Lines(text) {
		if trimmed := strings.TrimSpace(line); strings.HasPrefix(trimmed, "-- ") && strings.HasSuffix(trimmed, " --") {
			name = strings.TrimSuffix(strings.TrimPrefix(trimmed, "-- "), " --")
			continue
		}
		sections[name] += line
	}
	return sections[""], sections
}

func runCase(t *testing.T, sections map[string]string) string {
	t.Helper()
	var options caseOptions
	if text := sections["options"]; text != "" {
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.DisallowUnknownFields()
		require.NoError(t, decoder.Decode(&options))
	}
	var schema *ast.Schema
	if sdl := sections["schema"]; strings.Contains(sdl, "{") {
		schema = loadSchema(t, sdl, options.WeightType)
	} else {
		schema = loadShared(t, strings.TrimSpace(sdl))
	}
	estimator, err := cost.New(schema, cost.Config{
		DefaultListSize:    options.DefaultListSize,
		Weights:            options.Weights,
		ListSizes:          options.ListSizes,
		Base:               options.Base,
		WorkLimit:          options.WorkLimit,
		RefuseOverWork:     options.RefuseOverWork,
		FreeFields:         options.FreeFields,
		MaxRepresentations: options.MaxRepresentations,
	})
	require.NoError(t, err)
	doc := parse(t, schema, sections["query"], options.Raw)
	op := doc.Operations.ForName(options.Operation)
	plan, err := estimator.Plan(doc, op)
	if err != nil {
		return "error " + err.Error() + "\n"
	}
	var variables map[string]any
	if text := sections["variables"]; text != "" {
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.UseNumber()
		require.NoError(t, decoder.Decode(&variables))
	}
	if !options.Raw {
		variables, err = validator.VariableValues(schema, op, variables)
		require.NoError(t, err)
	}
	price, err := plan.Evaluate(variables)
	return describe(price, err)
}

// describe spells a cost as the cases do.
func describe(price cost.Cost, err error) string {
	var b strings.Builder
	fmt.Fprintf(&b, "type %s\nfield %s\n", number(price.Type), number(price.Field))
	if price.Base != 0 {
		fmt.Fprintf(&b, "base %s\n", number(price.Base))
	}
	fmt.Fprintf(&b, "points %d\n", price.Points())
	if price.Approximate {
		b.WriteString("approximate\n")
	}
	if err != nil {
		fmt.Fprintf(&b, "limit %v\n", err)
	}
	return b.String()
}

func number(x float64) string {
	if x == float64(int64(x)) {
		return fmt.Sprintf("%d", int64(x))
	}
	return fmt.Sprintf("%v", x)
}
