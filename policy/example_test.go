package policy_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// A policy file that is followed, and what an observer is told of it.
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

	follower, err := policy.OpenFile(path, policy.Config{Observe: policy.ObserveConfig{
		Observer: event.Func(func(_ context.Context, e event.Event) {
			switch e := e.(type) {
			case event.PolicyApplied:
				fmt.Println("revision", e.Revision, "holds")
			case event.PolicyRefused:
				fmt.Println("revision", e.Revision, "is refused for its", e.Cause, "and revision", e.Holds, "stays")
			}
		}),
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = follower.Close() }()

	// The file is looked at every second; Reload does not wait for that.
	write("{version: 1, default: free, tiers: {free: {maxCost: 700}}}")
	_ = follower.Reload(context.Background())
	write("{version: 1, default: free, tiers: {free: {maxCost: none}}}")
	_ = follower.Reload(context.Background())
	fmt.Println(follower.Snapshot().Rules(tiers.Subject{Tenant: "acme"}, tiers.Selection{}).MaxCost.Enforce)
	// Output:
	// revision 1 holds
	// revision 2 holds
	// revision 3 is refused for its document and revision 2 stays
	// 700
}

// What a server serves without a feed: the last good policy on its disk, else the one that was built in.
func ExampleFollow() {
	builtIn, err := tiers.Load([]byte("{version: 1, default: free, tiers: {free: {maxCost: 500}}}"), 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	follower, err := policy.Follow(context.Background(), policy.NewFile("/etc/shop/no-such-policy.yaml"), policy.Config{
		First:   builtIn,
		Observe: policy.ObserveConfig{Observer: event.NewChannel(10)},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = follower.Close() }()
	status := follower.Status()
	fmt.Println(follower.Snapshot().Rules(tiers.Subject{Tenant: "acme"}, tiers.Selection{}).MaxCost.Enforce, status.State)
	// Output: 500 never
}
