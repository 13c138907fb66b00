package announce

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

	"github.com/gqlgen-ratelimit/ratelimit/event/stream"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/lease"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/internal/guard"
	"github.com/gqlgen-ratelimit/ratelimit/internal/pace"
	"github.com/gqlgen-ratelimit/ratelimit/observe/report"
)

// Defaults of a [Config].
const (
	// DefaultTopic is where the events go, those of instances about policies as well.
	DefaultTopic = "ratelimit.policy.updates"
	// DefaultInterval is how often an announcer looks into a log that nobody has told it has grown.
	DefaultInterval = time.Second
	// DefaultLease is after which time without a beat another daemon takes over.
	DefaultLease = 6 * time.Second
	// DefaultTimeout is for how long a batch may take.
	DefaultTimeout = 10 * time.Second
)

const (
	// leaseName is the lease of those who announce.
	leaseName = "announce"
	// entries is how many are sent at once.
	entries = 64
	// notePatience is for how long it may take to note what has arrived, also when the daemon ends: what is noted is not sent again.
	notePatience = 2 * time.Second
	minBackOff   = 100 * time.Millisecond
	maxBackOff   = 10 * time.Second
)

// Config says what is announced where. The zero value of each field but Store, Sink and Source is the default.
type Config struct {
	// Store has the audit log. It is required.
	Store *store.DB
	// Sink brings events to the broker. It is required, and the caller's to close.
	Sink stream.Sink
	// Name is what the place of the sink is called in the database, where it stands how much has arrived. Empty means redis.
	Name string
	// Source is that of the events, as [SourceOf] makes it. It is required.
	Source string
	// Topic is where the events go. Empty means [DefaultTopic].
	Topic string
	// Holder is what this daemon is called where the lease is shown, another one for each. Empty means the name of the machine and some random digits.
	Holder string
	// Interval is how often the log is looked into without a [Announcer.Wake]: up to a fifth sooner or later. Zero means [DefaultInterval].
	Interval time.Duration
	// Lease is after which time without a beat another daemon takes over. Zero means [DefaultLease].
	Lease time.Duration
	// Timeout is for how long a batch may take. What is not acknowledged by then is sent again. Zero means [DefaultTimeout].
	Timeout time.Duration
	// Logger is told, once, that nothing can be announced, and that it goes on. Nil means slog.Default().
	Logger *slog.Logger
	// MeterProvider takes the metrics. Nil means the global provider.
	MeterProvider metric.MeterProvider
	// Now is the clock of the daemon, by which only ages are told. Nil means time.Now.
	Now func() time.Time
}

// Announcer brings the entries of the audit log to a sink. It is made by [New], does nothing before [Announcer.Run], and is safe for concurrent
// use.
type Announcer struct {
	cfg     Config
	told    *instruments
	woken   chan struct{}
	running atomic.Bool
	// failed says that the log was told that nothing goes on. It belongs to the goroutine that announces.
	failed bool
	// tried is before which sequence entries were sent since this daemon leads, arrived or not. It belongs to the same goroutine.
	tried int64

	// mu guards status.
	mu     sync.Mutex
	status Status
}

// Status is what an announcer knows of its work. All of it is of the daemon that announces, and zero in others.
type Status struct {
	// Leads says that this daemon announces.
	Leads bool
	// Waiting is how many entries the broker has not acknowledged, and Oldest when the first of them was made. They are as of the last look.
	Waiting int64
	Oldest  time.Time
}

