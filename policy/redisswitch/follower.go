package redisswitch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/guard"
	"github.com/gqlgen-ratelimit/ratelimit/internal/pace"
	"github.com/gqlgen-ratelimit/ratelimit/internal/subscription"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
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
	// staleIntervals is after how many intervals without an answer an instance is out of touch.
	staleIntervals = 5
	// hintGap is the shortest time between two questions because of hints: whoever can send hints cannot make an instance ask
	// without end.
	hintGap = 20 * time.Millisecond
	// maxError is how much of an error is told.
	maxError = 512
)

func (c *FollowerConfig) validate() error {
	errs := []error{c.Config.validate()}
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
	woken chan struct{}
	stop  context.CancelFunc
	ended sync.WaitGroup

	// What follows belongs to the goroutine that polls.
	stamp    string
	switches map[string]known
	began    time.Time
	// said is what was told last.
	said event.ModeSwitched

	mu sync.Mutex
	// status and asked are what Status returns.
	status event.ModeSwitched
	asked  time.Time
}

// Follow begins to apply what the Redis has. It waits for nothing: until the Redis has answered no switch is in force. The error has everything
// that is wrong with the configuration.
func Follow(cfg FollowerConfig) (*Follower, error) {
	cfg.Namespace = cmp.Or(cfg.Namespace, defaultNamespace)
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
	now := time.Now()
	never := event.ModeSwitched{At: now, State: policy.Never.String()}
	f := &Follower{cfg: cfg, woken: make(chan struct{}, 1), switches: make(map[string]known), began: now, said: never, status: never}
	var err error
	if f.told, err = newInstruments(cfg.MeterProvider, f); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	f.stop = stop
	f.ended.Go(func() { f.poll(ctx) })
	f.ended.Go(func() { f.listen(ctx) })
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
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	status, asked = f.status, f.asked
	status.At, status.State = now, f.stateAt(now)
	// One may have ended since it was told.
	easings := f.cfg.Switch.Easings()
	status.InForce = slices.DeleteFunc(slices.Clone(status.InForce), func(m event.ModeSwitch) bool {
		return !slices.ContainsFunc(easings, func(e tiers.Easing) bool { return e.Tenant == m.Tenant && e.Operation == m.Operation })
	})
	return status, asked
}

// stateAt returns whether the instance is in touch. The lock is held.
func (f *Follower) stateAt(now time.Time) string {
	switch {
	case f.asked.IsZero():
		return policy.Never.String()
	case now.Sub(f.asked) > staleIntervals*f.cfg.Interval:
		return policy.Stale.String()
	default:
		return policy.Current.String()
	}
}

// poll asks at each interval, and when it is woken.
func (f *Follower) poll(ctx context.Context) {
	// The first question comes at once, because an instance that starts in an emergency should not refuse.
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.woken:
			f.ask(ctx)
			if !pace.Sleep(ctx, hintGap) {
				return
			}
		case <-timer.C:
			f.ask(ctx)
			timer.Reset(pace.Between(f.cfg.Interval*4/5, f.cfg.Interval*6/5))
		}
	}
}

// listen subscribes to hints again and again.
func (f *Follower) listen(ctx context.Context) {
	pace.Subscribe(ctx, func(stands func()) bool {
		// What is wrong with the Redis is told by who asks.
		_ = subscription.Listen(ctx, f.cfg.Client, f.cfg.channel(), func() {
			stands()
			pace.Sign(f.woken)
		})
		return true
	})
}

// ask asks once, and applies the answer.
func (f *Follower) ask(ctx context.Context) {
	r, err := f.cfg.read(ctx, f.stamp)
	if ctx.Err() != nil {
		return
	}
	next := f.status
	switch {
	case err != nil:
	case r.lost && f.holds():
		err = errLost
	case r.same:
	default:
		f.stamp, f.switches = r.stamp, f.judge(r)
		next.Refused = r.refused
	}
	if err == nil {
		f.apply()
	}
	now := time.Now()
	f.mu.Lock()
	if err == nil {
		f.asked = now
	}
	next.Error = ""
	if err != nil {
		next.Error = err.Error()[:min(len(err.Error()), maxError)]
	} else if next.Refused > 0 {
		next.Error = ErrUnreadable.Error()
	}
	next.InForce = f.inForce(now)
	next.At, next.State = now, f.stateAt(now)
	f.status = next
	f.mu.Unlock()
	f.tell(ctx, next)
}

// holds reports whether any switch is in force.
func (f *Follower) holds() bool { return len(f.cfg.Switch.Easings()) > 0 }

// judge returns the switches that are applied: of what cannot be read the one before.
func (f *Follower) judge(r *read) map[string]known {
	for field := range r.unreadable {
		if before, was := f.switches[field]; was {
			r.switches[field] = before
		}
	}
	return r.switches
}

// apply puts the switches in force.
func (f *Follower) apply() {
	var all []tiers.Easing
	for _, field := range slices.Sorted(maps.Keys(f.switches)) {
		if len(all) < tiers.MaxEasings {
			all = append(all, f.switches[field].easing)
		}
	}
	// Each was checked.
	_ = f.cfg.Switch.Ease(all)
}

// inForce returns the switches that have not ended, by their scopes.
func (f *Follower) inForce(now time.Time) []event.ModeSwitch {
	var all []event.ModeSwitch
	for _, one := range f.switches {
		if now.Before(one.easing.Until) {
			all = append(all, one.ModeSwitch)
		}
	}
	slices.SortFunc(all, byScope)
	return all[:min(len(all), tiers.MaxEasings)]
}

// tell tells the observer if something has changed. An error alone is told once the state has changed.
func (f *Follower) tell(ctx context.Context, now event.ModeSwitched) {
	was := &f.said
	if now.State == was.State && now.Refused == was.Refused && slices.Equal(now.InForce, was.InForce) {
		return
	}
	f.said = now
	guard.Run(ctx, f.cfg.Logger, "FollowerConfig.Observer", func() { f.cfg.Observer.Observe(ctx, now) })
}
