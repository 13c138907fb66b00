// Package budget shows what is left of budgets, and gives it back.
package budget

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

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
nothing is spent. It adds once, and changes no limit. -amount names other units.

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

// amounts is a flag UNIT=N that can be given several times.
type amounts struct{ bucket.Amounts }

// String implements flag.Value.
func (a *amounts) String() string { return "" }

// Set implements flag.Value.
func (a *amounts) Set(text string) error {
	unit, number, _ := strings.Cut(text, "=")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || unit == "" || n < 1 {
		return fmt.Errorf("write UNIT=N, with a number from 1 on, such as requests=100")
	}
	a.Amounts = append(a.Amounts, bucket.Amount{Unit: bucket.Unit(unit), N: n})
	return nil
}

func grant(c cli.Console, args []string) error {
	var (
		in     session.Flags
		change session.Change
		given  amounts
		points int64
	)
	flags := c.NewFlags("budget grant", grantHelp)
	in.Register(flags)
	change.Register(flags)
	flags.Int64Var(&points, "points", 0, "how many `points` to give back")
	flags.Var(&given, "amount", "`UNIT=N` to give back, such as requests=100; can be given several times")
	if err := cli.ParseAlone(flags, args); err != nil {
		return err
	}
	if points != 0 {
		given.Amounts = append(given.Amounts, bucket.Amount{Unit: bucket.Points, N: points})
	}
	if len(given.Amounts) == 0 || points < 0 {
		return cli.Usagef("say how much: -points N, with a number from 1 on, or -amount UNIT=N")
	}
	return alter(c, &in, &change, func(s *session.Session, b bucket.Bucket) error {
		if err := checkUnits(s.Holding, b, given.Amounts); err != nil {
			return err
		}
		return s.Call(func(ctx context.Context) error {
			_, err := s.Store.Grant(ctx, s.Holding.Scope.Tenant, []bucket.Bucket{b}, given.Amounts)
			return err
		})
	})
}

// checkUnits returns an error for a unit that no limit of the owner counts, and for one that is named twice.
func checkUnits(h *session.Holding, b bucket.Bucket, given bucket.Amounts) error {
	var units []string
	for _, limit := range b.Limits.All() {
		units = append(units, string(limit.Unit))
	}
	slices.Sort(units)
	units = slices.Compact(units)
	for i, amount := range given {
		if !slices.Contains(units, string(amount.Unit)) {
			return cli.Unknown("limit of "+h.Scope.String()+" in the unit", string(amount.Unit), units)
		}
		if slices.ContainsFunc(given[:i], func(other bucket.Amount) bool { return other.Unit == amount.Unit }) {
			return cli.Usagef("%s are given twice", amount.Unit)
		}
	}
	return nil
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
