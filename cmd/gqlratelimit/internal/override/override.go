// Package override shows and changes the override records of tenants, blocks among them.
package override

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/session"
)

const listHelp = `
Usage: gqlratelimit override list -tenant T [flags]

Lists the override records of a tenant that have not expired, those changed first in front.
-json writes what override set -file reads.
`

const setHelp = `
Usage: gqlratelimit override set -tenant T [-team M | -user U | -operation O] [-limit L]
           [-capacity N] [-refill N] [-per PERIOD] [-mode MODE] | -unlimited
           -for DURATION | -until TIME | -forever  -reason TEXT
       gqlratelimit override set -file FILE [-for DURATION | -until TIME | -forever]  -reason TEXT

Sets an override record, which beats the policy in every instance from the next request on.
An instance that has refused the tenant a moment ago notices it within a second. What was spent is
kept, and the record before it, of the same owner and limit, is replaced and shown.

-file reads the JSON that override list -json writes: at most 10000 records. All are checked
before the first is set, and with a mistake nothing is set. A record keeps the end, the reason and the
actor that it has in the file; those without get those of the flags. Records whose end has passed are
left out and named, and the exit code is 1 then.

Examples:

    gqlratelimit override set -tenant acme -limit minute -capacity 5000 -for 2h -reason "ticket 17"
    gqlratelimit override set -tenant acme -operation Mutation.createOrder -mode shadow -until 18:00 -reason "ticket 18"
`

const deleteHelp = `
Usage: gqlratelimit override delete -tenant T [-team M | -user U | -operation O] [-limit L] -reason TEXT

Removes an override record: that of a limit, or without -limit that of all limits of the owner.
`

const clearHelp = `
Usage: gqlratelimit override clear -tenant T -reason TEXT

Removes all override records of a tenant and of its other owners, blocks included, and shows them.
`

// Run runs a verb of the sub-command override.
func Run(c cli.Console, args []string) error {
	return cli.RunVerb(c, "override", "Shows and changes override records, which beat the policy in every instance.", []cli.Verb{
		{Name: "list", Summary: "list the records of a tenant", Run: list},
		{Name: "set", Summary: "set a record, or all of a file", Run: set},
		{Name: "delete", Summary: "remove a record", Run: remove},
		{Name: "clear", Summary: "remove all records of a tenant", Run: clearAll},
	}, args)
}

// listedJSON is the JSON of list, and what set -file reads.
type listedJSON struct {
	Version int              `json:"version"`
	Records []session.Record `json:"records"`
}

func list(c cli.Console, args []string) error {
	var (
		in     session.Flags
		asJSON bool
	)
	flags := c.NewFlags("override list", listHelp)
	in.Redis.Register(flags)
	in.Scope.RegisterTenant(flags)
	cli.JSONVar(flags, &asJSON)
	if err := cli.ParseAlone(flags, args); err != nil {
		return err
	}
	if _, err := in.Scope.Owner(); err != nil {
		return err
	}
	live, err := in.Redis.Open(c)
	if err != nil {
		return err
	}
	defer live.Close()
	records, err := live.Overrides(in.Scope.Tenant)
	if err != nil {
		return err
	}
	out := listedJSON{Version: cli.FormatVersion, Records: []session.Record{}}
	for i := range records {
		out.Records = append(out.Records, session.NewRecord(in.Scope.Tenant, &records[i]))
	}
	return c.Report(asJSON, out, false, func(io.Writer) error {
		if len(records) == 0 {
			fmt.Fprintf(c.Stdout, "%s has no override records.\n", session.TenantName(in.Scope.Tenant))
		} else {
			session.WriteRecords(c, records)
		}
		return nil
	})
}

// setFlags are the flags of set.
type setFlags struct {
	session.Flags
	session.Change
	session.Term

	record session.Record
	period string
	file   string
}

func set(c cli.Console, args []string) error {
	var in setFlags
	flags := c.NewFlags("override set", setHelp)
	in.Flags.Register(flags)
	in.Change.Register(flags)
	in.Term.Register(flags)
	flags.StringVar(&in.record.Limit, "limit", "", "the `name` of a limit; all of the owner unless given")
	flags.Int64Var(&in.record.Capacity, "capacity", 0, "the `number` in the place of the capacity, and of the refill where that was the capacity")
	flags.Int64Var(&in.record.Refill, "refill", 0, "the `number` in the place of the refill")
	flags.StringVar(&in.period, "per", "", "the `period` in the place of that of the limit: minute, or 90s")
	flags.StringVar(&in.record.Mode, "mode", "", "the `mode` in the place of that of the limits: enforce, warn, shadow or off")
	flags.BoolVar(&in.record.Unlimited, "unlimited", false, "nothing is judged or charged")
	flags.StringVar(&in.file, "file", "", "JSON `file` of records")
	if err := cli.ParseAlone(flags, args); err != nil {
		return err
	}
	if in.period != "" {
		if err := in.record.Period.UnmarshalText([]byte(in.period)); err != nil {
			return cli.Usagef("-per %.40q is no period: write minute, hour or day, or a duration such as 90s", in.period)
		}
	}
	if in.file != "" {
		return setFile(c, &in)
	}
	if err := in.Check(); err != nil {
		return err
	}
	s, err := in.Open(c)
	if err != nil {
		return err
	}
	defer s.Close()
	record, err := in.record.Override(s.Holding.Owner)
	if err != nil {
		return err
	}
	if err := check(c, s.Holding, &record); err != nil {
		return asUsage(err)
	}
	return put(c, s, &in.Change, &in.Term, record)
}

