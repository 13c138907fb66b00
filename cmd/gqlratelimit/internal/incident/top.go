package incident

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/session"
	"github.com/gqlgen-ratelimit/ratelimit/observe/report"
)

const topHelp = `
Usage: gqlratelimit top [-by decisions|refused|wouldRefuse|cost] [flags]

Shows what all instances have decided in the last minute: the busiest and most refused tenants and
operations, and each instance with the revision that it serves. Instances write it once a second
(docs/guide/rollout.md).

Example:

    gqlratelimit top -by refused -n 10
`

// builtIn is the revision of an instance that has a policy of its own.
const builtIn = "(built in)"

// Top is the sub-command top.
func Top(c cli.Console, args []string) error {
	var (
		in     session.Redis
		by     string
		n      int
		asJSON bool
	)
	fs := c.NewFlags("top", topHelp)
	in.Register(fs)
	cli.JSONVar(fs, &asJSON)
	fs.StringVar(&by, "by", "decisions", "the `number` by which tenants and operations are sorted: decisions, refused, wouldRefuse or cost")
	fs.IntVar(&n, "n", 20, "show so many tenants and operations")
	if err := cli.ParseAlone(fs, args); err != nil {
		return err
	}
	order, ok := orders[by]
	switch {
	case !ok:
		return cli.Unknown("number", by, []string{"decisions", "refused", "wouldRefuse", "cost"})
	case n < 1 || n > 1000:
		return cli.Usagef("-n %d: 1 to 1000 fit", n)
	}
	live, err := in.Open(c)
	if err != nil {
		return err
	}
	defer live.Close()
	all, err := summary(c, live)
	if err != nil {
		return err
	}
	sortBy(all, order, n)
	out := struct {
		Version int             `json:"version"`
		Fleet   *report.Summary `json:"fleet"`
	}{cli.FormatVersion, all}
	return c.Report(asJSON, out, len(all.Instances) == 0, func(io.Writer) error {
		writeTop(c, live.Namespace, all)
		return nil
	})
}

var orders = map[string]func(report.Counts) int64{
	"decisions":   func(n report.Counts) int64 { return n.Decisions },
	"refused":     func(n report.Counts) int64 { return n.Refused },
	"wouldRefuse": func(n report.Counts) int64 { return n.WouldRefuse },
	"cost":        func(n report.Counts) int64 { return n.Cost },
}

// sortBy keeps so many tenants and operations, those with most first.
func sortBy(all *report.Summary, order func(report.Counts) int64, n int) {
	slices.SortStableFunc(all.Tenants, func(a, b report.Tenant) int { return cmp.Compare(order(b.Counts), order(a.Counts)) })
	slices.SortStableFunc(all.Operations, func(a, b report.Operation) int { return cmp.Compare(order(b.Counts), order(a.Counts)) })
	all.Tenants = all.Tenants[:min(n, len(all.Tenants))]
	all.Operations = all.Operations[:min(n, len(all.Operations))]
}

func writeTop(c cli.Console, namespace string, all *report.Summary) {
	if len(all.Instances) == 0 {
		fmt.Fprintf(c.Stdout, "No instance has reported in the namespace %s within ten seconds: name another with -namespace, or see docs/guide/rollout.md for how they do.\n", namespace)
		return
	}
	fmt.Fprintf(c.Stdout, "%s, in the last minute: %d decisions, %d refused (%s), %d more if everything were enforced, %d points\n\n",
		cli.Count(len(all.Instances), "instance"), all.Recent.Decisions, all.Recent.Refused, cli.Percent(all.Recent.RefusedShare()), all.Recent.WouldRefuse, all.Recent.Cost)
	counts := func(n report.Counts) []string {
		return []string{fmt.Sprint(n.Decisions), fmt.Sprint(n.Refused), cli.Percent(n.RefusedShare()), fmt.Sprint(n.WouldRefuse), fmt.Sprint(n.Cost)}
	}
	rows := [][]string{{"TENANT", "TIER", "DECISIONS", "REFUSED", "SHARE", "WOULD REFUSE", "POINTS"}}
	for _, t := range all.Tenants {
		rows = append(rows, append([]string{t.Name, t.Tier}, counts(t.Counts)...))
	}
	if all.Unlisted > 0 {
		rows = append(rows, []string{"(others)", "", fmt.Sprint(all.Unlisted)})
	}
	cli.WriteTable(c.Stdout, rows)
	fmt.Fprintln(c.Stdout)
	if len(all.Operations) > 0 {
		rows = [][]string{{"OPERATION", "DECISIONS", "REFUSED", "SHARE", "WOULD REFUSE", "POINTS"}}
		for _, o := range all.Operations {
			rows = append(rows, append([]string{o.Name}, counts(o.Counts)...))
		}
		cli.WriteTable(c.Stdout, rows)
		fmt.Fprintln(c.Stdout)
	}
	rows = [][]string{{"INSTANCE", "REVISION", "BY", "DECISIONS", "REFUSED", "MODE SWITCHES"}}
	for i := range all.Instances {
		one := &all.Instances[i]
		// Nobody has told the instance of a revision: it has no feed.
		revision, author := builtIn, ""
		if one.Policy != nil {
			revision, author = fmt.Sprint(one.Policy.Revision), one.Policy.Author
		}
		rows = append(rows, []string{one.Name, revision, author, fmt.Sprint(one.Recent.Decisions), fmt.Sprint(one.Recent.Refused), fmt.Sprint(len(inForce(one)))})
	}
	cli.WriteTable(c.Stdout, rows)
	for i := range all.Instances {
		if dropped := all.Instances[i].Dropped; dropped > 0 {
			fmt.Fprintf(c.Stdout, "%s has dropped %d events since it was started: there was no room, or a tenant had too many\n", all.Instances[i].Name, dropped)
		}
	}
}
