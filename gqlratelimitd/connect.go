package main

import (
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
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
	cfg.Instances, cfg.Relay, cfg.Budgets = feed, d.relayStatus, d.budgets
	return nil
}

// relayStatus is what the relay knows, in the words of control.
func (d *daemon) relayStatus() control.RelayStatus {
	is := d.relay.Status()
	s := control.RelayStatus{
		Leads: is.Leads, Holder: is.Holder, Failure: is.Failure, FailingSince: is.FailingSince, Swept: is.Swept, Unnamed: is.Unnamed,
	}
	for _, r := range is.Refused {
		s.Refused = append(s.Refused, control.RelayRefusal(r))
	}
	return s
}
