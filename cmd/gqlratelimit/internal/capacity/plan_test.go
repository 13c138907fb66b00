package capacity_test

import (
	"bytes"
	"encoding/json"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/capacity"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
)

// round17 are figures by which a plan can be checked by hand: 17 µs a take, 15 µs an exchange.
func round17() *capacity.Figures {
	p := capacity.Processor{Take: capacity.Steps{17, 17, 17, 34}, Owner: capacity.Steps{9, 9, 9, 18}, Claim: 20, Settle: 10, Usage: 5, Exchange: 15, Holder: 0.1}
	return &capacity.Figures{
		Version: 1, Alone: p, Pipelined: p,
		Memory: capacity.Memory{Owner: capacity.Steps{100, 100, 100, 200}, Record: 150, UsageHour: 2000, Holding: 400},
	}
}

func demand() *capacity.Demand {
	return &capacity.Demand{
		Rate: 1e6, MeanRate: 1e6, Tenants: 100_000, Limits: []int{4}, Skew: 1, Spread: 100, Busy: 0.6, Fill: 0.5, NodeMemory: 1 << 30, Replicas: 1,
	}
}

func TestTheWorkOfAMillionDecisionsIsThatOfItsTakes(t *testing.T) {
	t.Parallel()
	plan := capacity.New(demand(), round17())
	require.InDelta(t, 17, plan.Cores, 1e-9)
	require.EqualValues(t, 29, plan.Masters, "17 cores of which each master may use 0.6")
	require.EqualValues(t, 58, plan.Nodes)
	require.Zero(t, plan.LeasedShare)
}

func TestLeasesTakeTheBusiestTenantsAwayAndLeaveTheLongTail(t *testing.T) {
	t.Parallel()
	for from, share := range map[float64]float64{20: 0.36, 5: 0.47} {
		d := demand()
		d.LeaseFrom = from
		plan := capacity.New(d, round17())
		require.InDelta(t, share, plan.LeasedShare, 0.01, "from %v a second", from)
		exchanges := plan.LeasedTenants * 100 * 2 * (15 + 99*0.1) / 1e6
		require.InDelta(t, 17*(1-plan.LeasedShare)+exchanges, plan.Cores, 1e-9)
	}
}

func TestTheTenantsThatAreLeasedAreThoseAboveTheThreshold(t *testing.T) {
	t.Parallel()
	d := demand()
	d.Tenants, d.LeaseFrom, d.Spread, d.Rate = 1000, 7, 3, 12_345
	sum := 0.0
	for k := range 1000 {
		sum += 1 / float64(k+1)
	}
	above, share := 0.0, 0.0
	for k := range 1000 {
		if part := 1 / float64(k+1) / sum; d.Rate*part/3 >= 7 {
			above, share = above+1, share+part
		}
	}
	plan := capacity.New(d, round17())
	require.InDelta(t, above, plan.LeasedTenants, 0)
	require.InDelta(t, share, plan.LeasedShare, 1e-9)
}

func TestOneTenantThatIsLeasedCostsItsExchangesOnly(t *testing.T) {
	t.Parallel()
	d := demand()
	d.Tenants, d.Spread, d.LeaseFrom = 1, 50, 20
	plan := capacity.New(d, round17())
	require.InDelta(t, 1, plan.LeasedShare, 0)
	require.InDelta(t, 100*(15+49*0.1)/1e6, plan.Cores, 1e-12, "50 instances, two exchanges a second each")
	d.LeaseFrom = 0
	require.InDelta(t, 17, capacity.New(d, round17()).BusiestTenant, 1e-9)
	require.Contains(t, strings.Join(capacity.New(d, round17()).Remarks, "\n"), "more nodes do not help")
}

func TestOwnersBelowALeasedTenantAskForEachDecision(t *testing.T) {
	t.Parallel()
	d := demand()
	d.Tenants, d.Users, d.Limits, d.LeaseFrom = 1, 10, []int{4, 2}, 20
	plan := capacity.New(d, round17())
	require.Equal(t, "takes of owners below a leased tenant", plan.Work[0].What)
	require.InDelta(t, 1e6, plan.Work[0].PerSecond, 0)
}

func TestAnswersOfKeysAreMostOfTheMemory(t *testing.T) {
	t.Parallel()
	d := demand()
	d.Rate, d.MeanRate, d.Keyed, d.KeyLife, d.AnswerBytes = 1000, 100, 0.1, 24*3600*1e9, 1024
	plan := capacity.New(d, round17())
	require.InDelta(t, 100*0.1*86_400*(150+1024)+100_000*100, plan.Bytes, 1)
	require.EqualValues(t, 2, plan.MastersForMemory)
}

func TestAPlanIsFiniteForTheLargestDemand(t *testing.T) {
	t.Parallel()
	d := demand()
	d.Rate, d.MeanRate, d.Tenants, d.Users, d.Keyed, d.KeyLife, d.AnswerBytes = 1e12, 1e12, 1e12, 1e12, 1, math.MaxInt64, 1<<29
	d.Limits, d.LeaseFrom, d.Skew, d.Busy, d.Fill, d.NodeMemory, d.Price, d.Usage = []int{32, 32}, 1e-9, 4, 0.01, 0.01, 1<<20, 1e12, true
	plan := capacity.New(d, round17())
	for _, n := range []float64{plan.Cores, plan.Bytes, plan.Masters, plan.Cost, plan.LeasedShare} {
		require.False(t, math.IsInf(n, 0) || math.IsNaN(n) || n < 0)
	}
	require.LessOrEqual(t, plan.LeasedShare, 1.0)
}

