package main

import (
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/relay"
	"github.com/gqlgen-ratelimit/ratelimit/observe/report"
	"github.com/gqlgen-ratelimit/ratelimit/policy/redisswitch"
)

// connect has control know what stands in the Redis, if there is one.
func (d *daemon) connect(cfg *control.Config) error {
	if d.redis == nil {
		return nil
	}
	reader, err := report.NewReader(report.Place{Client: d.redis, Namespace: d.options.Namespace})
	if err != nil {
		return err
	}
	if cfg.Modes, err = redisswitch.New(redisswitch.Config{Client: d.redis, Namespace: d.options.Namespace}); err != nil {
		return err
	}
	cfg.Instances, cfg.Budgets = reader, d.budgets
	// The relay is opened later.
	cfg.Relay = func() relay.Status { return d.relay.Status() }
	return nil
}
