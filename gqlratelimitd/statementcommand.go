package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/statement"
)

const statementHelp = `Usage: gqlratelimitd statement verify FILE... -key KEY [-key KEY]

verify says whether each file is a statement that a key of the control plane has signed, and shows its numbers. It asks nothing but
the files, - for standard input. Several files are statements of one tenant: it says whether each follows the one before, and whether a
correction states exactly the difference. A file is what GET /v1/orgs/TENANT/ratelimit/statements/NUMBER?format=text answers.
`

// runStatement runs a command for statements.
func runStatement(args []string, c console) error {
	if len(args) == 0 || args[0] != "verify" {
		fmt.Fprint(c.err, statementHelp)
		return errUsage
	}
	flags := flag.NewFlagSet("gqlratelimitd statement verify", flag.ContinueOnError)
	flags.SetOutput(c.err)
	flags.Usage = func() { fmt.Fprint(c.err, statementHelp) }
	var keys []string
	flags.Func("key", "public key of the control plane", func(key string) error {
		keys = append(keys, key)
		return nil
	})
	// Files may stand before the flags.
	args = args[1:]
	flagged := slices.IndexFunc(args, func(arg string) bool { return arg != "-" && strings.HasPrefix(arg, "-") })
	if flagged < 0 {
		flagged = len(args)
	}
	if err := parse(flags, args[flagged:]); err != nil {
		return err
	}
	files := append(args[:flagged:flagged], flags.Args()...)
	if len(files) == 0 || len(keys) == 0 {
		fmt.Fprint(c.err, statementHelp)
		return fmt.Errorf("%w: verify takes a file and a -key, which was not learnt from the file", errUsage)
	}
	return verifyStatements(files, keys, c)
}

// verifyStatements verifies files, and shows what they say.
func verifyStatements(files, keys []string, c console) error {
	var statements []*statement.Statement
	for _, file := range files {
		signed, err := readStatement(file, c.in)
		if err != nil {
			return err
		}
		s, key, err := statement.Open(signed, keys...)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		statements = append(statements, s)
		showStatement(c.out, s, key)
	}
	missing, err := statement.Check(statements)
	if err != nil {
		return err
	}
	for _, number := range missing {
		fmt.Fprintf(c.out, "Statement %d is named and not among the files: nothing was held against it.\n", number)
	}
	return nil
}

// readStatement reads a file, which is small.
func readStatement(name string, in io.Reader) ([]byte, error) {
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }()
		in = file
	}
	return io.ReadAll(io.LimitReader(in, statement.MaxBytes+1))
}

// showStatement writes what a statement says.
func showStatement(w io.Writer, s *statement.Statement, key string) {
	fmt.Fprintf(w, "Statement %d of %s, %s to %s, frozen %s, is what was signed by %s.\n",
		s.Number, s.Tenant, s.From.Format(time.DateOnly), s.To.Format(time.DateOnly), s.Frozen.Format(time.RFC3339), key)
	if !s.Unknown.IsZero() {
		fmt.Fprintf(w, "What was used before %s may not be in it: nobody had collected all of it.\n", s.Unknown.Format(time.RFC3339))
	}
	for i := range s.Lines {
		l := &s.Lines[i]
		fmt.Fprintf(w, "  %s: %d, of which %d was given back from %d\n", nameOf(l), l.Net(), l.GivenBack, l.Charged)
	}
	if s.Corrects.Number == 0 {
		return
	}
	fmt.Fprintf(w, "It corrects statement %d by:\n", s.Corrects.Number)
	for i := range s.Differences {
		l := &s.Differences[i]
		fmt.Fprintf(w, "  %s: %+d, of which %+d was charged and %+d given back\n", nameOf(l), l.Net(), l.Charged, l.GivenBack)
	}
}

// nameOf says what a line is about, and how much it is to be believed.
func nameOf(l *statement.Line) string {
	if l.Field == "" {
		return fmt.Sprintf("%s (%s)", l.Unit, l.Grade)
	}
	return fmt.Sprintf("%s of %s (%s)", l.Unit, l.Field, l.Grade)
}
