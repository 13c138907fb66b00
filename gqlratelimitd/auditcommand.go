package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

const auditHelp = `Usage: gqlratelimitd audit verify FILE [-known NUMBER:HASH]
       gqlratelimitd audit verify [-known NUMBER:HASH] [flags of gqlratelimitd]
       gqlratelimitd audit export [-o FILE] [flags of gqlratelimitd]

verify finds a row that was removed, changed, inserted or moved, and names its number. With a FILE it reads an export, - for standard
input, and asks nothing else. Without one it reads the database. It prints the last row as NUMBER:HASH: keep that elsewhere. A later
verify with -known also finds that rows were cut off at the end, and that the log was written anew.

export writes the log straight from the database, a line of JSON for each row. GET /v1/audit/export does the same.
`

// runAudit runs a command for the audit log.
func runAudit(ctx context.Context, args []string, c console) error {
	if len(args) > 0 {
		switch args[0] {
		case "verify":
			return verify(ctx, args[1:], c)
		case "export":
			return export(ctx, args[1:], c)
		}
	}
	fmt.Fprint(c.err, auditHelp)
	return errUsage
}

// verify verifies an export, or the log of a database.
func verify(ctx context.Context, args []string, c console) error {
	var v verification
	read := v.database
	if len(args) > 0 && (args[0] == "-" || !strings.HasPrefix(args[0], "-")) {
		read = v.file
	}
	report, err := read(ctx, args, c)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.out, "The log has %d rows, and each follows from the one before.\n", report.Rows)
	if report.Rows > 0 {
		fmt.Fprintf(c.out, "The last row is %s\n", report.Last)
	}
	if v.known == nil {
		fmt.Fprintln(c.out, "No known row was given: rows that were cut off at the end are not found. -known takes one.")
	}
	return nil
}

// verification is one call of verify. Known is nil if no row is known.
type verification struct{ known *audit.Mark }

// register registers the flag of what is known.
func (v *verification) register(flags *flag.FlagSet) {
	flags.Func("known", "`number:hash` of a row that was kept elsewhere", func(text string) error {
		mark, err := audit.ParseMark(text)
		v.known = &mark
		return err
	})
}

// file verifies the export that the first argument names.
func (v *verification) file(_ context.Context, args []string, c console) (*audit.Report, error) {
	flags := flag.NewFlagSet("gqlratelimitd audit verify", flag.ContinueOnError)
	flags.SetOutput(c.err)
	flags.Usage = func() { fmt.Fprint(c.err, auditHelp) }
	v.register(flags)
	if err := parse(flags, args[1:]); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("%w: verify takes one file", errUsage)
	}
	in := c.in
	if args[0] != "-" {
		file, err := os.Open(args[0])
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }()
		in = file
	}
	return audit.Verify(in, v.known)
}

// database verifies the log of the database that the flags name.
func (v *verification) database(ctx context.Context, args []string, c console) (_ *audit.Report, err error) {
	o, err := readOptionsWith(args, c.err, v.register)
	if err != nil {
		return nil, err
	}
	db, err := openThere(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return audit.VerifyLog(ctx, control.NewAuditLog(db), v.known)
}

// export writes the audit log of a database.
func export(ctx context.Context, args []string, c console) (err error) {
	name := ""
	o, err := readOptionsWith(args, c.err, func(flags *flag.FlagSet) {
		flags.StringVar(&name, "o", "", "`file` to write, which must not be there; standard output without it")
	})
	if err != nil {
		return err
	}
	db, err := openThere(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if name == "" {
		return exportTo(ctx, db, c.out)
	}
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(exportTo(ctx, db, file), file.Close()); err != nil {
		// Half an export verifies as one of a log that was cut.
		return errors.Join(err, os.Remove(name))
	}
	return nil
}

func exportTo(ctx context.Context, db *store.DB, w io.Writer) error {
	err := audit.Export(ctx, control.NewAuditLog(db), w)
	if file, ok := w.(*os.File); ok && err == nil {
		// A disk that is full says so here. A terminal or a pipe cannot be synced.
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
			return file.Sync()
		}
	}
	return err
}