func TestSharesOfManyTenantsAddUpAsExactOnesDo(t *testing.T) {
	t.Parallel()
	// With exact fractions, where the sum is approximated from 100 000 tenants on.
	exact := new(big.Float).SetPrec(100)
	const tenants = 200_000
	for k := int64(1); k <= tenants; k++ {
		exact.Add(exact, new(big.Float).Quo(big.NewFloat(1), big.NewFloat(float64(k))))
	}
	sum, _ := exact.Float64()
	d := demand()
	d.Tenants, d.LeaseFrom, d.Spread = tenants, 0.999*1e6/sum, 1
	require.InDelta(t, 1/sum, capacity.New(d, round17()).LeasedShare, 1e-9)
}

// run runs the sub-command.
func run(t *testing.T, args ...string) (stdout string, err error) {
	t.Helper()
	var out bytes.Buffer
	err = capacity.Run(cli.Console{Stdout: &out, Stderr: &out, Getenv: func(string) string { return "" }}, args)
	return out.String(), err
}

func TestWhatIsMeasuredAndWhatIsCalculatedStandApart(t *testing.T) {
	t.Parallel()
	text, err := run(t, "-rate", "20000", "-tenants", "100000", "-json")
	require.NoError(t, err)
	var said struct {
		Measured   capacity.Figures `json:"measured"`
		Calculated capacity.Plan    `json:"calculated"`
	}
	require.NoError(t, json.Unmarshal([]byte(text), &said))
	require.Equal(t, readFile(t), said.Measured)
	require.InDelta(t, 20_000*said.Measured.Alone.Take[2]/1e6, said.Calculated.Cores, 1e-9)
}

func TestAPolicySaysHowManyLimitsADecisionCharges(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	require.NoError(t, os.WriteFile(path, []byte(`version: 1
default: pro
tiers:
  pro:
    limits:
      second: {capacity: 100, per: second}
      day: {capacity: 1000, per: day}
    users:
      limits:
        minute: {capacity: 10, per: minute}
  free: {unlimited: true}
`), 0o600))
	text, err := run(t, "-rate", "10", "-tenants", "10", "-users", "5", "-policy", path)
	require.NoError(t, err)
	require.Contains(t, text, "Limits of the owners of a decision: 2, 1.")
	_, err = run(t, "-rate", "10", "-tenants", "10", "-policy", path, "-tier", "free")
	require.ErrorContains(t, err, "charges nothing")
	_, err = run(t, "-rate", "10", "-tenants", "10", "-policy", path, "-tier", "gold")
	require.ErrorContains(t, err, `no tier "gold"`)
}

func TestEveryMistakeIsNamed(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"-rate does not fit: 1 to 1000000000000 does": {"-tenants", "1"},
		"-tenants does not fit":                       {"-rate", "1"},
		"-mean-rate does not fit: 0 to 5 does":        {"-rate", "5", "-mean-rate", "6", "-tenants", "1"},
		"-skew does not fit":                          {"-rate", "5", "-tenants", "1", "-skew", "NaN"},
		`-limits "4,0"`:                               {"-rate", "5", "-tenants", "1", "-limits", "4,0"},
		"say with -users":                             {"-rate", "5", "-tenants", "1", "-limits", "4,4"},
		"-users are owners below":                     {"-rate", "5", "-tenants", "1", "-users", "4"},
		"give one of them":                            {"-rate", "5", "-tenants", "1", "-limits", "4", "-policy", "p"},
		"-tier is one of a policy":                    {"-rate", "5", "-tenants", "1", "-tier", "pro"},
		`-node-memory "8 apples" is no size`:          {"-rate", "5", "-tenants", "1", "-node-memory", "8 apples"},
		"-busy is 0%":                                 {"-rate", "5", "-tenants", "1", "-busy", "0%"},
		"-keyed is 200%":                              {"-rate", "5", "-tenants", "1", "-keyed", "200%"},
		"only flags are known":                        {"-rate", "5", "-tenants", "1", "more"},
	} {
		_, err := run(t, args...)
		require.ErrorContains(t, err, want, "%v", args)
		require.ErrorAs(t, err, new(*cli.UsageError))
	}
}

func TestFiguresOfAnotherFormAreRefused(t *testing.T) {
	t.Parallel()
	good, err := os.ReadFile(figuresFile)
	require.NoError(t, err)
	for want, text := range map[string]string{
		"unknown field": strings.Replace(string(good), `"claim"`, `"claims"`, 1),
		"version 2":     strings.Replace(string(good), `"version": 1`, `"version": 2`, 1),
		"follows":       string(good) + "{}",
		"is 0":          `{"version": 1}`,
	} {
		path := filepath.Join(t.TempDir(), "figures.json")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := run(t, "-rate", "5", "-tenants", "1", "-figures", path)
		require.ErrorContains(t, err, want)
	}
}
