package redisswitch_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/policy/redisswitch"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// An operator eases the limits of one tenant for two hours, on every instance.
func Example() {
	folder, err := os.MkdirTemp("", "modes")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(folder) }()
	server, err := redistest.Launch(folder)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Kill()
	policy, err := tiers.Load([]byte("{version: 1, default: free, tiers: {free: {maxCost: 500}}}"), 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	modeOf := func(source tiers.Source, tenant string) string {
		return source.Snapshot().Rules(tiers.Subject{Tenant: tenant}, tiers.Selection{}).Mode.String()
	}

	serve := func(ctx context.Context, client redis.UniversalClient) error {
		// In each instance. The switch is its Config.Policy.
		source := tiers.NewModeSwitch(policy)
		applied := event.NewChannel(10)
		follower, err := redisswitch.Follow(redisswitch.FollowerConfig{
			Config:   redisswitch.Config{Client: client, Namespace: "shop"},
			Switch:   source,
			Observer: applied,
		})
		if err != nil {
			return err
		}
		defer func() { _ = follower.Close() }()
		<-applied.Events() // it has heard that there is none

		// By whoever may write into the Redis.
		switches, err := redisswitch.New(redisswitch.Config{Client: client, Namespace: "shop"})
		if err != nil {
			return err
		}
		if err := switches.Set(ctx, event.ModeSwitch{
			Tenant: "acme", AtMost: "shadow", Until: time.Now().Add(2 * time.Hour),
			Reason: "their importer loops, incident 17", By: "jo@example.com",
		}); err != nil {
			return err
		}
		<-applied.Events()
		fmt.Println(modeOf(source, "acme"), modeOf(source, "globex"))

		if _, err := switches.End(ctx, "acme", ""); err != nil {
			return err
		}
		<-applied.Events()
		fmt.Println(modeOf(source, "acme"), modeOf(source, "globex"))
		return nil
	}
	client, err := redisclient.New(server.Addr)
	if err == nil {
		defer func() { _ = client.Close() }()
		err = serve(context.Background(), client)
	}
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// shadow enforce
	// enforce enforce
}
