// Command gqlratelimit prices GraphQL operations before anybody sends them, and examines the Redis of a
// limiter.
//
//	gqlratelimit cost -schema schema.graphqls operations/    what operations cost, and why
//	gqlratelimit lint -schema schema.graphqls                what is wrong with the directives of a schema
//	gqlratelimit diff -old old.graphqls -new new.graphqls operations/    which operations became dearer
//	gqlratelimit doctor -redis redis://127.0.0.1:6379    what is dangerous in a Redis for a limiter
//
// Each sub-command says more with -h. docs/reference/command.md shows them at work.
//
// The exit code is 0 if all is well, 1 if something was found (a price above the maximum, a rise above
// the threshold, an operation that does not fit the schema, a mistake in a schema, a dangerous setting, a file of
// operations that does not parse beside others that do), and 2 if the command could not do its work because of its arguments or
// because a file that it needs cannot be read.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"
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
	run     func(console, []string) error
}

// commands are the sub-commands, in the order of the help text.
func commands() []command {
	return []command{
		{"cost", "print what operations cost, and why", runCost},
		{"lint", "report what is wrong, missing or useless in the directives of a schema", runLint},
		{"diff", "compare what operations cost under two schemas", runDiff},
		{"doctor", "examine the Redis of a limiter, and say what is dangerous", runDoctor},
	}
}

// console is where a sub-command writes.
type console struct {
	stdout, stderr io.Writer
	getenv         func(string) string
}

// errFound says that the work was done and that something was found, which has been reported.
var errFound = errors.New("something was found")

func main() {
	redis.SetLogger(silence{})
	os.Exit(run(console{stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv}, os.Args[1:]))
}

// run runs the sub-command that the arguments name and returns the exit code.
func run(c console, args []string) int {
	if len(args) == 0 {
		writeUsage(c.stderr)
		return exitUsage
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		writeUsage(c.stdout)
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
		case errors.Is(err, errFound):
			return exitFound
		default:
			printError(c.stderr, sub.name, err)
			return exitUsage
		}
	}
	fmt.Fprintf(c.stderr, "gqlratelimit: there is no sub-command %q\n\n", args[0])
	writeUsage(c.stderr)
	return exitUsage
}

// printError writes each line of an error. Those that name a file begin with it, as editors expect.
func printError(w io.Writer, name string, err error) {
	var usage *usageError
	if errors.As(err, &usage) {
		fmt.Fprintf(w, "gqlratelimit %s: %v\nRun gqlratelimit %s -h to see how it is used.\n", name, err, name)
		return
	}
	fmt.Fprintln(w, err)
}

func writeUsage(w io.Writer) {
	var b strings.Builder
	b.WriteString("gqlratelimit prices GraphQL operations before anybody sends them, and examines the Redis\nof a limiter.\n\nUsage:\n\n")
	for _, sub := range commands() {
		fmt.Fprintf(&b, "    gqlratelimit %-6s %s\n", sub.name, sub.summary)
	}
	b.WriteString(`
Run gqlratelimit SUB-COMMAND -h for the arguments of one.

The exit code is 0 if all is well, 1 if something was found, and 2 if the arguments
make no sense or what is needed cannot be read.
`)
	_, _ = io.WriteString(w, b.String())
}
