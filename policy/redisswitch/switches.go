package redisswitch

import (
	"context"
	"errors"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/pace"
)

// Switches are those of a Redis. They are made by [New] and safe for concurrent use.
type Switches struct{ cfg Config }

// New returns the switches of a Redis. It does not connect. The error has everything that is wrong with the configuration.
func New(cfg Config) (*Switches, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	return &Switches{cfg}, nil
}

// Set puts a switch in force on every instance that follows, in the place of one of the same scope. Since is set by it. The error says what
// is wrong with the switch, or is [ErrUntil] or [ErrTooMany].
func (s *Switches) Set(ctx context.Context, m event.ModeSwitch) error {
	return s.change(ctx, func(d *Draft) error {
		_, err := d.Put(m)
		return err
	})
}

// End ends the switch of a scope, and returns it: nil if there was none.
func (s *Switches) End(ctx context.Context, tenant, operation string) (was *Switch, err error) {
	err = s.change(ctx, func(d *Draft) error {
		was = d.Remove(tenant, operation)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return was, nil
}

// List returns the switches that are in force, by their scopes. The error is [ErrUnreadable] if what stands there are none.
func (s *Switches) List(ctx context.Context) ([]Switch, error) {
	d, err := s.Read(ctx)
	if err != nil {
		return nil, err
	}
	return d.All()
}

// tries is how often a change is begun again because somebody else was faster, and maxPause for how long it waits before.
const (
	tries    = 16
	maxPause = 20 * time.Millisecond
)

// change changes what stands there, whoever else does.
func (s *Switches) change(ctx context.Context, by func(d *Draft) error) error {
	for try := 1; ; try++ {
		d, err := s.Read(ctx)
		if err == nil {
			err = by(d)
		}
		if err == nil {
			err = d.Write(ctx)
		}
		if !errors.Is(err, ErrMoved) || try == tries || !pace.Sleep(ctx, pace.Between(0, maxPause)) {
			return err
		}
	}
}
