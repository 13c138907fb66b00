package collect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/lease"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/internal/pace"
	"github.com/gqlgen-ratelimit/ratelimit/observe/report"
	"github.com/gqlgen-ratelimit/ratelimit/usage"
)

// Defaults of a [Config].
const (
	// DefaultInterval is how often the counts of the present hour and the one before are read.
	DefaultInterval = time.Minute
	// DefaultSearch is how often all counts are read, and those of hours that are over forgotten in the store of budgets.
	DefaultSearch = 15 * time.Minute
	// DefaultSettled is how long after an hour it is forgotten in the store of budgets.
	DefaultSettled = 2 * time.Hour
	// DefaultLease is after which time without a beat another daemon takes over.
	DefaultLease = 30 * time.Second
	// DefaultHourDays is for how many days hours are kept. Minutes are kept for [MinuteLife].
	DefaultHourDays = 400
	// MinuteLife is for how long minutes are kept.
	MinuteLife = 48 * time.Hour
)

// leaseName is the lease of those who collect.
const leaseName = "collector"

// Config says what is collected. The zero value of each field but Store and Source is the default.
type Config struct {
	// Store is where it is kept, and Source where it is read. Both are required.
	Store  *store.DB
	Source usage.Source
	// Holder is what this daemon is called where the lease is shown, 1 to 128 bytes of UTF-8 and another one for each. Empty means the name of
	// the machine and some random digits.
	Holder string
	// Interval is how often the counts of the present hour and the one before are read, up to a fifth sooner or later. It is more seldom where that takes
	// long. Zero means [DefaultInterval].
	Interval time.Duration
	// Search is how often all counts are read. Zero means [DefaultSearch].
	Search time.Duration
	// Settled is how long after its end an hour is forgotten in the store of budgets. What is settled later is counted all the same. Zero means
	// [DefaultSettled].
	Settled time.Duration
	// Lease is after which time without a beat another daemon takes over. Zero means [DefaultLease].
	Lease time.Duration
	// HourDays is for how many days hours are kept. Zero means [DefaultHourDays].
	HourDays int
	// Logger is told when the store of budgets or the database goes away, and is back. Nil means slog.Default().
	Logger *slog.Logger
	// MeterProvider takes the metrics. Nil means the global provider.
	MeterProvider metric.MeterProvider
	// Now is the clock of the daemon. Nil means time.Now.
	Now func() time.Time
}

// Bounds of [Config.HourDays].
const (
	minHourDays = 32
	maxHourDays = 3660
)

// CheckHourDays returns what is wrong with a [Config.HourDays], which is not 0.
func CheckHourDays(days int) error {
	if days < minHourDays || days > maxHourDays {
		return fmt.Errorf("hours are kept for %d days: write %d to %d, or 0 for %d", days, minHourDays, maxHourDays, DefaultHourDays)
	}
	return nil
}

// database is what a collector writes into.
type database interface {
	Count(ctx context.Context, count func(*store.UsageTx) error) error
	Read(ctx context.Context, read func(*store.View) error) error
}

// Collector collects. It is made by [New], does nothing before [Collector.Run], and is safe for concurrent use.
type Collector struct {
	cfg     Config
	db      database
	told    *instruments
	running atomic.Bool
	// leading is what this daemon does while it leads, nil while it does not.
	leading atomic.Pointer[round]
	failing outage
}

// New returns a collector. It connects to nothing. The error has everything that is wrong with the configuration.
func New(cfg Config) (*Collector, error) {
	cfg.Holder = cmp.Or(cfg.Holder, report.InstanceName())
	cfg.Interval, cfg.Search = cmp.Or(cfg.Interval, DefaultInterval), cmp.Or(cfg.Search, DefaultSearch)
	cfg.Settled, cfg.Lease = cmp.Or(cfg.Settled, DefaultSettled), cmp.Or(cfg.Lease, DefaultLease)
	cfg.HourDays = cmp.Or(cfg.HourDays, DefaultHourDays)
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if err := cfg.mistakes(); err != nil {
		return nil, err
	}
	c := &Collector{cfg: cfg, db: cfg.Store, failing: outage{log: cfg.Logger}}
	var err error
	if c.told, err = newInstruments(cfg.MeterProvider); err != nil {
		return nil, fmt.Errorf("collect: %w", err)
	}
	return c, nil
}

