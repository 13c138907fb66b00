package main

import (
	"slices"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/pricing"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/report"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/source"
)

const diffHelp = `
Usage: gqlratelimit diff -old FILE|DIR -new FILE|DIR [flags] OPERATIONS...

Prices operations under two versions of a schema and prints which became dearer, and by
which calls. OPERATIONS, their variables and -config are as for gqlratelimit cost; the
configuration holds for both versions.

The exit code is 1 if the price of an operation rises by more than -max-rise, which is 10%
unless given, or if an operation that a server accepts under the old version does not fit the
new one or is refused under it, or if a file of operations cannot be read or parsed.

Example, for continuous integration:

    git show origin/main:schema.graphqls > /tmp/old.graphqls
    gqlratelimit diff -old /tmp/old.graphqls -new schema.graphqls -max-rise 10% queries/
`

// runDiff is the sub-command diff.
func runDiff(c cli.Console, args []string) error {
	var (
		oldSchemas, newSchemas cli.Paths
		inputs                 pricingInputs
		changes                report.Changes
		maxRise                string
		asJSON                 bool
	)
	flags := c.NewFlags("diff", diffHelp)
	flags.Var(&oldSchemas, "old", "`file` or directory of the old schema; can be given several times")
	flags.Var(&newSchemas, "new", "`file` or directory of the new schema; can be given several times")
	inputs.register(flags)
	flags.StringVar(&maxRise, "max-rise", "10%", "fail if a price rises by more than this `share`, such as 10% or 0.1")
	cli.JSONVar(flags, &asJSON)
	operands, err := cli.Parse(flags, args)
	switch {
	case err != nil:
		return err
	case len(oldSchemas) == 0 || len(newSchemas) == 0:
		return cli.Usagef("two schemas are needed: say -old FILE -new FILE")
	case len(operands) == 0:
		return cli.Usagef("no operations are given: name files or directories")
	}
	if changes.MaxRise, err = cli.ParseShare("max-rise", maxRise); err != nil {
		return err
	}

	if err := compare(&changes, inputs, [2]cli.Paths{oldSchemas, newSchemas}, operands); err != nil {
		return err
	}
	report.SortByRise(changes.List)
	return changes.Write(c, asJSON)
}

// compare prices the operations under the old and the new schema.
func compare(changes *report.Changes, inputs pricingInputs, files [2]cli.Paths, operands []string) error {
	cfg, variables, err := inputs.load()
	if err != nil {
		return err
	}
	var schemas [2]*source.Schema
	for i := range files {
		if schemas[i], err = source.LoadSchema(files[i]); err != nil {
			return err
		}
	}
	operations, broken, err := source.LoadOperations(operands, slices.Concat(files[0], files[1]))
	if err != nil {
		return err
	}
	changes.Broken = broken
	var results [2][]pricing.Result
	for i, schema := range schemas {
		if results[i], err = price(schema, cfg, variables, operations); err != nil {
			return err
		}
	}
	for i := range operations {
		changes.List = append(changes.List, pricing.Change{Old: results[0][i], New: results[1][i]})
	}
	return nil
}
