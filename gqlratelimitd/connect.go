package main

import (
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/relay"
	"github.com/gqlgen-ratelimit/ratelimit/policy/redisfeed"
	"github.com/gqlgen-ratelimit/ratelimit/policy/redisswitch"
)

// connect has control know what stands in the Redis, if there is one.
func (d *daemon) connect(cfg *control.Config) error {
	if d.redis == nil {
		return nil
	}
	feed, err := redisfeed.New(redisfeed.Config{Client: d.redis, Namespace: d.options.Namespace})
	if err != nil {
		return err
	}
	if cfg.Modes, err = redisswitch.New(redisswitch.Config{Client: d.redis, Namespace: d.options.Namespace}); err != nil {
		return err
	}
	cfg.Instances, cfg.Budgets = feed, d.budgets
	// The relay is opened later.
	cfg.Relay = func() relay.Status { return d.relay.Status() }
	return nil
}
