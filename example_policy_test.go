package ratelimit_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
	"github.com/gqlgen-ratelimit/ratelimit/tiers/simulate"
)

// Shadow, look, enforce: record what operations cost, and ask what a policy would have refused.
func ExampleConfig_observeFirst() {
	log := &strings.Builder{}
	var cfg ratelimit.Config
	records := simulate.NewWriter(log)
	cfg.Observe.Admissions = 1 // tell what was admitted too, each time
	cfg.Observe.Observer = event.Func(func(_ context.Context, e event.Event) {
		d, ok := e.(event.Decided)
		if !ok || d.Charge || d.RefusalID != "" || slices.Contains([]string{"replayed", "validated"}, d.Outcome) {
			return // it did not run
		}
		_ = records.Write(simulate.Record{
			At: d.At, Tenant: d.Tenant, Team: d.Team, User: d.User,
			Tier: d.SubjectTier, Operations: d.RootFields, Points: d.Cost,
		})
	})

	tell := func(d event.Decided) {
		d.At, d.Tenant = time.Now(), "acme"
		cfg.Observe.Observer.Observe(context.Background(), d)
	}
	for _, points := range []int64{3, 5, 8, 40, 90} {
		tell(event.Decided{Cost: points, Outcome: "admitted"})
	}
	// One that was only priced, which a client may do as often as it likes.
	tell(event.Decided{Cost: 1_000, Outcome: "validated"})
	candidate, err := tiers.Compile(tiers.Policy{Default: "free", Tiers: map[string]tiers.Tier{
		"free": {Limits: map[string]*tiers.Limit{"hour": {Capacity: 60, Per: tiers.Hour}}},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	file := strings.NewReader(log.String())
	report, err := simulate.Run(simulate.Read(file), candidate)
	if err != nil {
		fmt.Println(err)
		return
	}
	acme := report.Tenants[0]
	fmt.Printf("median %d points, %d of %d refused\n", acme.P50, acme.Refused, acme.Operations)
	// Output: median 8 points, 1 of 5 refused
}

// A policy file that is reloaded when it changes.
func ExampleConfig_policyFile() {
	dir, err := os.MkdirTemp("", "policy")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := dir + "/policy.yaml"
	document := "version: 1\ndefault: free\ntiers: {free: {limits: {minute: {capacity: 1000, per: minute}}}}\n"
	if err := os.WriteFile(path, []byte(document), 0o600); err != nil {
		fmt.Println(err)
		return
	}

	serve := func() error {
		source, err := policy.OpenFile(path, policy.Config{})
		if err != nil {
			return err // every mistake in the document, with its line
		}
		defer func() { _ = source.Close() }() // looks at the file no more

		cfg := ratelimit.Config{Policy: source}
		rules := cfg.Policy.Snapshot().Rules(ratelimit.Subject{Tenant: "acme"}, tiers.Selection{})
		fmt.Println(rules.Tier, rules.Buckets[0].Limits.All()[0].Capacity)
		return nil
	}
	if err := serve(); err != nil {
		fmt.Println(err)
	}
	// Output: free 1000
}

// An operator's way out: no limit refuses any more, and what would have been refused is still reported.
func ExampleConfig_emergency() {
	policy, err := tiers.Compile(tiers.Policy{Default: "free", Tiers: map[string]tiers.Tier{"free": {MaxCost: 500}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	emergency := tiers.NewModeSwitch(policy)
	cfg := ratelimit.Config{Policy: emergency}

	// Where operators can reach it, in an internal endpoint for example:
	emergency.AtMost(bucket.Shadow)

	fmt.Println(cfg.Policy.Snapshot().Rules(ratelimit.Subject{Tenant: "acme"}, tiers.Selection{}).Mode)
	// Output: shadow
}
