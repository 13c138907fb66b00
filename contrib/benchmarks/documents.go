package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/99designs/gqlgen/graphql/introspection"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

var (
	//go:embed testdata/schema.graphqls
	schemaText string
	//go:embed testdata/small.graphql
	smallText string
	//go:embed testdata/160_fields.graphql
	fieldsText string
	//go:embed testdata/own_variables.graphql
	ownVariablesText string
	//go:embed testdata/2000_tokens.graphql
	tokensText string
)

// directivesText declares the directives that the schema uses, in the form that all contenders read.
const directivesText = `
directive @cost(weight: String!) on ARGUMENT_DEFINITION | ENUM | FIELD_DEFINITION | INPUT_FIELD_DEFINITION | OBJECT | SCALAR
directive @listSize(assumedSize: Int, slicingArguments: [String!], sizedFields: [String!], requireOneSlicingArgument: Boolean = true) on FIELD_DEFINITION
`

// operation is one that all contenders price.
type operation struct {
	name, text string
	variables  map[string]any
}

// operations are those of the pricing tables.
var operations = []operation{
	{"160 fields with variables", fieldsText, map[string]any{"n": int64(10), "m": int64(5), "x": true}},
	{"190 fields, each list with a variable of its own", ownVariablesText, ownVariables()},
	{"2,000 tokens with variables", tokensText, map[string]any{"n": int64(10), "m": int64(5), "x": true}},
	{"small", smallText, map[string]any{"n": int64(10)}},
	{"introspection", introspection.Query, nil},
}

// ownVariables are those of 20 lists, and of the lists in them, each with a size of its own.
func ownVariables() map[string]any {
	variables := map[string]any{"x": true}
	for i := range int64(20) {
		variables[fmt.Sprintf("n%d", i)] = 10 + i
		variables[fmt.Sprintf("m%d", i)] = 5 + i
	}
	return variables
}

// json returns the variables as a client sends them.
func (o *operation) json() string {
	if o.variables == nil {
		return "{}"
	}
	// Numbers and booleans always have a JSON form.
	text, _ := json.Marshal(o.variables)
	return string(text)
}

// subject is what is priced: a schema, and the estimator for it.
type subject struct {
	schema    *ast.Schema
	estimator *cost.Estimator
}

func newSubject() (*subject, error) {
	schema, err := gqlparser.LoadSchema(&ast.Source{Name: "schema.graphqls", Input: directivesText + schemaText})
	if err != nil {
		return nil, err
	}
	estimator, err := cost.New(schema, cost.Config{})
	if err != nil {
		return nil, err
	}
	return &subject{schema: schema, estimator: estimator}, nil
}

// worst are documents that grow with n and that are meant to be dear to price.
var worst = []struct {
	name string
	// of returns a document of about n × 100 tokens; n is 1 or more.
	of func(n int) string
}{
	{"fragments that spread the next one twice", func(n int) string {
		return "{ ...f0 }" + repeat(9*n, " fragment f%[1]d on Query { ...f%[2]d ...f%[2]d }") +
			fmt.Sprintf(" fragment f%d on Query { rateLimit }", 9*n)
	}},
	{"fragments under two aliases", func(n int) string {
		return "{ ...f0 }" + repeat(5*n, " fragment f%[1]d on Query { x: a { ...f%[2]d } y: a { ...f%[2]d } }") +
			fmt.Sprintf(" fragment f%d on Query { rateLimit }", 5*n)
	}},
	{"aliases", func(n int) string { return "{" + repeat(17*n, " x%[1]d: e1 { id }") + " }" }},
	{"nesting", func(n int) string {
		// gqlparser refuses to read much deeper documents.
		return strings.Repeat("{ a ", 9*n) + "{ rateLimit }" + strings.Repeat("}", 9*n)
	}},
	{"input objects", func(n int) string {
		return `{ search(where: {all: [` + repeat(16*n, ` {name: "n%[1]d"}`) + `]}) { id } }`
	}},
	{"merged sets, nested", func(n int) string {
		return "{ ...f0 }" + repeat(6*n, " fragment f%[1]d on Query { a { ...f%[2]d x%[1]d: rateLimit } ...f%[2]d }") +
			fmt.Sprintf(" fragment f%d on Query { rateLimit }", 6*n)
	}},
}

// repeat formats n times. The format is given the index, and the next index.
func repeat(n int, format string) string {
	var b strings.Builder
	for i := range n {
		text := fmt.Sprintf(format, i, i+1)
		// A format that leaves the second out is told so.
		text, _, _ = strings.Cut(text, "%!(EXTRA")
		b.WriteString(text)
	}
	return b.String()
}
