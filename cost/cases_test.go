package cost_test

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
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
directive @costWhen(value: String!, weight: String!) repeatable on ARGUMENT_DEFINITION | INPUT_FIELD_DEFINITION
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
	AliasWeight        float64
	Limits             cost.Shape
	// Operation is the name of the operation to price.
	Operation string
	// Raw prices the document without validating it.
	Raw bool
	// WeightType is the declared type of the weight of @cost, String by default.
	WeightType string
}

// directiveSource defines the directives; the type of weights is String unless another is given.
func directiveSource(weightType string) *ast.Source {
	return &ast.Source{Name: "directives.graphqls", Input: fmt.Sprintf(directives, cmp.Or(weightType, "String"))}
}

func loadSchema(t testing.TB, sdl, weightType string) *ast.Schema {
	t.Helper()
	schema, err := gqlparser.LoadSchema(
		directiveSource(weightType),
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

// numbers are those of a result, with the blanks that align them.
var numbers = regexp.MustCompile(`[-\d. ]+`)

// describedOtherwise says that the gqlparser in use is not the one that the numbers of introspection are of.
func describedOtherwise() bool {
	file, _ := runtime.FuncForPC(reflect.ValueOf(validator.LoadSchema).Pointer()).FileLine(0)
	return !strings.Contains(file, "gqlparser/v2@v2.5.36/")
}

// TestCases runs testdata/cases. Each file is a rule, which its name states; the text before the
// first section says more where that is needed. One with a section breakdown is explained too, and one
// with a section response, which is the data of a response, is tallied.
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
			got := answers(t, sections)
			if *update {
				before, _, _ := strings.Cut(string(text), "-- expect --\n")
				for _, name := range results {
					if answer, ok := got[name]; ok {
						before += "-- " + name + " --\n" + answer
					}
				}
				require.NoError(t, os.WriteFile(file, []byte(before), 0o644))
				return
			}
			for _, name := range results {
				want, is := sections[name], got[name]
				if strings.Contains(file, "introspection") && describedOtherwise() {
					// Other versions of gqlparser describe themselves with other fields.
					want, is = numbers.ReplaceAllString(want, " "), numbers.ReplaceAllString(is, " ")
				}
				require.Equal(t, want, is, "%s%s", head, sections["query"])
			}
		})
	}
}

// results are the sections that the estimator fills in, which stand last.
var results = []string{"expect", "breakdown", "actual"}

// answers returns the results of a case that it asks for.
func answers(t *testing.T, sections map[string]string) map[string]string {
	t.Helper()
	got := map[string]string{"expect": runCase(t, sections)}
	if _, ok := sections["breakdown"]; ok {
		got["breakdown"] = explainCase(t, sections)
	}
	if _, ok := sections["response"]; ok {
		got["actual"] = tallyCase(t, sections)
	}
	return got
}

// splitCase splits a file at its lines of the form -- name --.
func splitCase(text string) (head string, sections map[string]string) {
	sections = map[string]string{}
	name := ""
	for line := range strings.Lines(text) {
		if trimmed := strings.TrimSpace(line); strings.HasPrefix(trimmed, "-- ") && strings.HasSuffix(trimmed, " --") {
			name = strings.TrimSuffix(strings.TrimPrefix(trimmed, "-- "), " --")
			sections[name] += ""
			continue
		}
		sections[name] += line
	}
	return sections[""], sections
}

// loadedCase is a case that is ready to be priced.
type loadedCase struct {
	estimator *cost.Estimator
	doc       *ast.QueryDocument
	op        *ast.OperationDefinition
	variables map[string]any
}

func loadCase(t *testing.T, sections map[string]string) loadedCase {
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
		AliasWeight:        options.AliasWeight,
		Shape:              options.Limits,
	})
	require.NoError(t, err)
	doc := parse(t, schema, sections["query"], options.Raw)
	c := loadedCase{estimator: estimator, doc: doc, op: doc.Operations.ForName(options.Operation)}
	if text := sections["variables"]; text != "" {
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.UseNumber()
		require.NoError(t, decoder.Decode(&c.variables))
	}
	if !options.Raw && c.op != nil {
		c.variables, err = validator.VariableValues(schema, c.op, c.variables)
		require.NoError(t, err)
	}
	return c
}

func runCase(t *testing.T, sections map[string]string) string {
	t.Helper()
	c := loadCase(t, sections)
	plan, err := c.estimator.Plan(c.doc, c.op)
	if err != nil {
		return "error " + err.Error() + "\n"
	}
	price, err := plan.Evaluate(c.variables)
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
