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

// A document of two policies reaches every instance as any document does: half of the tenants have the next one.
func ExampleStageDocument() {
	const now = "version: 1\ndefault: free\ntiers: {free: {limits: {minute: {capacity: 1000, per: minute}}}}\n"
	const next = "version: 1\ndefault: free\ntiers: {free: {limits: {minute: {capacity: 600, per: minute}}}}\n"

	document, err := tiers.StageDocument([]byte(now), []byte(next), tiers.Stage{ID: "tighter-2026-11", Seed: "november", Percent: 50})
	if err != nil {
		fmt.Println(err)
		return
	}
	policy, err := tiers.Load(document, 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, tenant := range []string{"acme", "globex", "initech"} {
		rules := policy.Rules(tiers.Subject{Tenant: tenant}, tiers.Selection{})
		fmt.Println(tenant, rules.Buckets[0].Limits.All()[0].Capacity)
	}
	// The others are judged by it all the same, without being refused: it is the candidate of whatever serves the policy.
	id, _ := tiers.CandidateOf(policy)
	fmt.Println(id)
	// Output:
	// acme 600
	// globex 600
	// initech 1000
	// tighter-2026-11
}
