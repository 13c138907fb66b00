package control

import (
	"context"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

// RelayStatus is what the relay of this daemon knows of its work. Besides Holder, all of it is of the daemon that leads, and zero in
// others.
type RelayStatus struct {
	// Leads says that this daemon relays, and Holder which one does: empty if that is not known or none.
	Leads  bool
	Holder string
	// Failure is why nothing can be relayed just now, and FailingSince since when. They are zero while all is well.
	Failure      string
	FailingSince time.Time
	// Swept is when everything was compared last, zero before the first time.
	Swept time.Time
	// Refused is what Redis has not as the database has it, and will not have before somebody changes it.
	Refused []RelayRefusal
	// Unnamed is how many keys of override records do not say whose they are, as of Swept.
	Unnamed int
}

// RelayRefusal is why one thing is not relayed.
type RelayRefusal struct {
	// Kind and Name say what it is, in the words of messages, and Error why.
	Kind, Name, Error string
	Since             time.Time
}

// Relaying is how far changes have come on their way to Redis. Which daemon is asked matters for what is in RelayStatus alone.
type Relaying struct {
	RelayStatus
	// Waiting is how many things have changed that Redis has not been given, and Lag for how long the oldest of them waits.
	Waiting int64
	Lag     time.Duration
	// Unmanaged is how many override records Redis has that nobody has set here.
	Unmanaged int64
}

// Relaying returns how far changes have come on their way to Redis: [access.ReadFleet]. There is [ErrNotFound] for a daemon without a
// Redis.
func (c *Control) Relaying(ctx context.Context, actor access.Actor) (*Relaying, error) {
	if err := access.Authorize(actor, access.ReadFleet, ""); err != nil {
		return nil, err
	}
	if c.cfg.Relay == nil {
		return nil, ErrNotFound
	}
	r := &Relaying{RelayStatus: c.cfg.Relay()}
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
	return r, err
}
