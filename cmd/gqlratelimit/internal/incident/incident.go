// Package incident shows what instances decide at this moment, and eases modes on all of them.
package incident

import (
	"context"
	"fmt"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/session"
	"github.com/gqlgen-ratelimit/ratelimit/observe/report"
)

// lately is the time over which instances are counted.
const lately = time.Minute

// reader reads what instances have written.
func reader(live *session.Live) (*report.Reader, error) {
	r, err := report.NewReader(report.Place{Client: live.Client, Namespace: live.Namespace})
	if err != nil {
		return nil, cli.Usagef("%v", err)
	}
	return r, nil
}

// summary adds up what all instances have written lately. It says what cannot be read.
func summary(c cli.Console, live *session.Live) (*report.Summary, error) {
	r, err := reader(live)
	if err != nil {
		return nil, err
	}
	var all *report.Summary
	err = live.Call(func(ctx context.Context) (err error) {
		all, err = r.Summary(ctx, lately)
		return err
	})
	if err != nil {
		return nil, err
	}
	if all.Unreadable > 0 {
		fmt.Fprintf(c.Stderr, "note: %d entries of the stream of activity cannot be read\n", all.Unreadable)
	}
	return all, nil
}
