package cost_test

import (
	"fmt"
	"strings"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

// An outline says which fields make an operation dear, and why.
func ExampleOutline_Explain() {
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
	doc := gqlparser.MustLoadQueryWithRules(schema, `query ($n: Int!) { search(text: "tea", first: $n) { name reviews { body } } }`, nil)
	outline, err := estimator.Outline(doc, doc.Operations[0])
	if err != nil {
		fmt.Println(err)
		return
	}
	breakdown := outline.Explain(map[string]any{"n": int64(20)}, cost.ExplainOptions{})
	for _, entry := range breakdown.Entries {
		fmt.Printf("%-16s called %v times: type %v, field %v", strings.Join(entry.Path, "."), entry.Calls, entry.Type, entry.Field)
		if entry.List != nil {
			fmt.Printf(", %v elements (%v)", entry.List.Size, entry.List)
		}
		fmt.Println()
	}
	fmt.Println(breakdown.Cost.Points(), "points")
	// Output:
	//                  called 1 times: type 1, field 0
	// search           called 1 times: type 20, field 5, 20 elements (first from $n)
	// search.reviews   called 20 times: type 60, field 20, 3 elements (first by default)
	// 106 points
}

// A tally adds up what an execution really cost.
func ExampleTally() {
	schema := gqlparser.MustLoadSchema(&ast.Source{Input: `
		directive @listSize(assumedSize: Int, slicingArguments: [String!], sizedFields: [String!], requireOneSlicingArgument: Boolean = true) on FIELD_DEFINITION

		type Query {
			products(first: Int!): [Product] @listSize(slicingArguments: ["first"])
		}
		type Product {
			name: String
			maker: Maker
		}
		type Maker {
			name: String
		}`})
	estimator, err := cost.New(schema, cost.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	doc := gqlparser.MustLoadQueryWithRules(schema, `{ products(first: 100) { name maker { name } } }`, nil)
	plan, err := estimator.Plan(doc, doc.Operations[0])
	if err != nil {
		fmt.Println(err)
		return
	}
	outline, err := estimator.Outline(doc, doc.Operations[0])
	if err != nil {
		fmt.Println(err)
		return
	}
	tally := outline.Tally(nil)
	// The catalogue has two products, one without a maker.
	err = tally.Add([]byte(`{"products": [{"name": "tea", "maker": {"name": "Ann"}}, {"name": "cup", "maker": null}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	estimate, _ := plan.Evaluate(nil)
	actual, err := tally.Cost()
	fmt.Printf("estimated %d, actual %d points, error %v\n", estimate.Points(), actual.Points(), err)
	// Output: estimated 302, actual 7 points, error <nil>
}
