package main

import (
	"bufio"
	"bytes"
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
       gqlratelimitd audit rotate -reason TEXT [-lost] [flags of gqlratelimitd]

verify says whether an export is what was signed. It asks nothing but the file, - for standard input. With checkpoints that
were kept elsewhere, the file of -checkpoints, it also finds a log that was written anew.

export writes the log, straight from the database, up to a checkpoint that it signs if the key of the daemon is there, and
otherwise up to the newest one. GET /v1/audit/export does the same.

rotate makes another key, has the log name it, and puts it in the place of the file of -audit-key. It takes a token with the role
operator in RATELIMIT_TOKEN. The daemons may run, and are restarted with the key afterwards.
`

// runAudit runs a command for the audit log.
func runAudit(ctx context.Context, args []string, c console) error {
	if len(args) > 0 {
		switch args[0] {
		case "verify":
			return verify(args[1:], c)
		case "export":
			return export(ctx, args[1:], c)
		case "rotate":
			return rotate(ctx, args[1:], c)
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
	cut := 0
	if *kept != "" {
		var err error
		if cfg.Kept, cut, err = readCheckpoints(*kept); err != nil {
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
	if cut > 0 {
		fmt.Fprintf(c.out, "%d lines of %s were cut when they were written, and say nothing.\n", cut, *kept)
	}
	return nil
}

// maxCheckpoint is how many bytes a line with a checkpoint has.
const maxCheckpoint = 64 << 10

// readCheckpoints reads the file that the daemon appends checkpoints to, and returns how many lines of it were cut, as on a disk that was
// full. Such a line is none, and the next one stands behind it.
func readCheckpoints(name string) (kept [][]byte, cut int, _ error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, maxCheckpoint)
	for n := 1; lines.Scan(); n++ {
		var line checkpointLine
		switch err := json.NewDecoder(bytes.NewReader(lines.Bytes())).Decode(&line); {
		case errors.Is(err, io.ErrUnexpectedEOF):
			cut++
		case err != nil || line.Checkpoint == "":
			return nil, 0, fmt.Errorf("%s: line %d is no checkpoint", name, n)
		default:
			kept = append(kept, []byte(line.Checkpoint))
		}
	}
	if len(kept) == 0 && lines.Err() == nil {
		return nil, 0, fmt.Errorf("%s has no checkpoints", name)
	}
	return kept, cut, lines.Err()
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
	if err := signThere(ctx, o, db); err != nil {
		fmt.Fprintln(c.err, "gqlratelimitd: the export ends with the newest checkpoint, because none was signed:", err)
	}
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

// signThere signs a log whose key is there, so that an export has all of it.
func signThere(ctx context.Context, o *options, db *store.DB) (err error) {
	if _, err := os.Stat(o.Audit.Key); err != nil {
		return err
	}
	key, err := auditKey(o.Audit.Key, o.Audit.Name)
	if err != nil {
		return err
	}
	var kept error
	signer, err := audit.NewSigner(control.NewAuditLog(db), audit.SignerConfig{Key: key, OnCheckpoint: func(signed []byte) {
		file, err := openCheckpoints(o.Audit.Checkpoints)
		if err == nil {
			err = errors.Join(keepCheckpoint(file, signed), file.Close())
		}
		kept = err
	}})
	if err == nil {
		_, err = signer.Sign(ctx, time.Now())
	}
	return errors.Join(err, kept)
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
