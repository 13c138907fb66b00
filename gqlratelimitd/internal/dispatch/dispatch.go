package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/metric"

	"github.com/gqlgen-ratelimit/ratelimit/event/redisstream"
	"github.com/gqlgen-ratelimit/ratelimit/event/stream"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/webhook"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/webhook/delivery"
)

// Config says what is brought where. All fields but Namespace, Topics, Logger and MeterProvider are required.
type Config struct {
	Store *store.DB
	// Client is of the Redis with the streams of the instances.
	Client redis.UniversalClient
	// Namespace is that of the instances. Empty means main.
	Namespace string
	// Topics are those that are read, as stream.Topics has them. None means ratelimit.denials and ratelimit.thresholds.
	Topics []string
	// Sender makes an attempt: a *webhook.Sender.
	Sender delivery.Sender
	// Endpoint returns an endpoint as it is now, and Gone notes that it wants no message any more.
	Endpoint func(ctx context.Context, id string) (webhook.Endpoint, error)
	Gone     func(ctx context.Context, id string)
	// KeepDead is for how long messages are kept that are tried no more, which are a hundred of each endpoint at most. Zero means [DefaultKeepDead].
	KeepDead time.Duration
	// Logger is told what fails, once. Nil is slog.Default.
	Logger *slog.Logger
	// MeterProvider takes the metrics. Nil means the global provider.
	MeterProvider metric.MeterProvider
}

// DefaultKeepDead is for how long messages are kept that are tried no more.
const DefaultKeepDead = 30 * 24 * time.Hour

const (
	// forgetEvery is how often it is looked which messages have been dead for long: more often where they are kept for less than four times as long.
	forgetEvery = time.Hour
	// poll is how often streams are read, and idle how often is looked whether anybody wants to have them read. Each is up to a fifth longer.
	poll = 200 * time.Millisecond
	idle = time.Second
	// failing is after which time something is tried again that has failed.
	failing = 2 * time.Second
	// closing is how long attempts that are under way have to end.
	closing = 5 * time.Second
)

// Dispatcher brings events to endpoints. It is made by [New], and runs once.
type Dispatcher struct {
	cfg        Config
	deliveries store.Deliveries
	readers    []*reader
	told       *instruments
	wake       chan struct{}
	// forget is when it is looked next what has been dead for long, by Run alone.
	forget time.Time

	mu     sync.Mutex
	worker *delivery.Worker
}

// New returns a dispatcher. The error has everything that is wrong with the configuration. It starts nothing.
func New(cfg Config) (*Dispatcher, error) {
	cfg.Namespace = cmp.Or(cfg.Namespace, "main")
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	cfg.KeepDead = cmp.Or(cfg.KeepDead, DefaultKeepDead)
	if len(cfg.Topics) == 0 {
		cfg.Topics = []string{"ratelimit.denials", "ratelimit.thresholds"}
	}
	var mistakes []error
	if cfg.Store == nil || cfg.Client == nil || cfg.Sender == nil || cfg.Endpoint == nil || cfg.Gone == nil {
		mistakes = append(mistakes, errors.New("dispatch: set Config.Store, Client, Sender, Endpoint and Gone"))
	}
	if cfg.KeepDead < 0 {
		mistakes = append(mistakes, fmt.Errorf("dispatch: Config.KeepDead is %v: write more than 0, or 0 for %v", cfg.KeepDead, DefaultKeepDead))
	}
	for i, topic := range cfg.Topics {
		if err := stream.CheckTopic(topic); err != nil {
			mistakes = append(mistakes, fmt.Errorf("dispatch: Config.Topics[%d]: %w", i, err))
		}
	}
	told, err := newInstruments(cfg.MeterProvider)
	if err := errors.Join(append(mistakes, err)...); err != nil {
		return nil, err
	}
	d := &Dispatcher{cfg: cfg, deliveries: cfg.Store.Deliveries(), told: told, wake: make(chan struct{}, 1)}
	for _, topic := range cfg.Topics {
		d.readers = append(d.readers, &reader{d: d, topic: topic, key: redisstream.Key(cfg.Namespace, topic)})
	}
	return d, nil
}

// Wake says that something was put, or an endpoint changed. It does not block.
func (d *Dispatcher) Wake() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
	d.mu.Lock()
	worker := d.worker
	d.mu.Unlock()
	if worker != nil {
		worker.Wake()
	}
}

// Run reads and brings, and forgets what has been dead for long, until the context ends. Attempts that are under way then end, and count for nothing.
func (d *Dispatcher) Run(ctx context.Context) error {
	//nolint:contextcheck // It ends with Close, which lets what is under way end.
	worker, err := delivery.Start(delivery.Config{
		Deliveries: d.deliveries, Sender: d.cfg.Sender, Endpoint: d.cfg.Endpoint, Gone: d.cfg.Gone, Told: d.told.attempt, Logger: d.cfg.Logger,
	})
	if err != nil {
		return err
	}
	d.mu.Lock()
	d.worker = worker
	d.mu.Unlock()
	end := d.told.observe(d)
	defer end()
	d.read(ctx)
	patient, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
	defer cancel()
	return worker.Close(patient)
}

// read reads streams until the context ends.
func (d *Dispatcher) read(ctx context.Context) {
	var failed error
	for ctx.Err() == nil {
		wait, err := d.pass(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && failed == nil:
			d.cfg.Logger.ErrorContext(ctx, "dispatch: events for webhooks cannot be read, and are later", slog.Any("error", err))
		case err == nil && failed != nil:
			d.cfg.Logger.InfoContext(ctx, "dispatch: events for webhooks are read again")
		}
		if failed = err; err != nil {
			wait = failing
		}
		wait += time.Duration(rand.Int64N(int64(wait) / 5)) //nolint:gosec // Jitter is no secret.
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		case <-d.wake:
		}
	}
}

// pass reads what there is, and returns when it is worth looking again.
func (d *Dispatcher) pass(ctx context.Context) (time.Duration, error) {
	some := false
	err := d.cfg.Store.Read(ctx, func(v *store.View) (err error) {
		some, err = v.HasWebhooks()
		return err
	})
	if err != nil {
		return 0, err
	}
	if err := d.forgetWhenDue(ctx); err != nil {
		return 0, err
	}
	if !some {
		d.told.read(time.Now())
		return idle, d.leave(ctx)
	}
	for _, r := range d.readers {
		if err := r.read(ctx); err != nil {
			return 0, err
		}
	}
	d.told.read(time.Now())
	return poll, nil
}

// forgetWhenDue removes what has been dead for too long, where it is time to look.
func (d *Dispatcher) forgetWhenDue(ctx context.Context) error {
	now := time.Now()
	if now.Before(d.forget) {
		return nil
	}
	if _, err := d.deliveries.Forget(ctx, now.Add(-d.cfg.KeepDead)); err != nil {
		return err
	}
	d.forget = now.Add(min(forgetEvery, d.cfg.KeepDead/4))
	return nil
}

// leave forgets how far streams were read, once.
func (d *Dispatcher) leave(ctx context.Context) error {
	left := true
	for _, r := range d.readers {
		left = left && r.left
	}
	if left {
		return nil
	}
	if err := d.deliveries.LeaveStreams(ctx); err != nil {
		return err
	}
	for _, r := range d.readers {
		r.left, r.at = true, ""
	}
	return nil
}
