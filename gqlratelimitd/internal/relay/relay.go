package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/metric"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/lease"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/internal/pace"
	"github.com/gqlgen-ratelimit/ratelimit/observe/report"
	"github.com/gqlgen-ratelimit/ratelimit/policy/directory/redisdirectory"
	"github.com/gqlgen-ratelimit/ratelimit/policy/redisfeed"
	"github.com/gqlgen-ratelimit/ratelimit/policy/redisswitch"
)

// Defaults and bounds of a [Config].
const (
	// DefaultInterval is how often a relay looks into the outbox that nobody has told of a change.
	DefaultInterval = 200 * time.Millisecond
	// DefaultSweep is how often everything is compared, if nothing asks for it.
	DefaultSweep = 30 * time.Second
	// DefaultLease is after which time without a beat another daemon takes over.
	DefaultLease = 6 * time.Second
)

// leaseName is the lease of those who relay.
const leaseName = "relay"

// Bounds of what is done at once.
const (
	// messages is how many are carried before what was carried is noted.
	messages = 64
	// callPatience is for how long one call of Redis may take.
	callPatience = 2 * time.Second
	// failuresInARow is after how many messages that could not be carried a relay waits.
	failuresInARow = 3
	// modesEvery is how often it is looked which mode switches there are.
	modesEvery = 5 * time.Second
	// sweepPause is between two pages that are compared.
	sweepPause = 2 * time.Millisecond
	minBackOff = 100 * time.Millisecond
	maxBackOff = 5 * time.Second
)

// Config says what a relay connects. The zero value of each field but Store and Client is the default.
type Config struct {
	// Store is where everything is kept. It is required.
	Store *store.DB
	// Client is that of the Redis. It is required, and the caller's to close. It is one of package redisclient, or one whose calls end
	// when their deadline does.
	Client redis.UniversalClient
	// Namespace is that of bucket.RedisConfig. Empty means main.
	Namespace string
	// Holder is what this daemon is called where the lease is shown, 1 to 128 bytes of UTF-8 and another one for each. Empty means the
	// name of the machine and some random digits.
	Holder string
	// Interval is how often the outbox is looked into without a [Relay.Wake], which changes of other daemons come without: up to a fifth
	// sooner or later. Zero means [DefaultInterval].
	Interval time.Duration
	// Sweep is how often everything is compared, up to a fifth sooner or later: what Redis loses is back after that. A comparison that takes
	// long comes less often, so that it takes a fifth of the time at most. Zero means [DefaultSweep].
	Sweep time.Duration
	// Lease is after which time without a beat another daemon takes over. Zero means [DefaultLease].
	Lease time.Duration
	// Logger is told when Redis or the database goes away and is back, and what is refused. Nil means slog.Default().
	Logger *slog.Logger
	// MeterProvider takes the metrics. Nil means the global provider.
	MeterProvider metric.MeterProvider
	// Now is the clock of the daemon, by which only ages are told. Nil means time.Now.
	Now func() time.Time
}

// Relay brings what the database has to Redis. It is made by [New], does nothing before [Relay.Run], and is safe for concurrent use.
type Relay struct {
	cfg       Config
	namespace string
	feed      *redisfeed.Feed
	directory *redisdirectory.Source
	overrides bucket.OverrideStore
	modes     *redisswitch.Switches
	told      *instruments
	woken     chan struct{}
	running   atomic.Bool

	// What follows belongs to the goroutine that waits for the lease, and then to the one that carries. counted is when what waits was
	// counted last, and modesLooked when mode switches were looked at.
	after                uint64
	sweep                sweep
	counted, modesLooked time.Time

	// mu guards status.
	mu     sync.Mutex
	status Status
}

