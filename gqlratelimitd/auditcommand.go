package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

const auditHelp = `Usage: gqlratelimitd audit verify FILE -key KEY [-key KEY] [-kept FILE]
       gqlratelimitd audit export [-o FILE] [flags of gqlratelimitd]

verify says whether an export is what was signed. It asks nothing but the file, - for standard input. With checkpoints that
were kept elsewhere, the file of -checkpoints, it also finds a log that was written anew.

export writes the log up to its newest checkpoint, straight from the database. GET /v1/audit/export does the same.
`

// runAudit runs a command for the audit log.
func runAudit(ctx context.Context, args []string, c console) error {
	if len(args) > 0 {
		switch args[0] {
		case "verify":
			return verify(args[1:], c)
		case "export":
			return export(ctx, args[1:], c)
		}
	}
	fmt.Fprint(c.err, auditHelp)
	return errUsage
}

// verify verifies an export.
func verify(args []string, c console) error {
	flags := flag.NewFlagSet("gqlratelimitd audit verify", flag.ContinueOnError)
	flags.SetOutput(c.err)
	flags.Usage = func() { fmt.Fprint(c.err, auditHelp) }
	var cfg audit.VerifyConfig
	flags.Func("key", "public key of the log", func(key string) error {
		cfg.Keys = append(cfg.Keys, key)
		return nil
	})
	kept := flags.String("kept", "", "file with checkpoints that were kept elsewhere")
	// The file may stand before the flags.
	var name string
	if len(args) > 0 && (args[0] == "-" || args[0] != "" && args[0][0] != '-') {
		name, args = args[0], args[1:]
	}
	if err := parse(flags, args); err != nil {
		return err
	}
	if name == "" {
		name, args = flags.Arg(0), flags.Args()[min(1, flags.NArg()):]
	} else {
		args = flags.Args()
	}
	if name == "" || len(args) > 0 || len(cfg.Keys) == 0 {
		fmt.Fprint(c.err, auditHelp)
		return fmt.Errorf("%w: verify takes one file and a -key, which was not learnt from the file", errUsage)
	}
	if *kept != "" {
		var err error
		if cfg.Kept, err = readCheckpoints(*kept); err != nil {
			return err
		}
	}
	in := c.in
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		in = file
	}
	report, err := audit.Verify(in, cfg)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.out, "The log %s is what was signed: %d entries up to %s, %d checkpoints.\n",
		report.Name, report.Newest.Size, report.Newest.Time.Format(time.RFC3339), report.Checkpoints)
	if *kept == "" {
		fmt.Fprintln(c.out, "Nothing that was kept elsewhere was compared: who has the key could have written another log. -kept compares.")
	} else {
		fmt.Fprintf(c.out, "It begins with all of the %d checkpoints that were kept.\n", report.Kept)
	}
	return nil
}

// maxCheckpoint is how many bytes a line with a checkpoint has.
const maxCheckpoint = 64 << 10

// readCheckpoints reads the file that the daemon appends checkpoints to.
func readCheckpoints(name string) (kept [][]byte, _ error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, maxCheckpoint)
	for lines.Scan() {
		var line checkpointLine
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil || line.Checkpoint == "" {
			return nil, fmt.Errorf("%s: line %d is no checkpoint", name, len(kept)+1)
		}
		kept = append(kept, []byte(line.Checkpoint))
	}
	if len(kept) == 0 && lines.Err() == nil {
		return nil, fmt.Errorf("%s has no checkpoints", name)
	}
	return kept, lines.Err()
}

// export writes the audit log of a database.
func export(ctx context.Context, args []string, c console) (err error) {
	name := ""
	if len(args) > 1 && args[0] == "-o" {
		name, args = args[1], args[2:]
	}
	o, err := readOptions(args, c.err)
	if err != nil {
		return err
	}
	if _, err := os.Stat(o.Data); o.Database == "" && err != nil {
		return fmt.Errorf("there is no database: %w", err)
	}
	db, err := store.Open(ctx, store.Config{URL: o.databaseURL()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	out := c.out
	if name != "" {
		file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		out = file
	}
	return exportTo(ctx, db, out)
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
