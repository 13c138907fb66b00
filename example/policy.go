package main

import (
	"context"
	_ "embed"
	"fmt"
	"log/slog"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/policy/directory"
	"github.com/gqlgen-ratelimit/ratelimit/policy/directory/redisdirectory"
	"github.com/gqlgen-ratelimit/ratelimit/policy/redisfeed"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

//go:embed policy.yaml
var builtInPolicy []byte

// policy returns the built-in policy, or one that follows a file or a Redis.
func (l *limiter) policy(opts options, client redis.UniversalClient, logger *slog.Logger, told event.Observer) (tiers.Source, error) {
	cfg := policy.Config{MaxDocument: opts.policyMaxBytes, Observe: policy.ObserveConfig{Logger: logger, Observer: told}}
	switch {
	case opts.follow:
		return l.follow(client, cfg)
	case opts.policy != "":
		file, err := policy.OpenFile(opts.policy, cfg)
		if err != nil {
			return nil, err
		}
		l.close = append(l.close, file.Close)
		return file, nil
	}
	return ofBuiltIn()
}

func ofBuiltIn() (*tiers.Snapshot, error) {
	snapshot, err := tiers.Load(builtInPolicy, 1)
	if err != nil {
		return nil, fmt.Errorf("the policy that is built in is wrong: %w", err)
	}
	return snapshot, nil
}

// follow returns what gqlratelimitd publishes: the policy, and the records of tenants. A server that starts before it, or without its
// Redis, has the policy that is built in.
func (l *limiter) follow(client redis.UniversalClient, cfg policy.Config) (tiers.Source, error) {
	first, err := ofBuiltIn()
	if err != nil {
		return nil, err
	}
	feed, err := redisfeed.New(redisfeed.Config{Client: client, Namespace: namespace, MaxDocument: cfg.MaxDocument})
	if err != nil {
		return nil, err
	}
	cfg.First = first
	follower, err := policy.Follow(context.Background(), feed, cfg)
	if err != nil {
		return nil, err
	}
	l.close = append(l.close, follower.Close)
	records, err := redisdirectory.New(redisdirectory.Config{Client: client, Namespace: namespace})
	if err != nil {
		return nil, err
	}
	tenants, err := directory.Open(context.Background(), follower, records, directory.Config{Observe: directory.ObserveConfig{Logger: cfg.Observe.Logger}})
	if err != nil {
		return nil, err
	}
	l.close = append(l.close, tenants.Close)
	return tenants, nil
}
