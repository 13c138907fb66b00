package override

import (
	"context"
	"fmt"
	"strings"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/session"
)

const blockHelp = `
Usage: gqlratelimit block -tenant T [-team M | -user U | -operation O]
           -for DURATION | -until TIME | -forever  -reason TEXT

Blocks an owner by an override record: every operation of it is refused in every instance from the
next one on, whatever the mode. An operation is a rule of the policy or a root field, such as
Mutation.createOrder. Other owners of the tenant go on.

Examples:

    gqlratelimit block -tenant acme -user mallory -for 1h -reason "guesses passwords"
    gqlratelimit block -tenant acme -operation Mutation.createOrder -until 18:00 -reason "ticket 19"
`

const unblockHelp = `
Usage: gqlratelimit unblock -tenant T [-team M | -user U | -operation O] -reason TEXT

Ends a block that gqlratelimit block has set. What the policy blocks stays blocked, and is said.
`

// Block is the sub-command block.
func Block(c cli.Console, args []string) error {
	var (
		in     session.Flags
		change session.Change
		term   session.Term
	)
	flags := c.NewFlags("block", blockHelp)
	in.Register(flags)
	change.Register(flags)
	term.Register(flags)
	if err := cli.ParseAlone(flags, args); err != nil {
		return err
	}
	if err := term.Check(); err != nil {
		return err
	}
	s, err := in.Open(c)
	if err != nil {
		return err
	}
	defer s.Close()
	record := bucket.Override{Owner: s.Holding.Owner, Blocked: true}
	if err := check(c, s.Holding, &record); err != nil {
		return err
	}
	return put(c, s, &change, &term, record)
}

// Unblock is the sub-command unblock.
func Unblock(c cli.Console, args []string) error {
	var (
		in     session.Flags
		change session.Change
	)
	flags := c.NewFlags("unblock", unblockHelp)
	in.Register(flags)
	change.Register(flags)
	if err := cli.ParseAlone(flags, args); err != nil {
		return err
	}
	s, err := in.Open(c)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := change.Complete(c); err != nil {
		return err
	}
	h := s.Holding
	var record *bucket.Override
	err = s.Call(func(ctx context.Context) error {
		record, err = s.Store.GetOverride(ctx, h.Scope.Tenant, h.Owner, "")
		return err
	})
	if err != nil {
		return asUsage(err)
	}
	if h.Rules.Blocked {
		fmt.Fprintf(c.Stderr, "the policy blocks %s: %s\n", session.TenantName(h.Scope.Tenant), strings.Join(h.Rules.Provenance(h.Subject).Rule, ", "))
	}
	if record == nil || !record.Blocked {
		fmt.Fprintf(c.Stderr, "no override record blocks %s; gqlratelimit override list has those of the tenant\n", h.Scope.String())
		return cli.ErrFound
	}
	if err := drop(c, s, ""); err != nil {
		return err
	}
	if h.Rules.Blocked {
		return cli.ErrFound
	}
	return nil
}
