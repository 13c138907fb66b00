package validation_test

import (
	"fmt"

	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"

	"github.com/gqlgen-ratelimit/ratelimit/validation"
)

func ExampleRules() {
	srv := handler.New(nil) // generated.NewExecutableSchema(…)
	srv.SetValidationRulesFn(validation.Rules)

	// What a server does with each document that it has not seen before.
	document, err := parser.ParseQuery(&ast.Source{Input: `{ n { s } n { s: n { s } } }`})
	if err != nil {
		panic(err)
	}
	for _, conflict := range validator.ValidateWithRules(recursive, document, validation.Rules()) {
		fmt.Println(conflict.Message)
	}
	// Output:
	// Fields "n" conflict because subfields "s" conflict because "s" and "n" are different fields. Use different aliases on the fields to fetch both if this was intentional.
}
