package policies

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/daemon"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

const pullHelp = `
Usage: gqlratelimit policy pull [flags] FILE

Writes the newest policy of the daemon into a file, byte for byte, and beside it FILE.revision, which
says what revision that is: policy push reads it. A file that somebody has changed since is not
overwritten.

The exit code is 1 if nothing was written because the file has changes or the daemon has no policy.

Example:

    gqlratelimit policy pull -daemon https://limits.internal:8470 policy.yaml
`

func pull(c cli.Console, args []string) error {
	var (
		asks   daemon.Flags
		number uint64
		force  bool
	)
	flags := c.NewFlags("policy pull", pullHelp)
	asks.Register(flags)
	flags.Uint64Var(&number, "revision", 0, "an earlier revision, by its `number`; it writes no FILE.revision")
	flags.BoolVar(&force, "force", false, "overwrite changes of the file")
	path, err := parseFile(c, flags, args)
	if err != nil {
		return err
	}
	client, err := asks.Open(c)
	if err != nil {
		return err
	}
	defer client.Close()
	var r *policy.Revision
	if number > 0 {
		r, err = client.Revision(number)
	} else {
		r, err = client.Newest()
	}
	switch {
	case err != nil:
		return err
	case r == nil:
		fmt.Fprintln(c.Stderr, "The daemon has no policy yet: gqlratelimit policy push publishes the first one.")
		return cli.ErrFound
	}
	changed, err := write(c, client, path, r.Document, force)
	if err != nil {
		return err
	}
	revision := sideOf(r)
	if number == 0 {
		if err := revision.write(path); err != nil {
			return err
		}
	}
	already := ""
	if !changed {
		already = "already "
	}
	fmt.Fprintf(c.Stdout, "%s is %s%s\n", cli.Plain(path), already, revision.says())
	return nil
}

// write writes a document into a file, unless it has these bytes, or changes that would be lost.
func write(c cli.Console, client *daemon.Client, path string, document []byte, force bool) (changed bool, _ error) {
	was, err := cli.ReadFile(path, tiers.MaxDocument)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, replace(path, document)
	case err != nil:
		return false, err
	case bytes.Equal(was, document):
		return false, nil
	case !force:
		known, err := published(client, path, was)
		if err != nil {
			return false, err
		}
		if !known {
			fmt.Fprintf(c.Stderr, "%s has changes that the daemon does not have, and was left as it is: push them first, pull into another file, or say -force\n", cli.Plain(path))
			return false, cli.ErrFound
		}
	}
	return true, replace(path, document)
}

// published reports whether the content of a file was a revision.
func published(client *daemon.Client, path string, content []byte) (bool, error) {
	hash := policy.HashOf(content)
	beside, err := readSide(path)
	if err == nil && beside != nil && beside.Hash == hash {
		return true, nil
	}
	// One that nobody has pulled may be an earlier revision all the same.
	revisions, err := client.Since(0)
	for i := range revisions {
		if revisions[i].Hash == hash.String() {
			return true, nil
		}
	}
	return false, err
}
