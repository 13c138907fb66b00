package redisswitch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/follow"
	"github.com/gqlgen-ratelimit/ratelimit/internal/guard"
	"github.com/gqlgen-ratelimit/ratelimit/internal/subscription"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// FollowerConfig says how a [Follower] follows. The zero value is the default in each field but Client and Switch. Every mistake in it
// is reported, all at once, by [Follow].
type FollowerConfig struct {
	Config

	// Switch is what is eased. It is required, and has no other easings than those of this follower. It is the Config.Policy of package ratelimit.
	Switch *tiers.ModeSwitch
	// Interval is how often the Redis is asked, from 100 ms to a minute, each time up to a fifth sooner or later. Zero means a second.
	Interval time.Duration

	// Observer is told of event.ModeSwitched. It is called by one goroutine of the follower, and must not call Close. Nil means that they are
	// lines of Logger.
	Observer event.Observer
	// Logger is told of an observer that panics. Nil means slog.Default().
	Logger *slog.Logger
	// MeterProvider takes the metrics. Nil means the global provider.
	MeterProvider metric.MeterProvider
}

const (
	defaultInterval = time.Second
	minInterval     = 100 * time.Millisecond
	maxInterval     = time.Minute
	// maxError is how much of an error is told.
	maxError = 512
)

func (c *FollowerConfig) validate() error {
	errs := []error{c.complete()}
	if c.Switch == nil {
		errs = append(errs, errors.New("redisswitch: FollowerConfig.Switch is nil: set the result of tiers.NewModeSwitch"))
	}
	if c.Interval < minInterval || c.Interval > maxInterval {
		errs = append(errs, fmt.Errorf("redisswitch: FollowerConfig.Interval is %v: write %v to %v, or 0 for %v",
			c.Interval, minInterval, maxInterval, defaultInterval))
	}
	return errors.Join(errs...)
}

// errLost says that the Redis has nothing where there was something.
var errLost = errors.New("redisswitch: the Redis has lost the switches: what is known holds on, and what is set anew holds everywhere")

// Follower applies the switches of a Redis in this instance. It is made by [Follow] and safe for concurrent use. [Follower.Close] stops
// it.
type Follower struct {
	cfg   FollowerConfig
	told  *instruments
	keeps *follow.Follower[*read]
	stop  context.CancelFunc
	ended sync.WaitGroup

	// good is what was read last that holds, and unreadable why what stands there does not. They never change.
	good       atomic.Pointer[read]
	unreadable atomic.Pointer[error]
	// said is what was told last. It belongs to the goroutine that follows.
	said event.ModeSwitched
}

// Follow begins to apply what the Redis has. It waits for nothing: until the Redis has answered no switch is in force. The error has everything
// that is wrong with the configuration.
func Follow(cfg FollowerConfig) (*Follower, error) {
	cfg.Interval = cmp.Or(cfg.Interval, defaultInterval)
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.Observer == nil {
		cfg.Observer = event.NewLogger(cfg.Logger)
	}
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	f := &Follower{cfg: cfg, said: event.ModeSwitched{State: follow.Never.String()}}
	f.good.Store(&read{})
	f.keeps = follow.New(follow.Config[*read]{
		Source: "the Redis of mode switches",
		Read: func(ctx context.Context) (*read, error) {
			return f.cfg.read(ctx, f.good.Load().digest)
		},
		Judge: f.judge, Asked: f.tell,
		Subscribe: func(ctx context.Context, wake func()) error {
			return subscription.Listen(ctx, f.cfg.Client, f.cfg.channel(), wake)
		},
		// An instance that starts in an emergency should not refuse.
		Interval: cfg.Interval, AtOnce: true, Patience: bucket.DefaultAdminTimeout,
	})
	var err error
	if f.told, err = newInstruments(cfg.MeterProvider, f); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	f.stop = stop
	f.ended.Go(func() { f.keeps.Run(ctx) })
	return f, nil
}

// Close stops following and waits until that has ended. What is in force ends at its time. It always returns nil.
func (f *Follower) Close() error {
	f.stop()
	f.ended.Wait()
	f.told.close()
	return nil
}

// Status returns what is in force here, and when the Redis has last said so: zero if it never has.
func (f *Follower) Status() (status event.ModeSwitched, asked time.Time) {
	now, state := time.Now(), f.keeps.State()
	status = event.ModeSwitched{At: now, State: state.Contact.String(), InForce: f.good.Load().inForce(now)}
	err := state.Err
	if unreadable := f.unreadable.Load(); unreadable != nil {
		status.Refused = 1
		err = cmp.Or(err, *unreadable)
	}
	if err != nil {
		status.Error = err.Error()[:min(len(err.Error()), maxError)]
	}
	return status, state.Asked
}

// judge applies an answer.
func (f *Follower) judge(_ context.Context, answer follow.Answer[*read]) error {
	r := answer.Value
	switch {
	case answer.Err != nil:
		return answer.Err
	case r.lost && len(f.good.Load().inForce(time.Now())) > 0:
		return errLost
	case r.unreadable != nil:
		f.unreadable.Store(&r.unreadable)
		return follow.Refused(r.unreadable)
	}
	f.unreadable.Store(nil)
	if r.same {
		return nil
	}
	if err := f.cfg.Switch.Ease(easings(r.switches)); err != nil {
		return follow.Refused(err)
	}
	f.good.Store(r)
	return nil
}

// inForce returns the switches that have not ended, by their scopes.
func (r *read) inForce(now time.Time) []event.ModeSwitch {
	var all []event.ModeSwitch
	for i := range r.switches {
		if now.Before(r.switches[i].easing.Until) {
			all = append(all, r.switches[i].ModeSwitch)
		}
	}
	slices.SortFunc(all, func(a, b event.ModeSwitch) int { return byScope(&a, &b) })
	return all
}

// tell tells the observer if something has changed. An error alone is told once the state has changed.
func (f *Follower) tell(ctx context.Context) {
	now, _ := f.Status()
	if was := &f.said; now.State == was.State && now.Refused == was.Refused && slices.Equal(now.InForce, was.InForce) {
		return
	}
	f.said = now
	guard.Run(ctx, f.cfg.Logger, "FollowerConfig.Observer", func() { f.cfg.Observer.Observe(ctx, now) })
}
