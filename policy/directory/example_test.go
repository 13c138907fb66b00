package directory_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gqlgen-ratelimit/ratelimit/policy/directory"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// A tenant that has bought more than its tier has, and gives a part of it to a team.
func ExampleOpen() {
	folder, err := os.MkdirTemp("", "directory")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(folder) }()
	follower, err := tiers.Load([]byte(`{version: 1, default: free, tiers: {
		free: {limits: {minute: {capacity: 100, per: minute}}},
		careful: {limits: {minute: {capacity: 20, per: minute}}}}}`), 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, records := context.Background(), directory.NewMemory()

	// Who writes checks first whether the record fits the policy, and says what it means to replace.
	document := []byte(`{
		"limits": {"minute": {"capacity": 500, "per": "minute"}},
		"allocations": {"teams": {"search": {"minute": {"capacity": 200, "per": "minute"}}}}
	}`)
	record, err := tiers.ParseRecord(document)
	if err == nil {
		err = record.Check(follower.Snapshot())
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	revision, err := records.Put(ctx, "acme", document, 0)
	fmt.Println("revision", revision, err)

	// The follower is that of policy.Follow, and records come from redisdirectory.New.
	d, err := directory.Open(ctx, follower, records, directory.Config{
		WhileUnknown: "careful",                        // for whom nobody knows while the records are away
		LastGood:     filepath.Join(folder, "records"), // such as /var/lib/shop/tenants.records
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = d.Close() }()

	// It is the Config.Policy of the extension, which does this.
	subject := tiers.Subject{Tenant: "acme", Team: "search"}
	rules := d.Snapshot().Rules(subject, tiers.Selection{Record: d.Prepare(ctx, subject)})
	for _, b := range rules.Buckets {
		fmt.Println(b.Owner.Level, b.Owner.Name, b.Limits.All()[0].Capacity)
	}
	_, err = records.Put(ctx, "acme", []byte(`{"blocked": true}`), 0)
	fmt.Println(err)
	// Output:
	// revision 1 <nil>
	// tenant  500
	// team search 200
	// directory: nothing was written: the record has revision 1
}
