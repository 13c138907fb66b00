package tiers_test

import (
	"fmt"

	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// A policy is tried beside the live one, and then takes its place.
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
	// Days later, after a look at the metric ratelimit.candidate.decisions:
	if err := rollout.Promote(); err != nil {
		fmt.Println(err)
		return
	}
	rules := rollout.Snapshot().Rules(tiers.Subject{Tenant: "acme"}, tiers.Selection{})
	fmt.Println(rules.Buckets[0].Limits.All()[0].Capacity)
	// Output: 600
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
