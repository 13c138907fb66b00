package policies

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/daemon"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/session"
	"github.com/gqlgen-ratelimit/ratelimit/internal/policydiff"
	"github.com/gqlgen-ratelimit/ratelimit/internal/previewreport"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// planWithDaemon compares a policy file with the newest revision of a daemon.
func (in *planFlags) planWithDaemon(c cli.Console) error {
	document, err := session.ReadFile(in.next, tiers.MaxDocument)
	if err != nil {
		return err
	}
	out := planJSON{Version: session.FormatVersion, New: in.next, Changes: []policydiff.Change{}}
	if out.Findings, err = examine(in.next); err != nil {
		return err
	}
	for i := range out.Findings {
		out.Failed = out.Failed || out.Findings[i].Severity == wrong
	}
	client, err := in.daemon.Open(c)
	if err != nil {
		return err
	}
	defer client.Close()
	if !out.Failed {
		if err := in.compareWith(c, client, document, &out); err != nil {
			return err
		}
	}
	if in.JSON {
		err = c.WriteJSON(out)
	} else {
		writeDaemonPlan(c, &out, in.top)
	}
	switch {
	case err != nil:
		return err
	case out.Preview != nil && out.Preview.Halts:
		return cli.ErrHalt
	case out.Failed:
		return cli.ErrFound
	}
	return nil
}

// compareWith fills in what differs, and who would newly be refused.
func (in *planFlags) compareWith(c cli.Console, client *daemon.Client, document []byte, out *planJSON) error {
	newest, err := client.Newest()
	if err != nil {
		return err
	}
	if out.Old = "nothing"; newest != nil {
		out.Old = fmt.Sprintf("revision %d of the daemon", newest.Number)
	}
	if in.base != "" {
		base, err := session.ReadFile(in.base, tiers.MaxDocument)
		if err != nil {
			return err
		}
		same := newest != nil && (bytes.Equal(base, newest.Document) || bytes.Equal(document, newest.Document))
		out.Based, out.Failed = &same, !same
	}
	if newest != nil {
		if err := in.differences(c, newest, out); err != nil {
			return err
		}
	}
	if in.given() || in.noPreview {
		return nil
	}
	if out.Preview, err = client.Preview(document, in.top); err != nil {
		return err
	}
	failed, err := in.refuses(out.Preview)
	out.Failed = out.Failed || failed
	return err
}

// differences compares with the revision that holds, and replays records if there are some.
func (in *planFlags) differences(c cli.Console, newest *policy.Revision, out *planJSON) error {
	before, err := session.PolicyOf(newest, "of the daemon")
	if now, _, _, staged := tiers.StageParts(newest.Document); staged && err == nil {
		out.Old += ", which is in a roll-out: its policy of now"
		before, err = session.ParsePolicy(now, out.Old)
	}
	if err != nil {
		return err
	}
	after, err := session.LoadPolicy(in.next)
	if err != nil {
		return err
	}
	out.Changes, out.Following = compare(before, after)
	if !in.given() {
		return nil
	}
	if out.Refused, err = in.replay(c, before, after); err != nil {
		return err
	}
	most := 0.0
	if in.most != "" {
		most, err = cli.ParseShare("max-newly-refused", in.most)
	}
	out.Failed = out.Failed || out.Refused.Share > most
	return err
}

// refuses says whether a preview has somebody refused that may not be, or does not know.
func (in *planFlags) refuses(p *daemon.Preview) (bool, error) {
	total := &p.Report.Total
	switch {
	case p.Missing != "":
		// Of the first policy nobody knows either, and nothing is there to be kept.
		return p.Lowers && p.Against > 0, nil
	case in.most == "":
		return total.NewlyRefused > 0, nil
	}
	most, err := cli.ParseShare("max-newly-refused", in.most)
	return total.Operations > 0 && float64(total.NewlyRefused)/float64(total.Operations) > most, err
}

func writeDaemonPlan(c cli.Console, out *planJSON, top int) {
	failed := false
	for i := range out.Findings {
		fmt.Fprintln(c.Stdout, &out.Findings[i])
		failed = failed || out.Findings[i].Severity == wrong
	}
	if failed {
		return
	}
	writePlan(c, out, top)
	if out.Based != nil && !*out.Based {
		fmt.Fprintln(c.Stdout, "\nThe daemon has something else than the change began with: pull it, and merge both.")
	}
	if p := out.Preview; p != nil {
		writePreview(c, p, top)
	}
}

func writePreview(c cli.Console, p *daemon.Preview, top int) {
	r := &p.Report
	fmt.Fprintln(c.Stdout)
	if p.Missing != "" {
		fmt.Fprintf(c.Stdout, "Nobody knows who would newly be refused: %s.\n", cli.Plain(p.Missing))
	} else {
		fmt.Fprintf(c.Stdout, "Of %d recorded operations %d would be newly refused: of %s of tenants and %s of users; recorded: %s of tenants.\n",
			r.Total.Operations, r.Total.NewlyRefused, bounds(&r.Tenants), bounds(&r.Users), cli.Percent(r.Share))
	}
	rows := [][]string{{"TENANT", "TIER", "OPERATIONS", "REFUSED", "", "THEN", "NEWLY", "BY"}}
	for i := range r.Rows {
		row := &r.Rows[i]
		if top > 0 && i == top {
			break
		}
		rows = append(rows, []string{
			row.Tenant, row.Tier, fmt.Sprint(row.Operations), fmt.Sprint(row.Before), "→", fmt.Sprint(row.After), fmt.Sprint(row.NewlyRefused), causes(row.By),
		})
	}
	if len(rows) > 1 {
		cli.WriteTable(c.Stdout, rows)
	}
	if more := r.Unlisted + max(0, len(r.Rows)-len(rows)+1); more > 0 {
		fmt.Fprintf(c.Stdout, "… and %d further tenants that either policy refuses something; -top 0 shows them, at most 1000.\n", more)
	}
	if len(r.NotJudged) > 0 {
		fmt.Fprintf(c.Stdout, "Records do not say what was asked of %s: these refuse nothing here.\n", cli.Plain(strings.Join(r.NotJudged, ", ")))
	}
	if p.Misfits != nil {
		fmt.Fprintf(c.Stdout, "The records of %d tenants would stop fitting, and these have their tier without exceptions then:\n", p.Misfits.Total)
		for _, m := range p.Misfits.Tenants {
			fmt.Fprintf(c.Stdout, "    %s: %s\n", cli.Plain(m.Tenant), cli.Plain(m.Problem))
		}
	}
	if p.Remark != "" && p.Missing == "" && p.Lowers {
		fmt.Fprintln(c.Stdout, cli.Plain(sentence(p.Remark)))
	}
	if p.SecondPerson {
		fmt.Fprintf(c.Stdout, "It takes a second person: %s.\n", cli.Plain(cmp.Or(p.Problem, p.Reach)))
	}
}

// bounds is a share with its bounds.
func bounds(g *previewreport.Group) string {
	text := cli.Percent(g.Share)
	if g.Low != g.High {
		text += fmt.Sprintf(" (%s to %s)", cli.Percent(g.Low), cli.Percent(g.High))
	}
	return text
}

// causes says which limits newly refuse, and how many.
func causes(by []previewreport.Cause) string {
	texts := make([]string, len(by))
	for i := range by {
		texts[i] = by[i].String()
	}
	return strings.Join(texts, ", ")
}

// sentence makes one of a remark.
func sentence(text string) string {
	text = strings.ToUpper(text[:1]) + text[1:]
	if !strings.HasSuffix(text, "?") {
		text += "."
	}
	return text
}
