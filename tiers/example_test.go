package tiers_test

import (
	"fmt"

	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

func ExampleCompile() {
	snapshot, err := tiers.Compile(tiers.Policy{
		Default: "free",
		Tiers: map[string]tiers.Tier{
			"free": {
				MaxCost: 500,
				Limits: map[string]*tiers.Limit{
					"minute": {Capacity: 1000, Per: tiers.Minute},
					"day":    {Capacity: 50_000, Per: tiers.Day},
				},
				Operations: map[string]tiers.OperationRule{
					"Mutation.*": {Limits: map[string]*tiers.Limit{
						"minute": {Unit: "requests", Capacity: 30, Per: tiers.Minute},
					}},
				},
			},
			"enterprise": {Unlimited: true},
		},
		Tenants: map[string]tiers.Exception{"acme": {Tier: "enterprise"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	rules := snapshot.Rules(tiers.Subject{Tenant: "globex"}, tiers.Selection{Fields: []string{"Mutation.createOrder"}})
	fmt.Println(rules.Tier, "at most", rules.MaxCost.Enforce, "points an operation")
	for _, bucket := range rules.Buckets {
		for _, limit := range bucket.Limits.All() {
			fmt.Println(bucket.Owner.Level, bucket.Owner.Name, limit.Name, limit.Capacity, limit.Unit)
		}
	}
	fmt.Println("acme unlimited:", snapshot.Rules(tiers.Subject{Tenant: "acme"}, tiers.Selection{}).Unlimited)
	// Output:
	// free at most 500 points an operation
	// tenant  minute 1000 points
	// tenant  day 50000 points
	// operation Mutation.* minute 30 requests
	// acme unlimited: true
}

// A document with mistakes is refused whole, with all of them.
func ExampleParse() {
	_, err := tiers.Parse([]byte(`
version: 1
default: free
tiers:
  free:
    mode: enforced
    limits:
      minute: {capacity: 0, per: fortnight}
`))
	fmt.Println(err)
	// Output:
	// tiers: 3 mistakes in the policy:
	//   line 6, column 5: tiers.free.mode: mode "enforced" is unknown; off, shadow, warn or enforce fits
	//   line 8, column 16: tiers.free.limits.minute.capacity: a capacity of at least 1 is required
	//   line 8, column 29: tiers.free.limits.minute.per: "fortnight" is not a period; second, minute, hour, day, month, year or a duration such as 90s fits
}

// A document that lists many tenants is larger than what is read by default.
func ExampleParseConfig() {
	document := []byte("version: 1\ndefault: free\ntiers: {free: {maxCost: 100}, pro: {maxCost: 1000}}\ntenants:\n")
	for i := range 50_000 {
		document = fmt.Appendf(document, "  customer-%d: {tier: pro}\n", i)
	}
	_, err := tiers.Parse(document)
	fmt.Println(err != nil)
	policy, err := tiers.ParseConfig{MaxDocument: 4 << 20}.Parse(document)
	fmt.Println(len(policy.Tenants), err)
	// Output:
	// true
	// 50000 <nil>
}

// A tenant that was promised three times what others have keeps that when its tier changes.
func ExampleException() {
	for _, capacity := range []int64{1000, 1500} {
		snapshot, err := tiers.Compile(tiers.Policy{
			Default: "pro",
			Tiers: map[string]tiers.Tier{"pro": {Limits: map[string]*tiers.Limit{
				"minute": {Capacity: capacity, Per: tiers.Minute},
				"day":    {Capacity: 50 * capacity, Per: tiers.Day},
			}}},
			Tenants: map[string]tiers.Exception{
				"acme": {Times: 3, Limits: map[string]*tiers.Limit{"day": {Capacity: 60_000, Per: tiers.Day}}},
			},
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		rules := snapshot.Rules(tiers.Subject{Tenant: "acme"}, tiers.Selection{})
		for _, limit := range rules.Buckets[0].Limits.All() {
			fmt.Println(limit.Name, limit.Capacity)
		}
	}
	// Output:
	// minute 3000
	// day 60000
	// minute 4500
	// day 60000
}

// A search has a budget of its own in the place of the tenant's. An operation that mixes calls pays to both.
func ExampleOperationRule() {
	snapshot, err := tiers.Compile(tiers.Policy{
		Default: "free",
		Tiers: map[string]tiers.Tier{"free": {
			Limits: map[string]*tiers.Limit{"minute": {Capacity: 1000, Per: tiers.Minute}},
			Operations: map[string]tiers.OperationRule{
				"Query.search": {Instead: true, Limits: map[string]*tiers.Limit{"minute": {Capacity: 300, Per: tiers.Minute}}},
			},
		}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, fields := range [][]string{{"Query.search"}, {"Query.me"}, {"Query.me", "Query.search"}} {
		rules := snapshot.Rules(tiers.Subject{Tenant: "acme"}, tiers.Selection{Fields: fields})
		fmt.Print(fields, ":")
		for _, b := range rules.Buckets {
			fmt.Printf(" %v %d", b.Owner.Level, b.Limits.All()[0].Capacity)
		}
		fmt.Println()
	}
	// Output:
	// [Query.search]: operation 300
	// [Query.me]: tenant 1000
	// [Query.me Query.search]: tenant 1000 operation 300
}

// A key has its parts in any order, and one canonical spelling.
func ExampleParseKey() {
	key, err := tiers.ParseKey("tenant:acme,lang:en,list:a%2Cb")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(key)
	fmt.Println(key.Value("list"), key.Without("list"))
	// Output:
	// lang:en,list:a%2Cb,tenant:acme
	// a,b lang:en,tenant:acme
}

// Customers on trial have a budget a day beside that of their tier, by what their token says.
func ExampleCustomRule() {
	snapshot, err := tiers.Compile(tiers.Policy{
		Default:    "free",
		Tiers:      map[string]tiers.Tier{"free": {Limits: map[string]*tiers.Limit{"minute": {Capacity: 1000, Per: tiers.Minute}}}},
		Parameters: map[string]tiers.Parameter{"plan": {Claim: "plan"}},
		Custom: map[string]tiers.CustomRule{
			"plan:trial": {Limits: map[string]*tiers.Limit{"day": {Capacity: 5000, Per: tiers.Day}}},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, plan := range []string{"trial", "gold"} {
		rules := snapshot.Rules(tiers.Subject{Tenant: "acme", Claims: &tiers.Claims{"plan": plan}}, tiers.Selection{})
		for _, b := range rules.Buckets {
			fmt.Printf("%s: %s %q\n", plan, b.Limits.All()[0].Name, b.Owner.Name)
		}
	}
	// Output:
	// trial: minute ""
	// trial: day "plan:trial"
	// gold: minute ""
}

// Most subjects share their rules with others, and only some need a copy.
func ExampleSnapshot_SharedRules() {
	policy, err := tiers.Parse([]byte(`{version: 1, default: free, tiers: {free: {limits: {minute: {capacity: 100, per: minute}}}}}`))
	if err != nil {
		panic(err)
	}
	snapshot, err := tiers.Compile(policy)
	if err != nil {
		panic(err)
	}
	subject := tiers.Subject{Tenant: "acme"}
	rules := snapshot.SharedRules(subject)
	if rules == nil {
		own := snapshot.Rules(subject, tiers.Selection{})
		rules = &own
	}
	fmt.Println(rules.Tier, rules == snapshot.SharedRules(tiers.Subject{Tenant: "globex"}))
	// Output: free true
}
