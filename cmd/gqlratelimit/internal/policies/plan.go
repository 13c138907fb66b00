package policies

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/session"
	"github.com/gqlgen-ratelimit/ratelimit/internal/policydiff"
	"github.com/gqlgen-ratelimit/ratelimit/tiers/simulate"
)

const planHelp = `
Usage: gqlratelimit policy plan -new FILE [-old FILE] [-records FILE | -recorded] [flags]

Says what a new policy changes: which limits of which tiers, and of tenants that the policies list.
Without -old it is compared with the newest revision in Redis. It says whom the new policy would
refuse more often than the old: with -records by recorded costs, as simulate.Writer has written
them, with -recorded by what instances have recorded in Redis, where what the directory has of
tenants is looked at.

The exit code is 1 if the share of recorded operations that is newly refused is larger than
-max-newly-refused, and else 0.

Examples:

    gqlratelimit policy plan -redis '$REDIS_URL' -new policy.yaml
    gqlratelimit policy plan -redis '$REDIS_URL' -new policy.yaml -recorded -since 30m
    gqlratelimit policy plan -old live.yaml -new policy.yaml -records costs.jsonl -max-newly-refused 0.1%
`

// planJSON is the JSON of plan.
type planJSON struct {
	Version int    `json:"version"`
	Failed  bool   `json:"failed"`
	Old     string `json:"old"`
	New     string `json:"new"`
	// Changes are in the order of tiers, then of tenants.
	Changes []policydiff.Change `json:"changes"`
	// Following is how many tenants that the policies list change as their tier does.
	Following int `json:"following,omitempty"`
	// Refused says whom the new policy would refuse more often. It is absent without records.
	Refused *refusedJSON `json:"refused,omitempty"`
}

type refusedJSON struct {
	Operations int64 `json:"operations"`
	// NewlyRefused is by how many operations each tenant is refused more often, added up.
	NewlyRefused int64   `json:"newlyRefused"`
	Share        float64 `json:"share"`
	// Tenants are those that are refused more often, the largest number first.
	Tenants []refusedTenant `json:"tenants,omitempty"`
	// Recorded says how much of everything the operations are, nil for those of a file.
	Recorded *sampleJSON `json:"recorded,omitempty"`
	// NotJudged are limits and rules that records do not say enough about.
	NotJudged []string `json:"notJudged,omitempty"`
}

type refusedTenant struct {
	Tenant     string `json:"tenant"`
	Tier       string `json:"tier"`
	Operations int64  `json:"operations"`
	Old        int64  `json:"old"`
	New        int64  `json:"new"`
}

// planFlags are the flags of plan.
type planFlags struct {
	session.Flags
	recordings

	old, next, most string
	top             int
	asJSON          bool
}

func plan(c cli.Console, args []string) error {
	var in planFlags
	flags := c.NewFlags("policy plan", planHelp)
	in.Redis.Register(flags)
	flags.StringVar(&in.Policy.Name, "policy-name", "main", "the `name` of the policy in Redis, as in redisfeed.Config")
	cli.JSONVar(flags, &in.asJSON)
	flags.StringVar(&in.old, "old", "", "`file` of the old policy; the newest revision in Redis unless given")
	flags.StringVar(&in.next, "new", "", "`file` of the new policy")
	flags.StringVar(&in.Policy.Directory, "directory", "main", "the `name` of the directory of tenants in Redis, as in redisdirectory.Config")
	in.register(flags)
	flags.StringVar(&in.most, "max-newly-refused", "", "fail if a larger `share` of the recorded operations would be newly refused, such as 0.1%")
	flags.IntVar(&in.top, "top", shownChanges, "show only so many changes of tenants and tenants that are refused; 0 for all")
	if err := cli.ParseAlone(flags, args); err != nil {
		return err
	}
	if err := in.check(); err != nil {
		return err
	}
	before, after, err := in.read(c)
	if err != nil {
		return err
	}
	out := planJSON{Version: cli.FormatVersion, Old: before.From, New: after.From}
	out.Changes, out.Following = compare(before, after)
	if in.given() {
		if out.Refused, err = in.replay(c, before, after); err != nil {
			return err
		}
	}
	if in.most != "" {
		if out.Refused == nil {
			return cli.Usagef("-max-newly-refused needs recorded costs: say -records FILE or -recorded")
		}
		most, err := cli.ParseShare("max-newly-refused", in.most)
		if err != nil {
			return err
		}
		out.Failed = out.Refused.Share > most
	}
	return c.Report(in.asJSON, out, out.Failed, func(io.Writer) error {
		writePlan(c, &out, in.top)
		return nil
	})
}

func (in *planFlags) check() error {
	switch {
	case in.next == "":
		return cli.Usagef("no new policy is given: say -new FILE")
	case in.top < 0:
		return cli.Usagef("-top is not negative")
	case in.most != "":
		if _, err := cli.ParseShare("max-newly-refused", in.most); err != nil {
			return err
		}
	}
	return in.recordings.check()
}

