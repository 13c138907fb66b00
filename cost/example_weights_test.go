package cost_test

import (
	"fmt"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

// A weight may depend on an argument, by the directive @costWhen or by coordinate as here.
func ExampleConfig_valueWeights() {
	schema := gqlparser.MustLoadSchema(&ast.Source{Input: `
		enum Model { SMALL LARGE }
		type Query { generate(model: Model!, prompt: String!): String }`})
	estimator, err := cost.New(schema, cost.Config{
		Weights:      map[string]float64{"Query.generate(model:)": 5},
		ValueWeights: map[string]map[string]float64{"Query.generate(model:)": {"LARGE": 50}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	doc := gqlparser.MustLoadQueryWithRules(schema, `query ($model: Model!) { generate(model: $model, prompt: "tea") }`, nil)
	plan, err := estimator.Plan(doc, doc.Operations[0])
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, variables := range []map[string]any{{"model": "SMALL"}, {"model": "LARGE"}, nil} {
		price, _ := plan.Evaluate(variables) // no rule is set that could be broken
		fmt.Println(variables["model"], price.Field)
	}
	// Output:
	// SMALL 5
	// LARGE 50
	// <nil> 50
}

// What is unknown of the price of an operation without its variables: nothing but points, or how long lists are.
func ExampleOutline_VariableUses() {
	schema := gqlparser.MustLoadSchema(&ast.Source{Input: `
		type Query { users(first: Int!, filter: Filter): [User] }
		type User { name: String }
		input Filter { name: String }`})
	sizes := map[string]cost.ListSize{"Query.users": {SlicingArguments: []string{"first"}}}
	estimator, err := cost.New(schema, cost.Config{ListSizes: sizes})
	if err != nil {
		fmt.Println(err)
		return
	}
	doc := gqlparser.MustLoadQueryWithRules(schema, `query ($n: Int!, $f: Filter) { users(first: $n, filter: $f) { name } }`, nil)
	outline, err := estimator.Outline(doc, doc.Operations[0])
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, use := range outline.VariableUses() {
		fmt.Printf("$%s required: %v, adds points: %v, sizes lists by %v\n", use.Name, use.Required, use.Weighs, use.Sizes)
	}
	// Output:
	// $f required: false, adds points: true, sizes lists by []
	// $n required: true, adds points: false, sizes lists by [first]
}
