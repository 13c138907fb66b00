// Command gqlratelimitd is the control plane: policies with revisions, overrides and tokens, all audited, in every instance within a second.
// docs/guide/control-plane.md has first steps.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

// Exit codes.
const (
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], console{os.Stdin, os.Stdout, os.Stderr})
	stop()
	os.Exit(code)
}

// console is what the program reads and writes.
type console struct {
	in       io.Reader
	out, err io.Writer
}

// errUsage is an error in the arguments, of which the flag package has written more.
var errUsage = errors.New("gqlratelimitd -help lists the flags, gqlratelimitd audit the commands for the audit log")

// run runs the program until it is done or the context ends, and returns its exit code.
func run(ctx context.Context, args []string, c console) int {
	var err error
	if len(args) > 0 && args[0] == "audit" {
		err = runAudit(ctx, args[1:], c)
	} else {
		err = runDaemon(ctx, args, c)
	}
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errUsage):
		fmt.Fprintln(c.err, err)
		return exitUsage
	}
	fmt.Fprintln(c.err, "gqlratelimitd:", err)
	return exitFailed
}

// runDaemon starts the daemon, or prints its tables.
func runDaemon(ctx context.Context, args []string, c console) error {
	options, err := readOptions(args, c.err)
	if err != nil {
		return err
	}
	if options.printSQL {
		return printSQL(options, c.out)
	}
	d, err := open(ctx, options, c)
	if err != nil {
		return err
	}
	return d.serve(ctx)
}

// printSQL prints the statements that make the tables, for those who migrate with a tool of their own.
func printSQL(o *options, w io.Writer) error {
	dialect := store.SQLite
	if strings.HasPrefix(o.Database, "postgres") {
		dialect = store.PostgreSQL
	}
	statements, err := store.Migrations(dialect)
	if err != nil {
		return err
	}
	for _, statement := range statements {
		if _, err := fmt.Fprintln(w, strings.TrimSpace(statement)); err != nil {
			return err
		}
	}
	return nil
}
