// Package budget shows what is left of budgets, and gives it back.
package budget

import (
	"context"
	"fmt"
	"slices"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/session"
)

const showHelp = `
Usage: gqlratelimit budget show -tenant T [-team M] [-user U] [-operation O] [flags]

Shows what is left of the budgets of a tenant, of its operations, and of the team and the
user that are named: what an operation of that user would be judged by now, and who holds parts
of the limits, and of the backstop, where instances lease them. Nothing is changed.

Redis and policy are those of the servers: $RATELIMIT_REDIS and $RATELIMIT_POLICY, or -redis
and -policy. Without a policy file the newest revision in Redis holds. What the directory of
tenants in Redis says of the tenant holds too, and override records do.

Example:

    gqlratelimit budget show -tenant acme -user jo
`

const grantHelp = `
Usage: gqlratelimit budget grant -tenant T [-team M | -user U | -operation O] -points N -reason TEXT

Gives budget back to one owner: each of its limits gains as much of its unit as is given, until
nothing is spent. It adds once, and changes no limit. -unit names another unit than points.

Example:

    gqlratelimit budget grant -tenant acme -points 500 -reason "import of the old shop, ticket 17"
`

const resetHelp = `
Usage: gqlratelimit budget reset -tenant T [-team M | -user U | -operation O] -reason TEXT

Makes all budgets of one owner full by forgetting what was spent.

Example:

    gqlratelimit budget reset -tenant acme -user ci-bot -reason "our own loop, ticket 18"
`

// Run runs a verb of the sub-command budget.
func Run(c cli.Console, args []string) error {
	return cli.RunVerb(c, "budget", "Shows what is left of budgets, and gives it back.", []cli.Verb{
		{Name: "show", Summary: "show what is left", Run: show},
		{Name: "grant", Summary: "give an amount back", Run: grant},
		{Name: "reset", Summary: "make budgets full", Run: reset},
	}, args)
}

func show(c cli.Console, args []string) error {
	var in session.Flags
	flags := c.NewFlags("budget show", showHelp)
	in.Register(flags)
	if err := cli.ParseAlone(flags, args); err != nil {
		return err
	}
	s, err := in.Open(c)
	if err != nil {
		return err
	}
	defer s.Close()
	h := s.Holding
	buckets := h.Rules.Buckets
	if in.Scope.Operation == "" {
		buckets = h.All()
	}
	states, err := s.Peek(h.Scope.Tenant, buckets)
	if err != nil {
		return err
	}
	blocks, err := s.Blocks(h)
	if err != nil {
		return err
	}
	leases, err := s.Leases(h)
	if err != nil {
		return err
	}
	session.WriteHeading(c, h)
	session.WriteBlocks(c, blocks)
	if len(states) > 0 {
		session.WriteStates(c, states)
	}
	session.WriteLeases(c, &leases)
	return nil
}

func grant(c cli.Console, args []string) error {
	var (
		in     session.Flags
		change session.Change
		given  bucket.Amount
	)
	flags := c.NewFlags("budget grant", grantHelp)
	in.Register(flags)
	change.Register(flags)
	flags.Int64Var(&given.N, "points", 0, "how much to give back, a `number` from 1 on")
	flags.StringVar((*string)(&given.Unit), "unit", string(bucket.Points), "the `unit` in the place of points, such as requests")
	if err := cli.ParseAlone(flags, args); err != nil {
		return err
	}
	if given.N < 1 {
		return cli.Usagef("say how much: -points N, with a number from 1 on")
	}
	return alter(c, &in, &change, func(s *session.Session, b bucket.Bucket) error {
		if err := checkUnit(s.Holding, b, given.Unit); err != nil {
			return err
		}
		return s.Call(func(ctx context.Context) error {
			_, err := s.Store.Grant(ctx, s.Holding.Scope.Tenant, []bucket.Bucket{b}, bucket.Amounts{given})
			return err
		})
	})
}

// checkUnit returns an error for a unit that no limit of the owner counts.
func checkUnit(h *session.Holding, b bucket.Bucket, unit bucket.Unit) error {
	var units []string
	for _, limit := range b.Limits.All() {
		units = append(units, string(limit.Unit))
	}
	if slices.Contains(units, string(unit)) {
		return nil
	}
	slices.Sort(units)
	return cli.Unknown("limit of "+h.Scope.String()+" in the unit", string(unit), slices.Compact(units))
}

func reset(c cli.Console, args []string) error {
	var (
		in     session.Flags
		change session.Change
	)
	flags := c.NewFlags("budget reset", resetHelp)
	in.Register(flags)
	change.Register(flags)
	if err := cli.ParseAlone(flags, args); err != nil {
		return err
	}
	return alter(c, &in, &change, func(s *session.Session, b bucket.Bucket) error {
		return s.Call(func(ctx context.Context) error {
			return s.Store.Reset(ctx, s.Holding.Scope.Tenant, []bucket.Bucket{b})
		})
	})
}

// alter changes the budgets of an owner, and shows them as they were and as they are.
func alter(c cli.Console, in *session.Flags, change *session.Change, do func(*session.Session, bucket.Bucket) error) error {
	s, err := in.Open(c)
	if err != nil {
		return err
	}
	defer s.Close()
	h := s.Holding
	b, err := h.Bucket()
	if err != nil {
		return err
	}
	if err := change.Complete(c); err != nil {
		return err
	}
	before, err := s.Peek(h.Scope.Tenant, []bucket.Bucket{b})
	if err != nil {
		return err
	}
	if err := do(s, b); err != nil {
		return err
	}
	after, err := s.Peek(h.Scope.Tenant, []bucket.Bucket{b})
	if err != nil {
		return fmt.Errorf("it was done; what holds now is not known: %w", err)
	}
	session.WriteChange(c, before, after)
	return nil
}
