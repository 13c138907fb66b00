// Package incident shows what instances decide at this moment, and eases modes on all of them.
package incident

import (
	"context"
	"errors"
	"fmt"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/session"
	"github.com/gqlgen-ratelimit/ratelimit/digest"
	"github.com/gqlgen-ratelimit/ratelimit/digest/redisdigest"
)

// flags are those of a sub-command that asks no policy.
type flags struct {
	session.Flags
}

// reader reads what instances have written.
func reader(live *session.Live) (*redisdigest.Reader, error) {
	r, err := redisdigest.NewReader(redisdigest.Config{Client: live.Client, Namespace: live.Namespace})
	if err != nil {
		return nil, cli.Usagef("%v", err)
	}
	return r, nil
}

// digests returns those of all instances. What cannot be read is said.
func digests(c cli.Console, live *session.Live) ([]digest.Digest, error) {
	r, err := reader(live)
	if err != nil {
		return nil, err
	}
	var all []digest.Digest
	err = live.Call(func(ctx context.Context) (err error) {
		all, err = r.Digests(ctx)
		return err
	})
	if errors.Is(err, digest.ErrUnreadable) {
		fmt.Fprintln(c.Stderr, "note:", cli.Plain(err.Error()))
		err = nil
	}
	return all, err
}
