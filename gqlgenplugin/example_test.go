package gqlgenplugin_test

import (
	"fmt"
	"os"

	"github.com/99designs/gqlgen/api"
	"github.com/99designs/gqlgen/codegen/config"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/gqlgenplugin"
)

// The generator of a server, in a main package of its own that `go generate` runs.
func Example() {
	cfg, err := config.LoadConfigFromDefaultLocations()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := api.Generate(cfg, api.AddPlugin(gqlgenplugin.New(cfg, gqlgenplugin.Config{}))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) // a mistake in a weight stops go generate
	}
}

// A schema that means something else by @cost.
func ExampleDefinitionError() {
	cfg := config.DefaultConfig()
	cfg.Sources = []*ast.Source{{Name: "shop.graphqls", Input: `
		directive @cost(complexity: Int) on FIELD_DEFINITION
		type Query { products: [String!]! @cost(complexity: 2) }`}}

	_, err := gqlgenplugin.New(cfg, gqlgenplugin.Config{}).InjectSourcesEarly()
	fmt.Println(err)
	// Output:
	// shop.graphqls:2: @cost is another directive than the one that prices operations: it has no argument weight; define it as schema.graphqls of this library does, or remove the definition
}
