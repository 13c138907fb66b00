package cost_test

import (
	"errors"
	"fmt"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

// An operation is compiled once and priced with the variables of each request.
func Example() {
	schema := gqlparser.MustLoadSchema(&ast.Source{Input: `
		directive @cost(weight: String!) on ARGUMENT_DEFINITION | ENUM | FIELD_DEFINITION | INPUT_FIELD_DEFINITION | OBJECT | SCALAR
		directive @listSize(assumedSize: Int, slicingArguments: [String!], sizedFields: [String!], requireOneSlicingArgument: Boolean = true) on FIELD_DEFINITION

		type Query {
			search(text: String!, first: Int!): [Product] @cost(weight: "5") @listSize(slicingArguments: ["first"])
		}
		type Product {
			name: String
			reviews(first: Int = 3): [Review] @listSize(slicingArguments: ["first"])
		}
		type Review {
			body: String
		}`})
	estimator, err := cost.New(schema, cost.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	doc, errs := gqlparser.LoadQueryWithRules(schema, `
		query Search($n: Int!) {
			search(text: "tea", first: $n) { name reviews { body } }
		}`, nil)
	if errs != nil {
		fmt.Println(errs)
		return
	}
	plan, err := estimator.Plan(doc, doc.Operations[0])
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, n := range []int64{1, 10, 100} {
		price, err := plan.Evaluate(map[string]any{"n": n})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("first %d: type %v, field %v, %d points\n", n, price.Type, price.Field, price.Points())
	}
	// Output:
	// first 1: type 5, field 6, 11 points
	// first 10: type 41, field 15, 56 points
	// first 100: type 401, field 105, 506 points
}

// A schema that one does not own gets its weights and list sizes by coordinate.
func ExampleConfig() {
	schema := gqlparser.MustLoadSchema(&ast.Source{Input: `
		type Query {
			products(first: Int): [Product]
		}
		type Product {
			name: String
			price(currency: String): Float
		}`})
	estimator, err := cost.New(schema, cost.Config{
		Weights: map[string]float64{
			"Product":                  2,
			"Product.price":            1,
			"Product.price(currency:)": 0.5,
		},
		ListSizes: map[string]cost.ListSize{
			"Query.products": {SlicingArguments: []string{"first"}},
		},
		RequireListSizes: true,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	doc, errs := gqlparser.LoadQueryWithRules(schema, `{ products(first: 20) { price(currency: "EUR") } }`, nil)
	if errs != nil {
		fmt.Println(errs)
		return
	}
	plan, err := estimator.Plan(doc, doc.Operations[0])
	if err != nil {
		fmt.Println(err)
		return
	}
	price, err := plan.Evaluate(nil)
	fmt.Println(price.Type, price.Field, price.Points(), err)
	// Output: 41 31 72 <nil>
}

// Every mistake in the directives is reported, with its coordinate.
func ExampleNew_mistakes() {
	schema := gqlparser.MustLoadSchema(&ast.Source{Input: `
		directive @cost(weight: String!) on FIELD_DEFINITION
		directive @listSize(assumedSize: Int) on FIELD_DEFINITION

		type Query {
			name: String @cost(weight: "high")
			age: Int @listSize(assumedSize: 2)
		}`})
	_, err := cost.New(schema, cost.Config{})
	fmt.Println(err)
	// Output:
	// cost: Query.age: the field returns no list, and no sizedFields are given
	// cost: Query.name: weight "high" of @cost is not a finite decimal number
}

// How long lists are and how deep fields are nested can be limited beside what they cost.
func ExampleShape() {
	schema := gqlparser.MustLoadSchema(&ast.Source{Input: `
		directive @listSize(assumedSize: Int, slicingArguments: [String!], sizedFields: [String!], requireOneSlicingArgument: Boolean = true) on FIELD_DEFINITION

		type Query {
			users(first: Int!): [User] @listSize(slicingArguments: ["first"])
		}
		type User {
			name: String
			posts(first: Int!): [Post] @listSize(slicingArguments: ["first"])
		}
		type Post {
			title: String
		}`})
	estimator, err := cost.New(schema, cost.Config{Shape: cost.Shape{MaxDepth: 5, MaxListNodes: 500}})
	if err != nil {
		fmt.Println(err)
		return
	}
	doc, errs := gqlparser.LoadQueryWithRules(schema, `
		query ($n: Int!) { users(first: $n) { posts(first: 10) { title } } }`, nil)
	if errs != nil {
		fmt.Println(errs)
		return
	}
	plan, err := estimator.Plan(doc, doc.Operations[0])
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, n := range []int64{40, 50} {
		_, err := plan.Evaluate(map[string]any{"n": n})
		var limit *cost.ShapeError
		if errors.As(err, &limit) {
			fmt.Println(n, limit.Rule, limit.Given, limit.Allowed)
			continue
		}
		fmt.Println(n, err)
	}
	// Output:
	// 40 <nil>
	// 50 listNodes 550 500
}

// The calls of a field cost apart what they would cost if they were sent apart.
func ExamplePlan_Parts() {
	schema := gqlparser.MustLoadSchema(&ast.Source{Input: `type Query { search: Int @cost(weight: "20") me: Int @cost(weight: "3") } directive @cost(weight: String!) on FIELD_DEFINITION`})
	estimator, err := cost.New(schema, cost.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	doc := gqlparser.MustLoadQueryWithRules(schema, `{ search again: search me }`, nil)
	plan, err := estimator.Plan(doc, doc.Operations[0])
	if err != nil {
		fmt.Println(err)
		return
	}
	parts := plan.Parts(nil)
	searches, me := parts.Cost("Query.search"), parts.Cost("Query.me")
	fmt.Println(searches.Points(), me.Points())
	// Output: 42 4
}
