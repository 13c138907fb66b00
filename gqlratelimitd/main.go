// Command gqlratelimitd is the control plane: policies with revisions, overrides and tokens, all audited, in every instance within a second.
// docs/guide/control-plane.md has first steps.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

// Exit codes.
const (
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends a program that takes too long to end.
	context.AfterFunc(ctx, stop)
	// Without it the client would write a line of its own for each connection that it cannot make.
	redis.SetLogger(redisLog{&sparing{log: slog.New(slog.NewTextHandler(os.Stderr, nil))}})
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
var errUsage = errors.New("gqlratelimitd -help lists the flags, and gqlratelimitd audit the commands for the audit log")

// run runs the program until it is done or the context ends, and returns its exit code.
func run(ctx context.Context, args []string, c console) int {
	var err error
	switch {
	case len(args) > 0 && args[0] == "audit":
		err = runAudit(ctx, args[1:], c)
	default:
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

// runDaemon starts the daemon, or prints what is asked for.
func runDaemon(ctx context.Context, args []string, c console) error {
	options, err := readOptions(args, c.err)
	if err != nil {
		return err
	}
	switch {
	case options.printSQL:
		return printSQL(options, c.out)
	case options.newToken:
		return printToken(ctx, options, c.out)
	}
	d, err := open(ctx, options, c)
	if err != nil {
		return err
	}
	return d.serve(ctx)
}

// printSQL prints the SQL that makes the tables, for those who run it as somebody else than the daemon.
func printSQL(o *options, w io.Writer) error {
	dialect := store.SQLite
	if strings.HasPrefix(o.Database, "postgres") {
		dialect = store.PostgreSQL
	}
	if o.sqlRole != "" && dialect != store.PostgreSQL {
		return fmt.Errorf("%w: -sql-role takes -database postgres://: SQLite has no roles", errUsage)
	}
	script, err := store.Script(dialect)
	if err != nil {
		return err
	}
	if o.sqlRole != "" {
		script += store.Grants(o.sqlRole)
	}
	_, err = io.WriteString(w, script)
	return err
}

// printToken prints another one-time token. The daemon may run meanwhile.
func printToken(ctx context.Context, o *options, w io.Writer) (err error) {
	db, err := openThere(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	c, err := control.New(control.Config{Store: db})
	if err != nil {
		return err
	}
	token, err := c.Bootstrap(ctx, true)
	if err != nil {
		return err
	}
	url, where := urlOf(o.Listen, o.TLS.Certificate != ""), ""
	if o.guessed {
		url, where = "URL", "URL is what the daemon says that it serves; with the -listen of the daemon this line has it.\n"
	}
	_, err = fmt.Fprintf(w, "A one-time token. It is good for an hour, for one thing, to issue yourself another:\n\n%s%s\n", issueLines(url, token), where)
	return err
}

// openThere opens a database that is there already: who misspells a folder is not given a new one.
func openThere(ctx context.Context, o *options) (*store.DB, error) {
	if o.Database == "" {
		if _, err := os.Stat(o.databaseFile()); err != nil {
			return nil, fmt.Errorf("there is no database; -data or -database says where it is: %w", err)
		}
	}
	return store.Open(ctx, store.Config{URL: o.databaseURL()})
}
