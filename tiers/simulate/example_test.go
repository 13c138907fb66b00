package simulate_test

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/tiers"
	"github.com/gqlgen-ratelimit/ratelimit/tiers/simulate"
)

func ExampleRun() {
	policy, err := tiers.Compile(tiers.Policy{
		Default: "free",
		Tiers: map[string]tiers.Tier{
			// What is in shadow counts as enforced: the question is what enforcing would refuse.
			"free": {Mode: "shadow", Limits: map[string]*tiers.Limit{"minute": {Capacity: 100, Per: tiers.Minute}}},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	// A server writes a record for each decision that its observer is told.
	var log bytes.Buffer
	records := simulate.NewWriter(&log)
	start := time.Date(2026, time.June, 1, 12, 0, 0, 0, time.UTC)
	decided := func(after time.Duration, tenant string, points int64) {
		if err := records.Write(simulate.Record{At: start.Add(after), Tenant: tenant, Points: points}); err != nil {
			fmt.Println(err)
		}
	}
	decided(0, "acme", 60)
	decided(1*time.Second, "acme", 60)
	decided(2*time.Second, "globex", 7)
	decided(3*time.Second, "acme", 140)
	decided(time.Minute, "acme", 60)

	report, err := simulate.Run(simulate.Read(&log), policy)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(report)
	// Output:
	// TENANT  TIER  OPERATIONS  POINTS  P50  P95  P99  MAX  REFUSED  SHARE  REFUSED BY
	// acme    free  4           320     60   140  140  140  2        50.0%  minute 2 (50.0%, never 1)
	// globex  free  1           7       7    7    7    7    0        0.0%   -
	// total   -     5           327     60   140  140  140  2        40.0%  minute 2 (40.0%, never 1)
}

// A replay says of each operation what a policy makes of it.
func ExampleReplay() {
	policy, err := tiers.Compile(tiers.Policy{
		Default:    "free",
		Parameters: map[string]tiers.Parameter{"lang": {Header: "Accept-Language"}},
		Tiers:      map[string]tiers.Tier{"free": {Limits: map[string]*tiers.Limit{"minute": {Capacity: 100, Per: tiers.Minute}}}},
		Custom: map[string]tiers.CustomRule{
			"lang:en,tenant:acme": {Instead: true, Limits: map[string]*tiers.Limit{"minute": {Capacity: 500, Per: tiers.Minute}}},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	replay, err := simulate.NewReplay(policy, simulate.ReplayConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	start := time.Date(2026, time.June, 1, 12, 0, 0, 0, time.UTC)
	for second, language := range []string{"en", "en", "de"} {
		judgment, err := replay.Judge(context.Background(), &simulate.Record{
			At: start.Add(time.Duration(second) * time.Second), Tenant: "acme", Points: 150,
			Parameters: map[string]string{"header:Accept-Language": language},
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(language, "refused:", judgment.Refused, "left:", judgment.Limits[0].Remaining)
	}
	// Output:
	// en refused: false left: 350
	// en refused: false left: 208
	// de refused: true left: 100
}
