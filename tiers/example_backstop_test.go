package tiers_test

import (
	"fmt"

	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// All tenants together have what the database bears, those without limits included.
func ExampleBackstop() {
	policy, err := tiers.Load([]byte(`
version: 1
default: free
backstop:
  limits: {second: {capacity: 90000, per: second}}
  operations:
    Mutation.checkout: {limits: {second: {capacity: 400, per: second, unit: requests}}}
tiers:
  free: {limits: {minute: {capacity: 600, per: minute}}}
  internal: {unlimited: true}
`), 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, field := range []string{"Query.me", "Mutation.checkout"} {
		rules := policy.Rules(tiers.Subject{Tenant: "batch", Tier: "internal"}, tiers.Selection{Fields: []string{field}})
		fmt.Print(field, ":")
		for _, b := range rules.Backstop {
			limit := b.Limits.All()[0]
			fmt.Printf(" %d %s", limit.Capacity, limit.Unit)
		}
		fmt.Println()
	}
	// Output:
	// Query.me: 90000 points
	// Mutation.checkout: 90000 points 400 requests
}
