package control

import (
	"context"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/relay"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

// Relaying returns how far changes have come on their way to Redis: [access.ReadFleet]. Which daemon is asked matters for all but Holder, Waiting, Lag and
// Unmanaged. There is [ErrNotFound] for a daemon without a Redis.
func (c *Control) Relaying(ctx context.Context, actor access.Actor) (*relay.Status, error) {
	if err := access.Authorize(actor, access.ReadFleet, ""); err != nil {
		return nil, err
	}
	if c.cfg.Relay == nil {
		return nil, ErrNotFound
	}
	r := c.cfg.Relay()
	r.Failure = visible(r.Failure, maxSaid)
	for i := range r.Refused {
		// They are a copy.
		refused := &r.Refused[i]
		refused.Name, refused.Error = visible(refused.Name, maxSaid), visible(refused.Error, maxSaid)
	}
	err := c.cfg.Store.Read(ctx, func(v *store.View) (err error) {
		var since time.Time
		if r.Waiting, since, err = v.Waiting(); err != nil {
			return err
		}
		if r.Lag = 0; r.Waiting > 0 {
			// The clock of who has written it may be another one.
			r.Lag = max(0, c.now().Sub(since))
		}
		r.Unmanaged, err = v.CountUnmanaged()
		return err
	})
	return &r, err
}