// asUsage says that a record which makes no sense is a mistake in the arguments.
func asUsage(err error) error {
	if errors.Is(err, bucket.ErrInvalid) {
		return cli.Usagef("%v", err)
	}
	return err
}

// put completes and sets a record, and shows what it changes.
func put(c cli.Console, s *session.Session, change *session.Change, term *session.Term, record bucket.Override) error {
	if err := change.Complete(c); err != nil {
		return err
	}
	now, err := s.Now()
	if err != nil {
		return err
	}
	if record.Expires, err = term.End(now); err != nil {
		return err
	}
	record.Reason, record.Actor = change.Reason, change.Actor
	tenant, buckets := s.Holding.Scope.Tenant, own(s.Holding)
	before, err := s.Peek(tenant, buckets)
	if err != nil {
		return err
	}
	var replaced *bucket.Override
	err = s.Call(func(ctx context.Context) error {
		replaced, err = s.Store.SetOverride(ctx, tenant, record)
		return err
	})
	if err != nil {
		return asUsage(err)
	}
	after, err := s.Peek(tenant, buckets)
	if err != nil {
		return fmt.Errorf("the record is set; what is left now is not known: %w", err)
	}
	tell(c, replaced, &record, before, after)
	return nil
}

// own are the budgets of the owner itself, if the policy has any.
func own(h *session.Holding) []bucket.Bucket {
	if b, err := h.Bucket(); err == nil {
		return []bucket.Bucket{b}
	}
	return nil
}

// tell shows a change of records. Nil is no record.
func tell(c cli.Console, was, is *bucket.Override, before, after []bucket.LimitState) {
	rows := [][]string{{"", "OWNER", "LIMIT", "SAYS", "ENDS", "BY", "REASON"}}
	for _, side := range []struct {
		name string
		o    *bucket.Override
	}{{"before", was}, {"now", is}} {
		if side.o == nil {
			rows = append(rows, []string{side.name, "(no record)"})
			continue
		}
		rows = append(rows, []string{side.name, session.OwnerName(side.o.Owner), session.RecordLimit(side.o), session.Says(side.o), session.Ends(side.o), side.o.Actor, side.o.Reason})
	}
	cli.WriteTable(c.Stdout, rows)
	if len(before)+len(after) > 0 && (is == nil || !is.Blocked) {
		fmt.Fprintln(c.Stdout)
		session.WriteChange(c, before, after)
	}
}

func remove(c cli.Console, args []string) error {
	var (
		in     session.Flags
		change session.Change
		limit  string
	)
	flags := c.NewFlags("override delete", deleteHelp)
	in.Register(flags)
	change.Register(flags)
	flags.StringVar(&limit, "limit", "", "the `name` of a limit; the record of all limits unless given")
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
	return drop(c, s, limit)
}

// drop removes a record and shows what that changes.
func drop(c cli.Console, s *session.Session, limit string) error {
	tenant, buckets := s.Holding.Scope.Tenant, own(s.Holding)
	before, err := s.Peek(tenant, buckets)
	if err != nil {
		return err
	}
	var removed *bucket.Override
	err = s.Call(func(ctx context.Context) error {
		removed, err = s.Store.DeleteOverride(ctx, tenant, s.Holding.Owner, limit)
		return err
	})
	if err != nil {
		return asUsage(err)
	}
	if removed == nil {
		fmt.Fprintf(c.Stderr, "%s has no such override record; gqlratelimit override list has those of the tenant\n", s.Holding.Scope.String())
		return cli.ErrFound
	}
	after, err := s.Peek(tenant, buckets)
	if err != nil {
		return fmt.Errorf("the record is removed; what is left now is not known: %w", err)
	}
	tell(c, removed, nil, before, after)
	return nil
}

func clearAll(c cli.Console, args []string) error {
	var (
		in     session.Flags
		change session.Change
	)
	flags := c.NewFlags("override clear", clearHelp)
	in.Redis.Register(flags)
	in.Scope.RegisterTenant(flags)
	change.Register(flags)
	if err := cli.ParseAlone(flags, args); err != nil {
		return err
	}
	if _, err := in.Scope.Owner(); err != nil {
		return err
	}
	live, err := in.Redis.Open(c)
	if err != nil {
		return err
	}
	defer live.Close()
	if err := change.Complete(c); err != nil {
		return err
	}
	var removed []bucket.Override
	err = live.Call(func(ctx context.Context) error {
		removed, err = live.Store.ClearOverrides(ctx, in.Scope.Tenant)
		return err
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(c.Stdout, "%s had %d override records, and has none now.\n", session.TenantName(in.Scope.Tenant), len(removed))
	if len(removed) > 0 {
		session.WriteRecords(c, removed)
	}
	return nil
}
