// Package policies says what is wrong with a policy, what holds for a tenant and why, and what another policy would change. It brings
// policy files to gqlratelimitd and back.
package policies

import (
	"errors"
	"fmt"
	"io"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/session"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

const checkHelp = `
Usage: gqlratelimit policy check [flags] FILE...

Reads policies as servers do, and says everything that is wrong with each, with its line, and what
is odd and holds all the same. Notes say what a server has to bring: other stores, and units that its
code charges.

The exit code is 1 if something is wrong; with -strict also if something is odd.

Example:

    gqlratelimit policy check policy.yaml
`

// Run runs a verb of the sub-command policy.
func Run(c cli.Console, args []string) error {
	return cli.RunVerb(c, "policy", "Says what is wrong with a policy, what holds for a tenant and why, and what another policy would change; pulls and pushes policies.", []cli.Verb{
		{Name: "check", Summary: "say what is wrong with policies", Run: check},
		{Name: "explain", Summary: "say what holds for a tenant, and where each of it comes from", Run: explain},
		{Name: "simulate", Summary: "replay recorded costs, and say whom a policy would refuse", Run: runSimulate},
		{Name: "plan", Summary: "say what a new policy changes, and whom it would newly refuse", Run: plan},
		{Name: "pull", Summary: "write the newest policy of gqlratelimitd into a file", Run: pull},
		{Name: "push", Summary: "publish a policy file through gqlratelimitd", Run: runPush},
	}, args)
}

// findingJSON is what check says.
type findingJSON struct {
	Severity string `json:"severity"`
	File     string `json:"file"`
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`
	Path     string `json:"path,omitempty"`
	Problem  string `json:"problem"`
}

func (f *findingJSON) String() string {
	text := cli.Position(f.File, f.Line, f.Column, "")
	text += ": " + f.Severity + ": "
	if f.Path != "" {
		text += f.Path + ": "
	}
	return cli.Plain(text + f.Problem)
}

const (
	wrong = "error"
	odd   = "warning"
	note  = "note"
)

func check(c cli.Console, args []string) error {
	flags := c.NewFlags("policy check", checkHelp)
	strict := flags.Bool("strict", false, "fail on what is odd as well")
	var asJSON bool
	cli.JSONVar(flags, &asJSON)
	files, err := cli.Parse(flags, args)
	switch {
	case err != nil:
		return err
	case len(files) == 0 && c.Getenv(session.PolicyVariable) != "":
		files = []string{c.Getenv(session.PolicyVariable)}
	case len(files) == 0:
		return cli.Usagef("no policy is given: name files, or set $%s", session.PolicyVariable)
	}
	findings, failed := []findingJSON{}, false
	for _, file := range files {
		found, err := examine(file)
		if err != nil {
			return err
		}
		for _, f := range found {
			failed = failed || f.Severity == wrong || *strict && f.Severity == odd
		}
		findings = append(findings, found...)
	}
	out := struct {
		Version  int           `json:"version"`
		Failed   bool          `json:"failed"`
		Findings []findingJSON `json:"findings"`
	}{cli.FormatVersion, failed, findings}
	return c.Report(asJSON, out, failed, func(io.Writer) error {
		for i := range findings {
			fmt.Fprintln(c.Stdout, &findings[i])
		}
		if !failed {
			fmt.Fprintf(c.Stdout, "%d of %d policies are good.\n", len(files), len(files))
		}
		return nil
	})
}

// examine says what is to be said of a policy. An error means that it cannot be read.
func examine(file string) ([]findingJSON, error) {
	var found []findingJSON
	held, err := session.LoadPolicy(file)
	if mistakes := (*tiers.PolicyError)(nil); errors.As(err, &mistakes) {
		for _, m := range mistakes.Mistakes {
			found = append(found, findingJSON{wrong, file, m.Line, m.Column, m.Path, m.Problem})
		}
		return found, nil
	}
	if err != nil {
		return nil, err
	}
	for _, w := range held.Warnings() {
		found = append(found, findingJSON{odd, file, w.Line, w.Column, w.Path, w.Problem})
	}
	for _, store := range held.Stores() {
		found = append(found, findingJSON{Severity: note, File: file, Problem: fmt.Sprintf("a server needs the store %q", store)})
	}
	for _, unit := range held.Units() {
		found = append(found, findingJSON{Severity: note, File: file, Problem: fmt.Sprintf("the code of a server has to charge the unit %q: nothing else does", unit)})
	}
	return found, nil
}
