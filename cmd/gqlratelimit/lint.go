package main

import (
	"fmt"

	"github.com/gqlgen-ratelimit/ratelimit/bucket/doctor"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/lint"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/report"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/source"
)

const lintHelp = `
Usage: gqlratelimit lint -schema FILE|DIR [-schema ...] [flags]

Reports what is wrong or missing in the directives that price a schema:

    error    invalid              a directive, or the configuration, is wrong; the server does not start
    warning  unsized-list         nothing says how long a list is
    warning  unreadable-size      an argument that sizes a list is no number
    warning  repeated-field       a field that its type defines twice in the same way; the second is dropped

The exit code is 1 if something is found that is at least as bad as -fail-on.

Example:

    gqlratelimit lint -schema schema.graphqls -config pricing.yaml
`

// runLint is the sub-command lint.
func runLint(c cli.Console, args []string) error {
	var (
		schemas cli.Paths
		config  string
		asJSON  bool
	)
	flags := c.NewFlags("lint", lintHelp)
	flags.Var(&schemas, "schema", "`file` or directory of the schema; can be given several times")
	flags.StringVar(&config, "config", "", "YAML or JSON `file` of weights, list sizes and defaults")
	found := report.Findings[lint.Finding]{Severity: func(f lint.Finding) doctor.Severity { return f.Severity }, Text: lintText}
	found.Register(flags)
	cli.JSONVar(flags, &asJSON)
	if err := cli.ParseAlone(flags, args); err != nil {
		return err
	}
	if len(schemas) == 0 {
		return cli.Usagef("no schema is given: say -schema FILE")
	}
	cfg, err := source.LoadConfig(config)
	if err != nil {
		return err
	}
	schema, err := source.LoadSchema(schemas)
	if err != nil {
		return err
	}
	found.List = lint.Schema(schema, cfg)
	return found.Write(c, asJSON)
}

// lintText says a finding in a line that editors and CI systems recognise.
func lintText(f lint.Finding) string {
	return fmt.Sprintf("%s%s: %s: %s (%s)\n",
		cli.Position(f.File, f.Line, f.Column, ": "), f.Severity, cli.Plain(f.Coordinate), cli.Plain(f.Message), f.Rule)
}
