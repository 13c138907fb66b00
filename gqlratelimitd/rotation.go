package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
)

// tokenVariable is where rotate finds the token of who asks: that of the command gqlratelimit.
const tokenVariable = "RATELIMIT_TOKEN"

// rotate changes the key of the audit log. Private keys go over no network: it works where the database and the key are.
func rotate(ctx context.Context, args []string, c console) (err error) {
	var reason string
	var lost bool
	o, err := readOptionsWith(args, c.err, func(flags *flag.FlagSet) {
		flags.StringVar(&reason, "reason", "", "why, for the audit log")
		flags.BoolVar(&lost, "lost", false, "the key of now is lost: nothing vouches for the next one")
	})
	if err != nil {
		return err
	}
	db, err := openThere(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	rotating, err := control.New(control.Config{Store: db})
	if err != nil {
		return err
	}
	actor, err := holder(rotating, os.Getenv(tokenVariable))
	if err != nil {
		return err
	}
	r := rotation{file: o.Audit.Key, next: o.Audit.Key + ".next"}
	if err := r.read(o.Audit.Name, lost); err != nil {
		return err
	}
	ended, err := r.ended(ctx, control.NewAuditLog(db))
	if err != nil {
		return err
	}
	if !ended {
		request := control.Request{Actor: actor, Reason: reason}
		if _, err := rotating.RotateAuditKey(ctx, request, r.keys); err != nil {
			return err
		}
	}
	if err := r.replace(); err != nil {
		return fmt.Errorf("the log has another key, and the file of it is %s: put it in the place of %s: %w", r.next, r.file, err)
	}
	fmt.Fprintf(c.out, "The audit log is signed by the key %s from now on, which is in %s.\n"+
		"Copy that file to the other daemons and restart each of them: until then it signs nothing, and does everything else.\n", r.keys.Next.Public(), r.file)
	if lost {
		fmt.Fprintln(c.out, "Who verifies the log has to be given this key beside the one before.")
	}
	return nil
}

// holder is whose token it is.
func holder(c *control.Control, token string) (actor access.Actor, err error) {
	if token == "" {
		return actor, fmt.Errorf("who rotates the key is in the audit log: put a token with the role operator into %s", tokenVariable)
	}
	authenticator, err := access.NewAuthenticator(access.AuthConfig{Tokens: c.TokenStore()})
	if err != nil {
		return actor, err
	}
	defer authenticator.Close()
	return authenticator.Authenticate(&http.Request{Header: http.Header{"Authorization": {"Bearer " + token}}})
}

// rotation is how one key takes the place of another one, in the log and then in the file.
type rotation struct {
	// file has the key of now, and next the one that follows until the log has it.
	file, next string
	keys       control.RotateAuditKeyInput
	// begun says that the next key was there already: a rotation was interrupted.
	begun bool
}

// read reads the keys, and makes the next one.
func (r *rotation) read(log string, lost bool) (err error) {
	// Who could put a next key there beforehand would have it too.
	if err := ownFolder(filepath.Dir(r.file)); err != nil {
		return err
	}
	if !lost {
		// One that is made here would be the key of no log.
		if _, err := os.Stat(r.file); err != nil {
			return fmt.Errorf("%w: -audit-key says where the key is, and -lost that it is lost", err)
		}
		if r.keys.Old, err = auditKey(r.file, log); err != nil {
			return err
		}
		log = r.keys.Old.Name()
	}
	_, err = os.Stat(r.next)
	r.begun = err == nil
	r.keys.Next, err = auditKey(r.next, log)
	return err
}

// ended reports whether the log has the next key already. It signs nothing: a log that nobody has signed yet takes any key, and has rotated none.
func (r *rotation) ended(ctx context.Context, log audit.Reader) (bool, error) {
	if !r.begun {
		return false, nil
	}
	signed, err := log.Newest(ctx)
	if err != nil || len(signed) == 0 {
		return false, err
	}
	public := r.keys.Next.Public()
	c, err := audit.OpenCheckpoint(signed, public)
	return err == nil && c.Key == public, nil
}

// replace puts the next key in the place of the one before, which stays beside it. There is a key at each moment: a daemon that finds none
// makes one.
func (r *rotation) replace() error {
	retired := r.file + ".retired"
	err := os.Remove(retired)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = os.Link(r.file, retired)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(r.next, r.file); err != nil {
		return err
	}
	// Who copies the file to other daemons after a loss of power copies this one.
	return syncFolder(filepath.Dir(r.file))
}
