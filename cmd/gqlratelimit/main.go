// Command gqlratelimit prices GraphQL operations before anybody sends them, examines the Redis of a
// limiter, and works on a limiter while it serves.
//
// Each sub-command says more with -h. docs/reference/command.md shows them at work.
//
// The exit code is 0 if all is well, 1 if something was found (a price above the maximum, a rise above
// the threshold, an operation that does not fit the schema, a mistake in a schema, a dangerous setting, a file of
// operations that does not parse beside others that do), and 2 if the command could not do its work because of its arguments or
// because a file that it needs cannot be read, or Redis or the daemon does not answer.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/budget"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/incident"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/override"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/policies"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/used"
)

// Exit codes of the command.
const (
	exitOK    = 0
	exitFound = 1
	exitUsage = 2
)

// command is a sub-command.
type command struct {
	name    string
	summary string
	run     func(cli.Console, []string) error
}

// commands are the sub-commands, in the order of the help text.
func commands() []command {
	return []command{
		{"cost", "print what operations cost, and why", runCost},
		{"lint", "report what is wrong or missing in the directives of a schema", runLint},
		{"diff", "compare what operations cost under two schemas", runDiff},
		{"doctor", "examine the Redis of a limiter, and say what is dangerous", runDoctor},
		{"budget", "show what is left of budgets, and give it back", budget.Run},
		{"override", "show and change override records, which beat the policy", override.Run},
		{"block", "refuse everything that a tenant, a team, a user or an operation asks", override.Block},
		{"unblock", "end a block", override.Unblock},
		{"refusal", "say why an operation was refused, by the id that its client has", incident.Refusal},
		{"top", "show the busiest tenants of all instances, and who is refused", incident.Top},
		{"mode", "ease limits on every instance, in an emergency", incident.RunMode},
		{"usage", "show what tenants have used and how many operations were refused, by gqlratelimitd", used.Run},
		{"policy", "check, explain, simulate, compare, pull and push policies", policies.Run},
	}
}

func main() {
	redis.SetLogger(silence{})
	os.Exit(run(cli.Console{Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv}, os.Args[1:]))
}

// run runs the sub-command that the arguments name and returns the exit code.
func run(c cli.Console, args []string) int {
	if len(args) == 0 {
		writeUsage(c.Stderr)
		return exitUsage
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		if args[0] == "help" && len(args) > 1 {
			return run(c, append(slices.Clone(args[1:]), "-h"))
		}
		writeUsage(c.Stdout)
		return exitOK
	}
	for _, sub := range commands() {
		if sub.name != args[0] {
			continue
		}
		err := sub.run(c, args[1:])
		switch {
		case err == nil, errors.Is(err, flag.ErrHelp):
			return exitOK
		case errors.Is(err, cli.ErrFound):
			return exitFound
		default:
			printError(c.Stderr, sub.name, err)
			return exitUsage
		}
	}
	fmt.Fprintf(c.Stderr, "gqlratelimit: there is no sub-command %q\n\n", args[0])
	writeUsage(c.Stderr)
	return exitUsage
}

// printError writes each line of an error. Those that name a file begin with it, as editors expect.
func printError(w io.Writer, name string, err error) {
	var usage *cli.UsageError
	if errors.As(err, &usage) {
		name = cmp.Or(usage.Command, name)
		fmt.Fprintf(w, "gqlratelimit %s: %v\nRun gqlratelimit %s -h to see how it is used.\n", name, err, name)
		return
	}
	fmt.Fprintln(w, err)
}

func writeUsage(w io.Writer) {
	var b strings.Builder
	b.WriteString("gqlratelimit prices GraphQL operations before anybody sends them, examines the Redis\nof a limiter, and works on a limiter while it serves.\n\nUsage:\n\n")
	for _, sub := range commands() {
		fmt.Fprintf(&b, "    gqlratelimit %-8s %s\n", sub.name, sub.summary)
	}
	b.WriteString(`
Run gqlratelimit SUB-COMMAND -h, or gqlratelimit help SUB-COMMAND, for the arguments of one.

The exit code is 0 if all is well, 1 if something was found, and 2 if the arguments
make no sense, or what is needed cannot be read or does not answer.
`)
	_, _ = io.WriteString(w, b.String())
}
