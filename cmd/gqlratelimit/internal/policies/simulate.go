package policies

import (
	"fmt"
	"os"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/session"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
	"github.com/gqlgen-ratelimit/ratelimit/tiers/simulate"
)

const simulateHelp = `
Usage: gqlratelimit policy simulate -records FILE [-policy FILE] [flags]

Replays recorded costs, as simulate.Writer has written them, and says for each tenant which share of
its operations the policy would refuse if all of it were enforced. Every budget is full at first. What
the directory has of tenants is not looked at. All records are held in memory, some 100 bytes each.

The exit code is 1 if a larger share than -max-refused would be refused.

Example:

    gqlratelimit policy simulate -policy policy.yaml -records costs.jsonl -max-refused 5%
`

func runSimulate(c cli.Console, args []string) error {
	var (
		in         session.Flags
		path       string
		maxRefused string
	)
	flags := c.NewFlags("policy simulate", simulateHelp)
	in.Redis.Register(flags)
	in.Policy.Register(flags)
	in.RegisterJSON(flags)
	flags.StringVar(&path, "records", "", "`file` of recorded costs, one JSON object a line")
	flags.StringVar(&maxRefused, "max-refused", "100%", "fail if a larger `share` would be refused, such as 5% or 0.05")
	if err := cli.ParseAlone(flags, args); err != nil {
		return err
	}
	most, err := cli.ParseShare("max-refused", maxRefused)
	switch {
	case err != nil:
		return err
	case path == "":
		return cli.Usagef("no records are given: say -records FILE")
	}
	held, closeRedis, err := readPolicy(c, &in)
	if err != nil {
		return err
	}
	defer closeRedis()
	report, err := replay(path, held.Snapshot)
	if err != nil {
		return err
	}
	if in.JSON {
		err = c.WriteJSON(struct {
			Version int             `json:"version"`
			Failed  bool            `json:"failed"`
			Report  simulate.Report `json:"report"`
		}{session.FormatVersion, report.Total.RefusedShare > most, report})
	} else {
		err = report.WriteTable(c.Stdout)
	}
	if err == nil && report.Total.RefusedShare > most {
		return cli.ErrFound
	}
	return err
}

// readPolicy reads the policy of the flags, from Redis where there is no file. The second result ends what it has opened.
func readPolicy(c cli.Console, in *session.Flags) (*session.Policy, func(), error) {
	if in.Policy.HasFile(c) || !in.Redis.Given(c) {
		held, err := in.Policy.Read(c, nil)
		return held, func() {}, err
	}
	s, err := in.OpenPolicy(c)
	if err != nil {
		return nil, nil, err
	}
	return s.Policy, s.Close, nil
}

// replay replays the records of a file.
func replay(path string, policy *tiers.Snapshot) (simulate.Report, error) {
	file, err := os.Open(path)
	if err != nil {
		return simulate.Report{}, fmt.Errorf("%s: cannot be read", path)
	}
	defer func() { _ = file.Close() }()
	report, err := simulate.Run(simulate.Read(file), policy)
	if err != nil {
		return report, fmt.Errorf("%s: %w", path, err)
	}
	return report, nil
}
