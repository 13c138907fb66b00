package policies

import (
	"io"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/session"
	"github.com/gqlgen-ratelimit/ratelimit/tiers/simulate"
)

const simulateHelp = `
Usage: gqlratelimit policy simulate -records FILE | -recorded [-policy FILE] [flags]

Replays recorded operations, and says for each tenant which share of them the policy would refuse if
all of it were enforced. Every budget is full at first. -records is a file as simulate.Writer has
written it; -recorded takes what instances have recorded in Redis (docs/guide/rollout.md). All of it is
held in memory, some 100 bytes each.

What the directory has of tenants is looked at with -recorded. What records do not say enough about
is named, and refuses nothing.

The exit code is 1 if a larger share than -max-refused would be refused.

Examples:

    gqlratelimit policy simulate -policy policy.yaml -records costs.jsonl -max-refused 5%
    gqlratelimit policy simulate -policy policy.yaml -recorded -since 30m
`

func runSimulate(c cli.Console, args []string) error {
	var (
		in         session.Flags
		recorded   recordings
		maxRefused string
		asJSON     bool
	)
	flags := c.NewFlags("policy simulate", simulateHelp)
	in.Redis.Register(flags)
	in.Policy.Register(flags)
	cli.JSONVar(flags, &asJSON)
	recorded.register(flags)
	flags.StringVar(&maxRefused, "max-refused", "100%", "fail if a larger `share` would be refused, such as 5% or 0.05")
	if err := cli.ParseAlone(flags, args); err != nil {
		return err
	}
	most, err := cli.ParseShare("max-refused", maxRefused)
	switch {
	case err != nil:
		return err
	case !recorded.given():
		return cli.Usagef("no records are given: say -records FILE, or -recorded for those of the instances in Redis")
	}
	if err := recorded.check(); err != nil {
		return err
	}
	var live *session.Live
	if recorded.samples || !in.Policy.HasFile(c) && in.Redis.Given(c) {
		if live, err = in.Redis.Open(c); err != nil {
			return err
		}
		defer live.Close()
	}
	held, err := in.Policy.Read(c, live)
	if err != nil {
		return err
	}
	replayed, err := recorded.traffic(&in, live)
	if err != nil {
		return err
	}
	report, err := replayed.replay(held.Snapshot)
	if err != nil {
		return err
	}
	failed, notJudged := report.Total.RefusedShare > most, simulate.NotJudged(replayed.known, replayed.units, held.Snapshot)
	out := struct {
		Version   int             `json:"version"`
		Failed    bool            `json:"failed"`
		Report    simulate.Report `json:"report"`
		Recorded  *sampleJSON     `json:"recorded,omitempty"`
		NotJudged []string        `json:"notJudged,omitempty"`
	}{cli.FormatVersion, failed, report, replayed.sample, notJudged}
	return c.Report(asJSON, out, failed, func(w io.Writer) error {
		err := report.WriteTable(w)
		if err == nil {
			writeRecorded(c, replayed.sample, notJudged)
		}
		return err
	})
}
