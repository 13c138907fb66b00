package main

import (
	_ "embed"
	"encoding/json"
	"fmt"

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
