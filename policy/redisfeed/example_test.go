package redisfeed_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/policy/redisfeed"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// publish replaces the expected revision.
func publish(ctx context.Context, feed *redisfeed.Feed, document []byte, expected uint64, key ed25519.PrivateKey) error {
	next := &policy.Revision{
		Number: expected + 1, Document: document, Hash: policy.HashOf(document),
		Author: "ada", Reason: "free gets more", Published: time.Now(),
	}
	next.Sign(key)
	if err := feed.Publish(ctx, next, expected); err != nil {
		return err // policy.ErrConflict: read what is there, and decide again
	}
	return nil
}

// A policy that is published to a Redis and followed by an instance.
func Example() {
	folder, err := os.MkdirTemp("", "policy")
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
	key := ed25519.NewKeyFromSeed([]byte(strings.Repeat("k", ed25519.SeedSize)))
	public, _ := key.Public().(ed25519.PublicKey)
	builtIn, err := tiers.Load([]byte("{version: 1, default: free, tiers: {free: {maxCost: 500}}}"), 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	keys, lastGood := []ed25519.PublicKey{public}, filepath.Join(folder, "policy.revision")

	serve := func(ctx context.Context, client redis.UniversalClient) error {
		feed, err := redisfeed.New(redisfeed.Config{Client: client})
		if err != nil {
			return err
		}
		follower, err := policy.Follow(ctx, feed, policy.Config{
			LastGood: lastGood, // such as /var/lib/shop/policy.revision
			First:    builtIn,  // until there is another one
			Keys:     keys,
		})
		if err != nil {
			return err
		}
		defer func() { _ = follower.Close() }()
		fmt.Println("revision", follower.Status().Number, "holds")

		if err := publish(ctx, feed, []byte("{version: 1, default: free, tiers: {free: {maxCost: 700}}}"), 0, key); err != nil {
			return err
		}
		// It is there within milliseconds; Reload does not even wait for those.
		if err := follower.Reload(ctx); err != nil {
			return err
		}
		fmt.Println("revision", follower.Status().Number, "holds")
		fmt.Println(follower.Snapshot().Rules(tiers.Subject{Tenant: "acme"}, tiers.Selection{}).MaxCost.Enforce, follower.Status().State)

		err = publish(ctx, feed, []byte("{version: 1, default: free, tiers: {free: {maxCost: 900}}}"), 0, key)
		fmt.Println("somebody was faster:", errors.Is(err, policy.ErrConflict))
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
	// revision 0 holds
	// revision 1 holds
	// 700 current
	// somebody was faster: true
}
