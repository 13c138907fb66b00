package main

import (
	"slices"

	"github.com/gqlgen-ratelimit/ratelimit/bucket/doctor"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/lint"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/pricing"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/report"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/source"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

const lintHelp = `
Usage: gqlratelimit lint -schema FILE|DIR [-schema ...] [flags] [OPERATIONS...]

Reports what is wrong, missing or useless in the directives that price a schema:

    error    invalid              a directive, or the configuration, is wrong; the server does not start
    warning  unsized-list         nothing says how long a list is
    warning  repeated-field       a field that its type defines twice in the same way; the second is dropped
    warning  useless-list-size    @listSize on a field of an interface, missing on its object types
    warning  unread-file          a file of operations that cannot be read or parsed
    warning  unpriced-operation   an operation that does not fit the schema
    note     useless-list-size    @listSize without an effect
    note     useless-weight       @cost with the weight that holds without it
    note     unused-assumed-size  an assumedSize that something else always beats
    note     overridden           a directive that -config replaces
    note     dominant-field       a field that makes up most of the cost

With OPERATIONS a field is dominant if it makes up more than -dominant of what they cost
together. Without, each root field is priced with all that can be selected below it without
arguments, three levels deep, and compared with the others.

The exit code is 1 if something is found that is at least as bad as -fail-on.

Example:

    gqlratelimit lint -schema schema.graphqls -fail-on note queries/
`

// runLint is the sub-command lint.
func runLint(c cli.Console, args []string) error {
	var (
		schemas  cli.Paths
		inputs   pricingInputs
		dominant string
		failOn   string
		asJSON   bool
	)
	flags := c.NewFlags("lint", lintHelp)
	flags.Var(&schemas, "schema", "`file` or directory of the schema; can be given several times")
	inputs.register(flags)
	flags.StringVar(&dominant, "dominant", "50%", "the `share` of the cost from which on a field is dominant")
	flags.StringVar(&failOn, "fail-on", string(doctor.Warning), "fail on findings of this `severity`: error, warning or note")
	flags.BoolVar(&asJSON, "json", false, "write JSON (docs/reference/command.md describes the format)")
	operands, err := cli.Parse(flags, args)
	if err != nil {
		return err
	}
	findings := report.Findings{FailOn: doctor.Severity(failOn)}
	share, err := cli.ParseShare("dominant", dominant)
	switch {
	case err != nil:
		return err
	case len(schemas) == 0:
		return cli.Usagef("no schema is given: say -schema FILE")
	case findings.FailOn != doctor.Error && findings.FailOn != doctor.Warning && findings.FailOn != doctor.Note:
		return cli.Usagef("-fail-on %q is none of error, warning and note", failOn)
	}

	if findings.List, err = inspect(c, schemas, operands, inputs, share); err != nil {
		return err
	}
	if asJSON {
		err = findings.WriteJSON(c.Stdout)
	} else {
		err = findings.Write(c.Stdout, report.StyleFor(c.Stdout, c.Getenv))
	}
	if err == nil && findings.Failed() {
		return cli.ErrFound
	}
	return err
}

// inspect reads the files and returns the findings.
func inspect(c cli.Console, schemas, operands []string, inputs pricingInputs, share float64) ([]lint.Finding, error) {
	cfg, variables, err := inputs.load()
	if err != nil {
		return nil, err
	}
	loaded, err := source.LoadSchema(schemas)
	if err != nil {
		return nil, err
	}
	schema := loaded.Schema
	var operations []*source.Operation
	var broken []*source.FileError
	if len(operands) > 0 {
		if operations, broken, err = source.LoadOperations(operands, schemas, cfg.Client.Without(loaded)); err != nil {
			return nil, err
		}
	}
	findings := append(lint.Schema(loaded, cfg.Config), lint.ByFiles(broken)...)
	if slices.ContainsFunc(findings, func(f lint.Finding) bool { return f.Severity == doctor.Error }) {
		return findings, nil
	}
	if len(operations) > 0 {
		pricer, err := pricing.New(schema, cfg, variables)
		if err != nil {
			return nil, err
		}
		findings = append(findings, lint.ByOperations(schema, priceAll(c, pricer, operations), share)...)
	} else {
		estimator, err := cost.New(schema, cfg.Config)
		if err != nil {
			return nil, source.Located(schema, err)
		}
		progress := newProgress(c)
		findings = append(findings, lint.ByShapes(schema, estimator, share, progress.Step)...)
		progress.Done()
	}
	lint.Sort(findings)
	return findings, nil
}