func (c *Config) mistakes() error {
	var mistakes []error
	if c.Store == nil {
		mistakes = append(mistakes, errors.New("collect: Config.Store is nil"))
	}
	if c.Source == nil {
		mistakes = append(mistakes, errors.New("collect: Config.Source is nil: set the result of redisusage.NewReader"))
	}
	for _, time := range [...]struct {
		field           string
		is, least, most time.Duration
	}{
		{"Interval", c.Interval, 10 * time.Millisecond, time.Hour},
		{"Search", c.Search, 10 * time.Millisecond, 24 * time.Hour},
		{"Settled", c.Settled, time.Minute, 24 * time.Hour},
		{"Lease", c.Lease, 100 * time.Millisecond, 10 * time.Minute},
	} {
		if time.is < time.least || time.is > time.most {
			mistakes = append(mistakes, fmt.Errorf("collect: Config.%s is %v: write %v to %v, or 0", time.field, time.is, time.least, time.most))
		}
	}
	if err := CheckHourDays(c.HourDays); err != nil {
		mistakes = append(mistakes, fmt.Errorf("collect: Config.HourDays: %w", err))
	}
	return errors.Join(mistakes...)
}

// Run collects until its context ends, and returns nil then. It is called once at a time: a second call returns an error.
func (c *Collector) Run(ctx context.Context) error {
	if !c.running.CompareAndSwap(false, true) {
		return errors.New("collect: it runs already")
	}
	defer c.running.Store(false)
	defer c.told.observe(c)()
	lease.Keep(ctx, lease.Config{
		Store: c.cfg.Store, Name: leaseName, Holder: c.cfg.Holder, Life: c.cfg.Lease, Logger: c.cfg.Logger,
		Leads: func(bool, string) {}, Tried: func(ctx context.Context, failure error) { c.report(ctx, "lease", failure) },
	}, c.lead)
	return nil
}

// lead does what one daemon does at a time.
func (c *Collector) lead(ctx context.Context) {
	r := c.newRound()
	c.leading.Store(r)
	defer c.leading.Store(nil)
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { c.repeat(ctx, "counts", r.collect) })
	all.Go(func() { c.repeat(ctx, "retention", r.keepWhenDue) })
}

const (
	// minBackOff and maxBackOff bound the time between two tries of what has failed.
	minBackOff = 200 * time.Millisecond
	maxBackOff = 30 * time.Second
	// rest is how much longer than a step it takes at least before the next one begins.
	rest = 4
)

// repeat does something again and again, more seldom where it takes long, and after failures less and less often.
func (c *Collector) repeat(ctx context.Context, name string, do func(context.Context) error) {
	backOff := time.Duration(0)
	for ctx.Err() == nil {
		begun := time.Now()
		err := do(ctx)
		c.report(ctx, name, err)
		if err == nil || errors.Is(err, errLeft) {
			backOff = 0
			pace.Wait(ctx, pace.Jittered(max(c.cfg.Interval, rest*time.Since(begun))), nil)
			continue
		}
		backOff = min(max(2*backOff, minBackOff), maxBackOff)
		pace.Wait(ctx, pace.Jittered(backOff), nil)
	}
}

// report counts and logs how something has ended.
func (c *Collector) report(ctx context.Context, name string, failure error) {
	if ctx.Err() != nil {
		return
	}
	if failure != nil {
		c.told.failed(ctx)
	}
	c.failing.note(ctx, name, failure)
}

// outage logs when something begins to fail, and when it is well again.
type outage struct {
	log *slog.Logger
	mu  sync.Mutex
	// since is when each thing that fails has begun to.
	since map[string]time.Time
}

func (o *outage) note(ctx context.Context, name string, failure error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	since, failed := o.since[name]
	switch {
	case failure != nil && !failed:
		if o.since == nil {
			o.since = make(map[string]time.Time)
		}
		o.since[name] = time.Now()
		o.log.WarnContext(ctx, "collect: it does not go on", slog.String("what", name), slog.String("error", shortened(failure)))
	case failure == nil && failed:
		delete(o.since, name)
		o.log.InfoContext(ctx, "collect: it goes on", slog.String("what", name), slog.Duration("after", time.Since(since).Round(time.Millisecond)))
	}
}

// shortened is the text of an error, of which somebody else may have written a part.
func shortened(err error) string {
	const most = 512
	text := err.Error()
	return text[:min(len(text), most)]
}
