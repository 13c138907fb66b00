package tiers_test

import (
	"fmt"

	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// A policy is tried beside the live one.
func ExampleRollout() {
	perMinute := func(capacity int64) tiers.Policy {
		return tiers.Policy{Default: "free", Tiers: map[string]tiers.Tier{
			"free": {Limits: map[string]*tiers.Limit{"minute": {Capacity: capacity, Per: tiers.Minute}}},
		}}
	}
	live, _ := tiers.Compile(perMinute(1000))
	next, _ := tiers.Compile(perMinute(600))

	rollout := tiers.NewRollout(live) // is Config.Policy
	if err := rollout.Propose("tighter-2026-11", next); err != nil {
		fmt.Println(err)
		return
	}
	// The metric ratelimit.candidate.decisions says what it would do.
	id, candidate := rollout.Candidate()
	for _, policy := range []*tiers.Snapshot{rollout.Snapshot(), candidate} {
		rules := policy.Rules(tiers.Subject{Tenant: "acme"}, tiers.Selection{})
		fmt.Println(rules.Buckets[0].Limits.All()[0].Capacity)
	}
	fmt.Println(id)
	// Output:
	// 1000
	// 600
	// tighter-2026-11
}

// A limit that was tried in mode shadow is enforced for one tenant in ten, on every instance for the same ones.
func ExampleEnforcement() {
	policy, err := tiers.Load([]byte(`
version: 1
default: free
tiers:
  free:
    enforcement: {share: 10, seed: limit-of-a-day}
    limits:
      day: {capacity: 1000, per: day, mode: shadow}
`), 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, tenant := range []string{"acme", "globex", "initech", "umbrella"} {
		rules := policy.Rules(tiers.Subject{Tenant: tenant}, tiers.Selection{})
		fmt.Println(tenant, rules.Buckets[0].Limits.All()[0].Mode)
	}
	// Output:
	// acme shadow
	// globex shadow
	// initech enforce
	// umbrella shadow
}