// New returns an announcer. It connects to nothing. The error has everything that is wrong with the configuration.
func New(cfg Config) (*Announcer, error) {
	cfg.Name, cfg.Topic, cfg.Holder = cmp.Or(cfg.Name, "redis"), cmp.Or(cfg.Topic, DefaultTopic), cmp.Or(cfg.Holder, report.InstanceName())
	cfg.Interval, cfg.Lease, cfg.Timeout = cmp.Or(cfg.Interval, DefaultInterval), cmp.Or(cfg.Lease, DefaultLease), cmp.Or(cfg.Timeout, DefaultTimeout)
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if err := cfg.mistakes(); err != nil {
		return nil, err
	}
	a := &Announcer{cfg: cfg, woken: make(chan struct{}, 1)}
	var err error
	if a.told, err = newInstruments(cfg.MeterProvider); err != nil {
		return nil, fmt.Errorf("announce: %w", err)
	}
	return a, nil
}

func (c *Config) mistakes() error {
	var mistakes []error
	if c.Store == nil {
		mistakes = append(mistakes, errors.New("announce: Config.Store is nil"))
	}
	if c.Sink == nil {
		mistakes = append(mistakes, errors.New("announce: Config.Sink is nil: set the result of redisstream.New"))
	}
	if c.Source == "" {
		mistakes = append(mistakes, errors.New("announce: Config.Source is empty: set the result of SourceOf"))
	}
	if err := stream.CheckTopic(c.Topic); err != nil {
		mistakes = append(mistakes, fmt.Errorf("announce: Config.Topic: %w", err))
	}
	for _, time := range [...]struct {
		field           string
		is, least, most time.Duration
	}{
		{"Interval", c.Interval, 10 * time.Millisecond, time.Minute},
		{"Lease", c.Lease, 100 * time.Millisecond, 10 * time.Minute},
		{"Timeout", c.Timeout, 10 * time.Millisecond, time.Minute},
	} {
		if time.is < time.least || time.is > time.most {
			mistakes = append(mistakes, fmt.Errorf("announce: Config.%s is %v: write %v to %v, or 0", time.field, time.is, time.least, time.most))
		}
	}
	return errors.Join(mistakes...)
}

// Wake says that the log has grown. It does not block, and an announcer that is not woken looks by itself.
func (a *Announcer) Wake() { pace.Sign(a.woken) }

// Status returns what the announcer knows at this moment.
func (a *Announcer) Status() Status {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.status
}

// Run announces until its context ends, and returns nil then. It is called once at a time: a second call returns an error.
func (a *Announcer) Run(ctx context.Context) error {
	if !a.running.CompareAndSwap(false, true) {
		return errors.New("announce: it runs already")
	}
	defer a.running.Store(false)
	defer a.told.observe(a)()
	leads := func(leads bool, _ string) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if leads != a.status.Leads {
			a.status = Status{Leads: leads}
		}
	}
	lease.Keep(ctx, lease.Config{
		Store: a.cfg.Store, Name: leaseName, Holder: a.cfg.Holder, Life: a.cfg.Lease, Logger: a.cfg.Logger, Leads: leads,
	}, a.lead)
	return nil
}

// lead announces for as long as this daemon has the lease. What another one has sent before is not known.
func (a *Announcer) lead(ctx context.Context) {
	a.tried = 0
	backOff := time.Duration(0)
	for ctx.Err() == nil {
		arrived, err := a.step(ctx)
		a.report(ctx, err)
		switch {
		case err != nil:
			backOff = min(max(2*backOff, minBackOff), maxBackOff)
			if arrived > 0 {
				backOff = minBackOff
			}
			// A broker that is away is not asked more often because much is done meanwhile.
			pace.Wait(ctx, pace.Jittered(backOff), nil)
		case arrived < entries:
			backOff = 0
			pace.Wait(ctx, pace.Jittered(a.cfg.Interval), a.woken)
		default:
			backOff = 0
		}
	}
}

