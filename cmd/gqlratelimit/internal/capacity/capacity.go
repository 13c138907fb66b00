// Package capacity is the sub-command capacity: how many nodes of Redis a limiter needs, with how much memory, and what they cost.
package capacity

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/session"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

const help = `
Usage: gqlratelimit capacity -rate N -tenants N [-limits 4,4 | -policy FILE -tier NAME] [flags]

Says how many nodes of Redis a limiter needs, with how much memory, and what they cost. It asks no
server: what a take of each shape needs was measured once, and all else is calculated from that.

-limits has a number for each owner that a decision charges, the tenant first: 4,2 are a tenant with
four limits and a user with two. -policy and -tier read the numbers from a policy document, as an
operation of a user meets them that no operation rule matches.

-figures takes measurements of your own, in the form of
cmd/gqlratelimit/internal/capacity/figures.json, which this writes on a machine of yours:

    go test ./cmd/gqlratelimit/internal/capacity -run Figures -update

Examples:

    gqlratelimit capacity -rate 20000 -tenants 100000
    gqlratelimit capacity -rate 1000000 -tenants 100000 -skew 1 -spread 100 -lease-from 20
`

// Bounds of what is asked for, so that everything can be calculated.
const (
	mostNumber = 1e12
	mostOwners = 32
	mostLimits = 32
	mostSkew   = 4
	hours      = 24
)

// inputs are the flags of the sub-command.
type inputs struct {
	Demand

	limits, policy, tier, figures   string
	keyed, settled, busy, fill, mem string
	answer                          string
	asJSON                          bool
}

// Run is the sub-command capacity.
func Run(c cli.Console, args []string) error {
	var in inputs
	flags := c.NewFlags("capacity", help)
	flags.Float64Var(&in.Rate, "rate", 0, "decisions in a second at the peak, a `number`")
	flags.Float64Var(&in.MeanRate, "mean-rate", 0, "decisions in a second over a day, a `number`; that of -rate unless given")
	flags.Int64Var(&in.Tenants, "tenants", 0, "tenants that have spent something of which not all has come back, a `number`")
	flags.Int64Var(&in.Users, "users", 0, "the same of the owners below them, a `number`")
	flags.StringVar(&in.limits, "limits", "", "`numbers` of limits of each owner that a decision charges, the tenant first (default 4)")
	flags.StringVar(&in.policy, "policy", "", "policy `file` that says how many limits there are")
	flags.StringVar(&in.tier, "tier", "", "`name` of the tier in the policy")
	flags.StringVar(&in.keyed, "keyed", "0%", "`share` of the decisions with an idempotency key")
	flags.DurationVar(&in.KeyLife, "key-life", hours*time.Hour, "`time` that the record of a key lives")
	flags.StringVar(&in.answer, "answer", "1KiB", "`size` of a stored answer")
	flags.StringVar(&in.settled, "settled", "0%", "`share` of the decisions without a key that are settled")
	flags.BoolVar(&in.Usage, "usage", false, "usage is counted")
	flags.Float64Var(&in.Skew, "skew", 1, "exponent of the Zipf distribution of decisions over tenants, a `number`; 0 is the same for each")
	flags.Int64Var(&in.Spread, "spread", 1, "over how many instances the decisions of a tenant are spread, a `number`")
	flags.Float64Var(&in.LeaseFrom, "lease-from", 0, "decisions in a second from which on an instance leases a tenant, a `number`; 0 leases none")
	flags.BoolVar(&in.Pipelined, "pipelined", false, "64 callers share pipelines, as in a busy instance")
	flags.StringVar(&in.busy, "busy", "60%", "`share` of a core that a Redis may use")
	flags.StringVar(&in.mem, "node-memory", "8GiB", "`size` of the memory of a node")
	flags.StringVar(&in.fill, "fill", "60%", "`share` of that memory that may be used")
	flags.Int64Var(&in.Replicas, "replicas", 1, "replicas of each master, a `number`")
	flags.Float64Var(&in.Price, "price", 0, "what a node costs, a `number` in any currency for any time")
	flags.StringVar(&in.figures, "figures", "", "`file` of measurements of your own")
	flags.BoolVar(&in.asJSON, "json", false, "write JSON (docs/reference/command.md describes the format)")
	if err := cli.ParseAlone(flags, args); err != nil {
		return err
	}
	if err := in.read(); err != nil {
		return err
	}
	f, err := readFigures(in.figures)
	if err != nil {
		return err
	}
	plan := New(&in.Demand, f)
	if in.asJSON {
		return c.WriteJSON(struct {
			Version    int      `json:"version"`
			Demand     *Demand  `json:"demand"`
			KeyLife    float64  `json:"keyLifeSeconds"`
			Measured   *Figures `json:"measured"`
			Calculated *Plan    `json:"calculated"`
		}{session.FormatVersion, &in.Demand, in.KeyLife.Seconds(), f, plan})
	}
	write(c.Stdout, &in.Demand, f, plan)
	return nil
}