// read reads both policies.
func (in *planFlags) read(c cli.Console) (before, after *session.Policy, err error) {
	if in.old != "" {
		before, err = session.LoadPolicy(in.old)
	} else {
		var live *session.Live
		if !in.Redis.Given(c) {
			return nil, nil, cli.Usagef("no old policy is given: say -old FILE, or -redis ADDRESS for the newest revision there")
		}
		if live, err = in.Redis.Open(c); err != nil {
			return nil, nil, err
		}
		defer live.Close()
		before, err = in.Policy.Running(live)
	}
	if err != nil {
		return nil, nil, err
	}
	after, err = session.LoadPolicy(in.next)
	return before, after, err
}

// replay says whom the new policy would refuse more often.
func (in *planFlags) replay(c cli.Console, before, after *session.Policy) (*refusedJSON, error) {
	var live *session.Live
	if in.samples {
		var err error
		if live, err = in.Redis.Open(c); err != nil {
			return nil, err
		}
		defer live.Close()
	}
	t, err := in.traffic(&in.Flags, live)
	if err != nil {
		return nil, err
	}
	was, err := t.replay(before.Snapshot)
	if err != nil {
		return nil, err
	}
	is, err := t.replay(after.Snapshot)
	if err != nil {
		return nil, err
	}
	old := make(map[string]simulate.TenantReport, len(was.Tenants))
	for _, t := range was.Tenants {
		old[t.Tenant] = t
	}
	out := &refusedJSON{
		Operations: is.Total.Operations, Recorded: t.sample, NotJudged: simulate.NotJudged(t.known, t.units, before.Snapshot, after.Snapshot),
	}
	for _, t := range is.Tenants {
		if more := t.Refused - old[t.Tenant].Refused; more > 0 {
			out.NewlyRefused += more
			out.Tenants = append(out.Tenants, refusedTenant{t.Tenant, t.Tier, t.Operations, old[t.Tenant].Refused, t.Refused})
		}
	}
	slices.SortStableFunc(out.Tenants, func(a, b refusedTenant) int {
		return cmp.Or(cmp.Compare(b.New-b.Old, a.New-a.Old), cmp.Compare(a.Tenant, b.Tenant))
	})
	if out.Operations > 0 {
		out.Share = float64(out.NewlyRefused) / float64(out.Operations)
	}
	return out, nil
}

// compare returns what changes, and how many tenants that the policies list change as their tier does.
func compare(before, after *session.Policy) (changes []policydiff.Change, following int) {
	return policydiff.Compare(
		&policydiff.Policy{Snapshot: before.Snapshot, Written: &before.Written}, &policydiff.Policy{Snapshot: after.Snapshot, Written: &after.Written})
}

func writePlan(c cli.Console, out *planJSON, top int) {
	fmt.Fprintf(c.Stdout, "From %s to %s:\n", cli.Plain(out.Old), cli.Plain(out.New))
	writeChanges(c, out.Changes, top)
	if out.Following > 0 {
		fmt.Fprintf(c.Stdout, "%d listed tenants change as their tier does.\n", out.Following)
	}
	if out.Refused != nil {
		writeRefused(c, out.Refused, top)
	}
}

// shownChanges is how many changes of tenants are shown where nothing is said.
const shownChanges = 50

// writeChanges writes changes as a table, with so many of tenants; 0 for all.
func writeChanges(c cli.Console, changes []policydiff.Change, top int) {
	rows := [][]string{{"WHOSE", "WHAT", "OLD", "", "NEW"}}
	left, tenants := 0, 0
	for _, change := range changes {
		whose := "all"
		switch {
		case change.Tier != "":
			whose = "tier " + change.Tier
		case change.Tenant != "":
			whose = "tenant " + change.Tenant
			if tenants++; top > 0 && tenants > top {
				left++
				continue
			}
		}
		rows = append(rows, []string{whose, change.What, cmp.Or(change.Old, "(none)"), "→", cmp.Or(change.New, "(none)")})
	}
	if len(rows) == 1 {
		fmt.Fprintln(c.Stdout, "No limit changes.")
	} else {
		cli.WriteTable(c.Stdout, rows)
	}
	if left > 0 {
		fmt.Fprintf(c.Stdout, "… and %d further changes of tenants; -top 0 shows them.\n", left)
	}
}

func writeRefused(c cli.Console, r *refusedJSON, top int) {
	fmt.Fprintf(c.Stdout, "\nOf %d recorded operations %d would be newly refused, %s, of %d tenants.\n",
		r.Operations, r.NewlyRefused, cli.Percent(r.Share), len(r.Tenants))
	rows := [][]string{{"TENANT", "TIER", "OPERATIONS", "REFUSED", "", "THEN"}}
	for i, t := range r.Tenants {
		if top > 0 && i == top {
			break
		}
		rows = append(rows, []string{t.Tenant, t.Tier, fmt.Sprint(t.Operations), fmt.Sprint(t.Old), "→", fmt.Sprint(t.New)})
	}
	if len(rows) > 1 {
		cli.WriteTable(c.Stdout, rows)
	}
	writeRecorded(c, r.Recorded, r.NotJudged)
}
