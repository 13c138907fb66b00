package main

import (
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/report"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/source"
)

const costHelp = `
Usage: gqlratelimit cost -schema FILE|DIR [-schema ...] [flags] OPERATIONS...

Prints what each operation costs and which calls make it so, the dearest first.

OPERATIONS are files, or directories that are searched for *.graphql and *.gql. A file can
hold several operations, and a fragment can stand in any of the files. The schema may lack
the definitions of @cost and @listSize; they are added.

Variables are read from JSON files beside the operations: Search.variables.json for the
operation Search, queries.variables.json for all operations in queries.graphql. An optional
variable without a value is absent, or has its default. A required input without a value is
priced with what its type requires, a required Boolean with the dearer value. If a required
variable without a value decides how long a list is, the operation is priced as if it were not
given: that is no upper bound, and with -max-cost the operation fails.

-config prices a schema without directives: docs/reference/command.md shows such a file.

The exit code is 1 if an operation is above -max-cost or may be, does not fit the schema, or
is one that a server refuses, or if a file cannot be read or parsed: the others are priced.

Examples:

    gqlratelimit cost -schema schema.graphqls queries/
    gqlratelimit cost -schema schema.graphqls -max-cost 500 -top 10 queries/
    gqlratelimit cost -schema schema.graphqls -json queries/ | jq '.operations[].points'
`

// runCost is the sub-command cost.
func runCost(c cli.Console, args []string) error {
	var (
		schemas cli.Paths
		inputs  pricingInputs
		costs   report.Costs
		asJSON  bool
	)
	flags := c.NewFlags("cost", costHelp)
	flags.Var(&schemas, "schema", "`file` or directory of the schema; can be given several times")
	inputs.register(flags)
	flags.Int64Var(&costs.MaxCost, "max-cost", 0, "fail if an operation costs more `points`; 0 for no maximum")
	flags.IntVar(&costs.Top, "top", 0, "show only the `N` dearest operations; 0 for all")
	flags.IntVar(&costs.Calls, "calls", 5, "show the `N` dearest calls of each operation in the table")
	cli.JSONVar(flags, &asJSON)
	operands, err := cli.Parse(flags, args)
	switch {
	case err != nil:
		return err
	case len(schemas) == 0:
		return cli.Usagef("no schema is given: say -schema FILE")
	case len(operands) == 0:
		return cli.Usagef("no operations are given: name files or directories")
	case costs.MaxCost < 0 || costs.Top < 0 || costs.Calls < 0:
		return cli.Usagef("-max-cost, -top and -calls are not negative")
	}

	cfg, variables, err := inputs.load()
	if err != nil {
		return err
	}
	schema, err := source.LoadSchema(schemas)
	if err != nil {
		return err
	}
	operations, broken, err := source.LoadOperations(operands, schemas)
	if err != nil {
		return err
	}
	costs.Broken = broken
	if costs.Results, err = price(schema, cfg, variables, operations); err != nil {
		return err
	}
	report.SortByPrice(costs.Results)
	return costs.Write(c, asJSON)
}