// read turns the flags into a demand, and says what makes no sense.
func (in *inputs) read() (err error) {
	for _, share := range []struct {
		flag, text string
		to         *float64
		least      float64
	}{{"keyed", in.keyed, &in.Keyed, 0}, {"settled", in.settled, &in.Settled, 0}, {"busy", in.busy, &in.Busy, 0.01}, {"fill", in.fill, &in.Fill, 0.01}} {
		if *share.to, err = cli.ParseShare(share.flag, share.text); err != nil {
			return err
		}
		if *share.to > 1 || *share.to < share.least {
			return cli.Usagef("-%s is %s; %s to 100%% fits", share.flag, share.text, cli.Percent(share.least))
		}
	}
	if in.NodeMemory, err = parseSize("node-memory", in.mem); err != nil {
		return err
	}
	if in.AnswerBytes, err = parseSize("answer", in.answer); err != nil {
		return err
	}
	if in.MeanRate == 0 {
		in.MeanRate = in.Rate
	}
	if err := in.readLimits(); err != nil {
		return err
	}
	return in.check()
}

// check says which number makes no sense.
func (in *inputs) check() error {
	for _, number := range []struct {
		flag        string
		is          float64
		least, most float64
	}{
		{"rate", in.Rate, 1, mostNumber},
		{"mean-rate", in.MeanRate, 0, in.Rate},
		{"tenants", float64(in.Tenants), 1, mostNumber},
		{"users", float64(in.Users), 0, mostNumber},
		{"skew", in.Skew, 0, mostSkew},
		{"spread", float64(in.Spread), 1, 1e6},
		{"lease-from", in.LeaseFrom, 0, mostNumber},
		{"replicas", float64(in.Replicas), 0, 5},
		{"price", in.Price, 0, mostNumber},
		{"node-memory", float64(in.NodeMemory), 1 << 20, 1 << 50},
		{"answer", float64(in.AnswerBytes), 0, 512 << 20},
		{"key-life", in.KeyLife.Hours(), 0, 366 * hours},
	} {
		if !(number.is >= number.least && number.is <= number.most) {
			return cli.Usagef("-%s does not fit: %s to %s does", number.flag, plain(number.least), plain(number.most))
		}
	}
	switch {
	case len(in.Limits) > 1 && in.Users == 0:
		return cli.Usagef("-limits has owners below the tenant: say with -users how many of them there are")
	case len(in.Limits) == 1 && in.Users > 0:
		return cli.Usagef("-users are owners below the tenant, which have no limits: -limits 4,2 gives them two")
	}
	return nil
}

// readLimits reads how many limits each owner of a decision has.
func (in *inputs) readLimits() error {
	switch {
	case in.policy == "" && in.tier != "":
		return cli.Usagef("-tier is one of a policy: say -policy FILE")
	case in.policy != "" && in.limits != "":
		return cli.Usagef("-limits and -policy say the same: give one of them")
	case in.policy != "":
		return in.readPolicy()
	case in.limits == "":
		in.Limits = []int{4}
		return nil
	}
	for number := range strings.SplitSeq(in.limits, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(number))
		if err != nil || n < 1 || n > mostLimits || len(in.Limits) == mostOwners {
			return cli.Usagef("-limits %.60q: up to %d numbers from 1 to %d with commas between them fit", in.limits, mostOwners, mostLimits)
		}
		in.Limits = append(in.Limits, n)
	}
	return nil
}

// readPolicy reads them from a policy.
func (in *inputs) readPolicy() error {
	held, err := session.LoadPolicy(in.policy)
	if err != nil {
		return err
	}
	if in.tier != "" && !held.HasTier(in.tier) {
		return cli.Usagef("the policy has no tier %.60q", in.tier)
	}
	// Nobody has this name, so that no exception holds.
	rules := held.Rules(tiers.Subject{Tenant: "\x00", Team: "\x00", User: "\x00", Tier: in.tier}, tiers.Selection{})
	for i := range rules.Buckets {
		if n := rules.Buckets[i].Limits.Len(); n > 0 {
			in.Limits = append(in.Limits, n)
		}
	}
	if len(in.Limits) == 0 {
		return cli.Usagef("the tier %.60q charges nothing, so that it needs no Redis", rules.Tier)
	}
	return nil
}

// parseSize reads a size such as 8GiB or 500MB.
func parseSize(flag, text string) (int64, error) {
	number, unit := strings.TrimSpace(text), 1.0
	for _, known := range []struct {
		name  string
		bytes float64
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1}} {
		if rest, is := strings.CutSuffix(number, known.name); is {
			number, unit = strings.TrimSpace(rest), known.bytes
			break
		}
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || !(n >= 0) || n*unit > math.MaxInt64/2 {
		return 0, cli.Usagef("-%s %.40q is no size: say 8GiB or 500MB", flag, text)
	}
	return int64(n * unit), nil
}

// plain writes a number without an exponent.
func plain(n float64) string { return strings.TrimSuffix(fmt.Sprintf("%.2f", n), ".00") }
