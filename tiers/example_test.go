package tiers_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"time"

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
	rules := snapshot.Rules(tiers.Subject{Tenant: "globex"}, []string{"Mutation.createOrder"})
	fmt.Println(rules.Tier, "at most", rules.MaxCost.Enforce, "points an operation")
	for _, bucket := range rules.Buckets {
		for _, limit := range bucket.Limits.All() {
			fmt.Println(bucket.Owner.Level, bucket.Owner.Name, limit.Name, limit.Capacity, limit.Unit)
		}
	}
	fmt.Println("acme unlimited:", snapshot.Rules(tiers.Subject{Tenant: "acme"}, nil).Unlimited)
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

func ExampleOpenFile() {
	folder, err := os.MkdirTemp("", "policy")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(folder) }()
	path := filepath.Join(folder, "policy.yaml")
	write := func(document string) {
		// A rename shows readers the old file or the new one, never a half.
		if err := os.WriteFile(path+".new", []byte(document), 0o600); err != nil {
			fmt.Println(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			fmt.Println(err)
		}
	}
	write("{version: 1, default: free, tiers: {free: {maxCost: 500}}}")

	file, err := tiers.OpenFile(path, tiers.FileOptions{
		OnReload: func(s *tiers.Snapshot, err error) {
			fmt.Println("generation", s.Generation(), "holds; mistake:", err != nil)
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = file.Close() }()

	// The file is looked at every two seconds; Reload does not wait for that.
	write("{version: 1, default: free, tiers: {free: {maxCost: 700}}}")
	_ = file.Reload()
	write("{version: 1, default: free, tiers: {free: {maxCost: none}}}")
	_ = file.Reload()
	fmt.Println(file.Snapshot().Rules(tiers.Subject{Tenant: "acme"}, nil).MaxCost.Enforce)
	// Output:
	// generation 2 holds; mistake: false
	// generation 2 holds; mistake: true
	// 700
}

func ExampleSimulate() {
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
	records := tiers.NewRecordWriter(&log)
	start := time.Date(2026, time.June, 1, 12, 0, 0, 0, time.UTC)
	decided := func(after time.Duration, tenant string, points int64) {
		if err := records.Write(tiers.Record{At: start.Add(after), Tenant: tenant, Points: points}); err != nil {
			fmt.Println(err)
		}
	}
	decided(0, "acme", 60)
	decided(1*time.Second, "acme", 60)
	decided(2*time.Second, "globex", 7)
	decided(3*time.Second, "acme", 140)
	decided(time.Minute, "acme", 60)

	report, err := tiers.Simulate(tiers.ReadRecords(&log), policy)
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