// New returns a relay. It connects to nothing. The error has everything that is wrong with the configuration.
func New(cfg Config) (*Relay, error) {
	cfg.Holder = cmp.Or(cfg.Holder, report.InstanceName())
	cfg.Interval, cfg.Sweep, cfg.Lease = cmp.Or(cfg.Interval, DefaultInterval), cmp.Or(cfg.Sweep, DefaultSweep), cmp.Or(cfg.Lease, DefaultLease)
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	mistakes := []error{cfg.mistakes()}
	r := &Relay{cfg: cfg, namespace: cmp.Or(cfg.Namespace, "main"), woken: make(chan struct{}, 1)}
	var err error
	if cfg.Client != nil {
		r.feed, err = redisfeed.New(redisfeed.Config{Client: cfg.Client, Namespace: cfg.Namespace})
		mistakes = append(mistakes, err)
		r.directory, err = redisdirectory.New(redisdirectory.Config{Client: cfg.Client, Namespace: cfg.Namespace})
		mistakes = append(mistakes, err)
		r.overrides, err = bucket.NewRedis(bucket.RedisConfig{Client: cfg.Client, Namespace: cfg.Namespace})
		mistakes = append(mistakes, err)
		r.modes, err = redisswitch.New(redisswitch.Config{Client: cfg.Client, Namespace: cfg.Namespace})
		mistakes = append(mistakes, err)
	}
	if err := errors.Join(mistakes...); err != nil {
		return nil, err
	}
	if r.told, err = newInstruments(cfg.MeterProvider); err != nil {
		return nil, fmt.Errorf("relay: %w", err)
	}
	return r, nil
}

func (c *Config) mistakes() error {
	var mistakes []error
	if c.Store == nil {
		mistakes = append(mistakes, errors.New("relay: Config.Store is nil"))
	}
	if c.Client == nil {
		mistakes = append(mistakes, errors.New("relay: Config.Client is nil: set the result of redisclient.Open"))
	}
	for _, time := range [...]struct {
		field           string
		is, least, most time.Duration
	}{
		{"Interval", c.Interval, 10 * time.Millisecond, time.Minute},
		{"Sweep", c.Sweep, time.Second, 24 * time.Hour},
		{"Lease", c.Lease, 100 * time.Millisecond, 10 * time.Minute},
	} {
		if time.is < time.least || time.is > time.most {
			mistakes = append(mistakes, fmt.Errorf("relay: Config.%s is %v: write %v to %v, or 0", time.field, time.is, time.least, time.most))
		}
	}
	return errors.Join(mistakes...)
}

// Wake says that something has changed. It does not block, and a relay that is not woken looks by itself.
func (r *Relay) Wake() {
	select {
	case r.woken <- struct{}{}:
	default:
	}
}

// Run relays until its context ends, and returns nil then. It is called once at a time: a second call returns an error.
func (r *Relay) Run(ctx context.Context) error {
	if !r.running.CompareAndSwap(false, true) {
		return errors.New("relay: it runs already")
	}
	defer r.running.Store(false)
	defer r.told.observe(r)()
	lease.Keep(ctx, lease.Config{
		Store: r.cfg.Store, Name: leaseName, Holder: r.cfg.Holder, Life: r.cfg.Lease, Logger: r.cfg.Logger, Leads: r.leads, Tried: r.report,
	}, r.carry)
	return nil
}

// carry relays for as long as this daemon leads.
func (r *Relay) carry(ctx context.Context) {
	r.after, r.sweep, r.modesLooked = 0, sweep{}, time.Time{}
	backOff := time.Duration(0)
	for ctx.Err() == nil {
		done, err := r.step(ctx)
		r.report(ctx, err)
		switch {
		case err != nil:
			backOff = min(max(2*backOff, minBackOff), maxBackOff)
			if done != idle {
				backOff = minBackOff
			}
			// A Redis that is away is not asked more often because much has changed meanwhile.
			pace.Wait(ctx, minBackOff, nil)
			pace.Wait(ctx, pace.Jittered(backOff)-minBackOff, r.woken)
		case done == swept:
			// There is no haste.
			backOff = 0
			pace.Wait(ctx, sweepPause, r.woken)
		case done == idle:
			backOff = 0
			pace.Wait(ctx, pace.Jittered(r.cfg.Interval), r.woken)
		}
	}
}

// progress is what a step has done.
type progress uint8

const (
	idle progress = iota
	// swept says that something was compared, and more is to be.
	swept
	// drained says that messages were carried, and there may be more.
	drained
)

// step does one thing, which takes little time.
func (r *Relay) step(ctx context.Context) (progress, error) {
	if err := r.lookForModes(ctx); err != nil {
		return idle, err
	}
	if !r.sweep.begun {
		if err := r.beginSweep(ctx); err != nil {
			return idle, err
		}
	}
	carried, err := r.drain(ctx)
	if err != nil {
		// What was written before may have got lost with what broke.
		r.sweep.due = true
	}
	compared, wrong := r.sweepOn(ctx)
	switch err = errors.Join(err, wrong); {
	case carried:
		return drained, err
	case compared:
		return swept, err
	default:
		return idle, err
	}
}
