package incident

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/session"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/observe/report"
)

const refusalHelp = `
Usage: gqlratelimit refusal ID [flags]

Says why an operation was refused: the ID stands in extensions.refusalId of the error that the client
was given. It shows the limits as they were then, the line of the policy that says so, its revision,
and who has published it. The stream of denials has the latest refusals (docs/guide/rollout.md).

Where instances lease parts of limits, gqlratelimit budget show says who holds them now.

The exit code is 1 if the stream does not have it.

Example:

    gqlratelimit refusal WUPU6UX4QVTIGMQWYUS6LVWDHE
`

// blocked is the outcome of an operation that a record or the policy blocks.
const blocked = "blocked"

// maxID is how many bytes an id of a refusal has at most.
const maxID = 128

// Refusal is the sub-command refusal.
func Refusal(c cli.Console, args []string) error {
	var (
		in     session.Redis
		asJSON bool
	)
	fs := c.NewFlags("refusal", refusalHelp)
	in.Register(fs)
	cli.JSONVar(fs, &asJSON)
	others, err := cli.Parse(fs, args)
	switch {
	case err != nil:
		return err
	case len(others) != 1 || others[0] == "" || len(others[0]) > maxID:
		return cli.Usagef("say one id, of at most %d bytes, as extensions.refusalId of the error has it", maxID)
	}
	live, err := in.Open(c)
	if err != nil {
		return err
	}
	defer live.Close()
	r, err := reader(live)
	if err != nil {
		return err
	}
	var found *report.Refusal
	err = live.Call(func(ctx context.Context) (err error) {
		found, err = r.Refusal(ctx, others[0])
		return err
	})
	if errors.Is(err, report.ErrNotFound) {
		fmt.Fprintf(c.Stderr, "the stream of denials has no refusal %q in the namespace %s: it is too old, or was not kept; the logs of the servers may have it\n", others[0], live.Namespace)
		return cli.ErrFound
	}
	if err != nil {
		return err
	}
	out := struct {
		Version int             `json:"version"`
		Refusal *report.Refusal `json:"refusal"`
	}{cli.FormatVersion, found}
	return c.Report(asJSON, out, false, func(io.Writer) error {
		writeRefusal(c, found)
		return nil
	})
}

func writeRefusal(c cli.Console, r *report.Refusal) {
	d := &r.Decided
	say := func(what, format string, args ...any) {
		if text := fmt.Sprintf(format, args...); strings.Trim(text, " ") != "" {
			cli.WriteTable(c.Stdout, [][]string{{fmt.Sprintf("%-10s", what), text}})
		}
	}
	say("refused", "%s at %s on %s, %s", d.Code, d.At.UTC().Format(time.RFC3339), r.Instance, d.Outcome)
	say("who", "%s", subject(d))
	say("operation", "%s", strings.Join(strings.Fields(fmt.Sprintf("%s %s %s", d.Kind, d.Operation, strings.Join(d.RootFields, ", "))), " "))
	say("asked", "%d points%s", d.Cost, dearest(d))
	if d.MaxCost > 0 {
		say("above", "the maximum cost of %d points: %s", d.MaxCost, origin(&d.Origin))
	}
	say("rule", "%s", d.Rule)
	switch {
	case d.RetryAfter > 0:
		say("passes", "after %s, at %s", d.RetryAfter.Round(100*time.Millisecond), d.ClearsAt.UTC().Format(time.RFC3339))
	case d.Outcome == blocked:
		say("passes", "when the block ends: gqlratelimit policy explain shows the records of the tenant, and what the policy blocks")
	default:
		say("passes", "waiting does not help, or nobody knows")
	}
	if d.StoreResult != "" {
		say("store", "%s, fail mode %s", d.StoreResult, d.FailMode)
	}
	say("policy", "%s", policyText(&r.Policy))
	writeLimits(c, d)
}

func subject(d *event.Decided) string {
	text := "tenant " + d.Tenant
	if d.Team != "" {
		text += ", team " + d.Team
	}
	if d.User != "" {
		text += ", user " + d.User
	}
	return text + fmt.Sprintf(", tier %s by %s, mode %s", d.Tier, session.Place(d.Origin.Tier), d.Mode)
}

func dearest(d *event.Decided) string {
	if d.Dearest == "" {
		return ""
	}
	return ", most of it for " + d.Dearest
}

func policyText(p *report.Policy) string {
	if p.Revision == 0 {
		return ""
	}
	text := fmt.Sprintf("revision %d", p.Revision)
	if p.Author != "" {
		text += fmt.Sprintf(", published by %s: %s", p.Author, p.Reason)
	}
	return text
}

// origin names the place that holds, and what has changed it after the policy.
func origin(o *event.Origin) string {
	if o == nil {
		return ""
	}
	var parts []string
	if len(o.Rule) > 0 {
		place := o.Rule[len(o.Rule)-1]
		if o.Line > 0 {
			place += fmt.Sprintf(", line %d", o.Line)
		}
		parts = append(parts, place)
	}
	for _, record := range o.Overrides {
		parts = append(parts, fmt.Sprintf("record of %s: %s", record.Actor, record.Reason))
	}
	return strings.Join(parts, "; ")
}

// left says what was left of a limit, and where.
func left(l *event.LimitState) string {
	text := strconv.FormatInt(l.Remaining, 10)
	if l.Approximate {
		text += fmt.Sprintf(" (%d held here, %d free)", l.Held, l.Remaining-l.Held)
	}
	return text
}

func writeLimits(c cli.Console, d *event.Decided) {
	rows := [][]string{{"", "OWNER", "LIMIT", "ASKED", "LEFT", "OF", "FROM"}}
	for i := range d.Limits {
		l := &d.Limits[i]
		mark := ""
		switch {
		case l.Refuses:
			mark = "refused"
		case l.Exceeded:
			mark = "exceeded (" + l.Mode + ")"
		}
		owner := strings.TrimSpace(l.Level + " " + l.Owner)
		if l.Part != "" {
			owner += " " + l.Part
		}
		rows = append(rows, []string{mark, owner, l.Limit, fmt.Sprint(l.Asked), left(l), fmt.Sprintf("%d %s", l.Capacity, l.Unit), origin(l.Origin)})
	}
	if len(rows) > 1 {
		fmt.Fprintln(c.Stdout)
		cli.WriteTable(c.Stdout, rows)
	}
}
