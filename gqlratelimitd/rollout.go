package main

import (
	"context"

	"github.com/gqlgen-ratelimit/ratelimit/digest/redisdigest"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/rollout"
)

// openDriver makes what drives roll-outs, by the digests that instances write. Where several daemons have one database each of them drives: of two that
// would take the same step the store lets one.
func (d *daemon) openDriver(context.Context) error {
	if d.redis == nil {
		return nil
	}
	digests, err := redisdigest.NewReader(redisdigest.Config{Client: d.redis, Namespace: d.options.Namespace})
	if err != nil {
		return err
	}
	states := d.control.RolloutStore()
	if err := rollout.Observe(d.metrics, states); err != nil {
		return err
	}
	d.driver, err = rollout.New(rollout.Config{
		Store: states, Digests: digests.Digests, Interval: d.options.interval, Now: d.options.now,
		Moved:  d.rolloutMoved,
		Failed: func(err error) { d.log.Warn("nobody could look at the roll-out", "error", err) },
	})
	return err
}

// rolloutMoved logs where a roll-out stands, whoever has brought it there.
func (d *daemon) rolloutMoved(s *rollout.State) {
	log := d.log.Info
	if s.Phase == rollout.Halted {
		log = d.log.Warn
	}
	log("the roll-out has moved", "id", s.ID, "phase", string(s.Phase), "step", s.Step+1, "revision", s.Revision, "why", s.Why)
}