// step sends some entries, and returns how many of them, from the first on, are done with.
func (a *Announcer) step(ctx context.Context) (arrived int, _ error) {
	var next, size int64
	var rows []audit.Row
	err := a.cfg.Store.Read(ctx, func(v *store.View) (err error) {
		if next, err = v.Announced(a.cfg.Name); err != nil {
			return err
		}
		if size, err = v.Audit().Size(ctx); err != nil || size <= next {
			return err
		}
		rows, err = v.Audit().Rows(ctx, next, entries)
		return err
	})
	if err != nil {
		return 0, err
	}
	a.note(rows, size-next)
	if len(rows) == 0 {
		return 0, nil
	}
	arrived, failure := a.send(ctx, rows, next)
	if arrived == 0 {
		return 0, failure
	}
	if err := a.keep(ctx, next+int64(arrived)); err != nil {
		return 0, errors.Join(failure, err)
	}
	a.note(rows[arrived:], size-next-int64(arrived))
	return arrived, failure
}

// keep notes in the database what has arrived: also if the lease ends just now.
func (a *Announcer) keep(ctx context.Context, next int64) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), notePatience)
	defer cancel()
	return a.cfg.Store.Change(ctx, func(tx *store.Tx) error { return tx.Announce(a.cfg.Name, next) })
}

// send sends the entries from a sequence on, and returns how many of them, from the first on, are done with: stored, or refused for ever. Those
// behind the first that is not are sent again, in their order, stored or not.
func (a *Announcer) send(ctx context.Context, rows []audit.Row, from int64) (arrived int, _ error) {
	batch, at := make([]stream.Envelope, 0, len(rows)), make([]int, 0, len(rows))
	failures := make([]error, len(rows))
	for i, row := range rows {
		e, err := a.envelopeOf(row)
		if err != nil {
			failures[i] = fmt.Errorf("%w: %w", err, stream.ErrRefused)
			continue
		}
		batch, at = append(batch, e), append(at, i)
		if from+int64(i) < a.tried {
			a.told.repeated.Add(ctx, 1)
		}
	}
	a.tried = max(a.tried, from+int64(len(rows)))
	for i, err := range a.call(ctx, batch) {
		failures[at[i]] = err
	}
	for i, err := range failures {
		switch {
		case err == nil:
			a.told.sent.Add(ctx, 1)
		case errors.Is(err, stream.ErrTooLarge), errors.Is(err, stream.ErrRefused):
			a.told.dropped.Add(ctx, 1)
			a.cfg.Logger.ErrorContext(ctx, "announce: an entry of the audit log is not announced: the broker never takes it",
				slog.Int64("sequence", from+int64(i)), slog.Any("error", err))
		default:
			return i, err
		}
	}
	return len(rows), nil
}

// call calls the sink, and returns what became of each envelope, or nil if all were stored.
func (a *Announcer) call(ctx context.Context, batch []stream.Envelope) []error {
	if len(batch) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, a.cfg.Timeout)
	defer cancel()
	var errs []error
	if err := guard.Call("the sink of announcements", func() error { errs = a.cfg.Sink.Send(ctx, batch); return nil }); err != nil {
		return stream.Failed(len(batch), err)
	}
	if errs != nil && len(errs) != len(batch) {
		return stream.Failed(len(batch), fmt.Errorf("announce: a sink has said something of %d envelopes of %d", len(errs), len(batch)))
	}
	return errs
}

// note notes what waits.
func (a *Announcer) note(rows []audit.Row, waiting int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.status.Leads {
		return
	}
	a.status.Waiting = waiting
	switch {
	case waiting == 0:
		a.status.Oldest = time.Time{}
	case len(rows) > 0:
		a.status.Oldest = timeOf(rows[0].Record)
	}
}

// report tells the log that nothing goes on, and that it does again.
func (a *Announcer) report(ctx context.Context, failure error) {
	if ctx.Err() != nil {
		return
	}
	if failure != nil {
		a.told.failures.Add(ctx, 1)
	}
	switch {
	case failure != nil && !a.failed:
		a.failed = true
		a.cfg.Logger.WarnContext(ctx, "announce: changes are not announced: they wait in the audit log", slog.Any("error", failure))
	case failure == nil && a.failed:
		a.failed = false
		a.cfg.Logger.InfoContext(ctx, "announce: changes are announced again")
	}
}
