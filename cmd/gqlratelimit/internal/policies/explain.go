package policies

import (
	"fmt"
	"strings"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/session"
	"github.com/gqlgen-ratelimit/ratelimit/internal/policydiff"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

const explainHelp = `
Usage: gqlratelimit policy explain -tenant T [-team M] [-user U] [-operation O] [flags]

Says what holds for a tenant, of its operations, and for the team and the user that are named, and
where in the policy each of it stands. Where a Redis is given, what the directory has of the tenant
holds too, and its override records are listed.

Example:

    gqlratelimit policy explain -policy policy.yaml -tenant acme -user jo
`

func explain(c cli.Console, args []string) error {
	var in session.Flags
	flags := c.NewFlags("policy explain", explainHelp)
	in.Register(flags)
	if err := cli.ParseAlone(flags, args); err != nil {
		return err
	}
	if _, err := in.Scope.Owner(); err != nil {
		return err
	}
	if in.Redis.Given(c) {
		s, err := in.Open(c)
		if err != nil {
			return err
		}
		defer s.Close()
		records, err := s.Overrides(in.Scope.Tenant)
		if err != nil {
			return err
		}
		writeExplained(c, s.Holding)
		if len(records) == 0 {
			fmt.Fprintln(c.Stdout, "It has no override records.")
			return nil
		}
		fmt.Fprintln(c.Stdout, "\nOverride records beat what stands above:")
		session.WriteRecords(c, records)
		return nil
	}
	held, err := in.Policy.Read(c, nil)
	if err != nil {
		return err
	}
	h, err := held.Resolve(in.Scope, nil)
	if err != nil {
		return err
	}
	for _, note := range h.Notes() {
		fmt.Fprintln(c.Stderr, "note:", note)
	}
	writeExplained(c, h)
	return nil
}

func writeExplained(c cli.Console, h *session.Holding) {
	session.WriteHeading(c, h)
	if r := h.Policy.Revision; r != nil && r.Author != "" {
		fmt.Fprintln(c.Stdout, cli.Plain(fmt.Sprintf("Published by %s: %s", r.Author, r.Reason)))
	}
	if !h.Rules.Throttle.Usual() {
		fmt.Fprintln(c.Stdout, "While servers are overloaded: "+h.Rules.Throttle.String())
	}
	if h.Record != nil {
		fmt.Fprintln(c.Stdout, cli.Plain("Its record in the directory: "+h.Record.Document()))
	}
	for _, most := range []struct {
		points int64
		mode   bucket.Mode
	}{{h.Rules.MaxCost.Enforce, bucket.Enforce}, {h.Rules.MaxCost.Warn, bucket.Warn}, {h.Rules.MaxCost.Shadow, bucket.Shadow}} {
		if from, ok := h.Rules.MaxCostProvenance(h.Subject, h.Selection(), most.points, most.mode); ok {
			fmt.Fprintf(c.Stdout, "An operation costs at most %d points (%s): %s\n", most.points, most.mode, places(from))
		}
	}
	writeBackstop(c, h)
	buckets := h.Rules.Buckets
	if h.Scope.Operation == "" {
		buckets = h.All()
	}
	rows := [][]string{{"OWNER", "LIMIT", "ALLOWS", "MODE", "BY", "FAIL MODE", "FROM"}}
	for _, b := range buckets {
		for _, limit := range b.Limits.All() {
			from, _ := h.Rules.LimitProvenance(h.Subject, b.Owner, limit.Name)
			rows = append(rows, []string{
				session.OwnerName(b.Owner), limit.Name, session.LimitText(&limit), limit.Mode.String(), session.Place(from.Mode), limit.FailMode.String(), places(from),
			})
		}
	}
	if len(rows) > 1 {
		cli.WriteTable(c.Stdout, rows)
	}
}

// writeBackstop says which limits over all tenants its operations are charged to first.
func writeBackstop(c cli.Console, h *session.Holding) {
	buckets := h.Rules.Backstop
	if h.Scope.Operation == "" {
		buckets = policydiff.Backstop(h.Policy.Snapshot, &h.Policy.Written)
	}
	for _, b := range buckets {
		of, at := "", "backstop."
		if b.Owner.Level != bucket.Tenant {
			of, at = " for "+session.OwnerName(b.Owner), at+"operations."+cli.Plain(b.Owner.Name)+"."
		}
		for _, limit := range b.Limits.All() {
			fmt.Fprintf(c.Stdout, "All tenants together have %s%s (%s), which is taken first: %slimits.%s\n", session.LimitText(&limit), of, limit.Mode, at, limit.Name)
		}
	}
}

// places names the places of a policy that define a rule: the last one holds.
func places(from tiers.Provenance) string {
	text := strings.Join(from.Rule, ", then ")
	if from.Line > 0 {
		text += fmt.Sprintf(", line %d", from.Line)
	}
	return text
}
