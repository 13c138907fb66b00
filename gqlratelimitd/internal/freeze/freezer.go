package freeze

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/lease"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/internal/pace"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
)

// Defaults of a [Config].
const (
	// DefaultInterval is how often it is looked whether a period is due.
	DefaultInterval = time.Minute
	// DefaultLease is after which time without a beat another daemon takes over. It is long, because each beat is a transaction.
	DefaultLease = 5 * time.Minute
)

// leaseName is the lease of those who freeze.
const leaseName = "freezer"

// maxNamed is how many tenants without a statement the log names of a period.
const maxNamed = 20

// Config says what is frozen. The zero value of each field but Store, Ledger and Status is the default.
type Config struct {
	// Store is where the lease is kept, and Ledger where statements are made. Both are required.
	Store  *store.DB
	Ledger Ledger
	// Status says what there is to freeze, for metrics. It is required.
	Status func(context.Context) (Status, error)
	// Schedule says which periods are frozen. It is on.
	Schedule Schedule
	// Holder is what this daemon is called where the lease is shown, another one for each. Empty means the name of the machine and some random digits.
	Holder string
	// Interval is how often it is looked whether a period is due: up to a fifth sooner or later. Zero means [DefaultInterval].
	Interval time.Duration
	// Lease is after which time without a beat another daemon takes over. Zero means [DefaultLease].
	Lease time.Duration
	// Logger is told what was frozen, and why something is not. Nil means slog.Default().
	Logger *slog.Logger
	// MeterProvider takes the metrics. Nil means the global provider.
	MeterProvider metric.MeterProvider
	// Now is the clock of the daemon. Nil means time.Now.
	Now func() time.Time
}

// Freezer freezes. It is made by [New], and does nothing before [Freezer.Run].
type Freezer struct {
	cfg  Config
	told *instruments
	// said is what was logged last of what is in the way, by who leads alone.
	said string
}

// New returns a freezer. The error has everything that is wrong with the configuration.
func New(cfg Config) (*Freezer, error) {
	var mistakes []error
	if cfg.Store == nil || cfg.Ledger == nil || cfg.Status == nil {
		mistakes = append(mistakes, errors.New("freeze: set Config.Store, Ledger and Status"))
	}
	if err := cfg.Schedule.Complete(); err != nil {
		mistakes = append(mistakes, fmt.Errorf("freeze: Config.Schedule: %w", err))
	} else if !cfg.Schedule.On() {
		mistakes = append(mistakes, errors.New("freeze: Config.Schedule is off"))
	}
	cfg.Holder = cmp.Or(cfg.Holder, policy.InstanceName())
	cfg.Interval, cfg.Lease = cmp.Or(cfg.Interval, DefaultInterval), cmp.Or(cfg.Lease, DefaultLease)
	if cfg.Interval < time.Millisecond || cfg.Lease < 100*time.Millisecond {
		mistakes = append(mistakes, errors.New("freeze: Config.Interval is a millisecond or more, and Config.Lease a tenth of a second"))
	}
	if err := errors.Join(mistakes...); err != nil {
		return nil, err
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	told, err := newInstruments(cfg.MeterProvider)
	if err != nil {
		return nil, fmt.Errorf("freeze: %w", err)
	}
	return &Freezer{cfg: cfg, told: told}, nil
}

// Run freezes what is due until its context ends, and returns nil then. Of several daemons one does so at a time. It is called once.
func (f *Freezer) Run(ctx context.Context) error {
	defer f.told.observe(&f.cfg)()
	lease.Keep(ctx, lease.Config{
		Store: f.cfg.Store, Name: leaseName, Holder: f.cfg.Holder, Life: f.cfg.Lease, Logger: f.cfg.Logger, Leads: func(bool, string) {},
	}, func(ctx context.Context) {
		f.said = ""
		for ctx.Err() == nil {
			f.report(ctx, f.Look(ctx))
			pace.Wait(ctx, pace.Jittered(f.cfg.Interval), nil)
		}
	})
	return nil
}

// Look freezes what is due, the oldest period first. The error is a [*WaitError] where the oldest cannot be frozen: those after it wait for it.
func (f *Freezer) Look(ctx context.Context) error {
	for {
		frozen, err := f.cfg.Ledger.Frozen(ctx)
		if err != nil {
			return err
		}
		if frozen.IsZero() {
			return f.cfg.Ledger.Begin(ctx, f.cfg.Schedule, f.cfg.Now())
		}
		next := f.cfg.Schedule.Period(frozen)
		if f.cfg.Now().Before(f.cfg.Schedule.Due(next)) {
			return nil
		}
		if err := f.freeze(ctx, next); err != nil {
			return err
		}
		if after, err := f.cfg.Ledger.Frozen(ctx); err != nil || !after.After(frozen) {
			return cmp.Or(err, errors.New("freeze: a period was frozen, and nobody has noted it"))
		}
	}
}

// freeze makes the statements of a period, some tenants at a time.
func (f *Freezer) freeze(ctx context.Context, p Period) error {
	var all Page
	named := 0
	for {
		begun := time.Now()
		page, err := f.cfg.Ledger.Freeze(ctx, p, all.Next)
		if err != nil {
			return err
		}
		f.told.made(ctx, &page)
		for _, left := range page.Left {
			if named++; named <= maxNamed {
				f.cfg.Logger.WarnContext(ctx, "freeze: a tenant has no statement", slog.String("tenant", left.Tenant), slog.String("why", left.Problem), day("from", p.From), day("to", p.To))
			}
		}
		all.Made, all.Corrected, all.Next = all.Made+page.Made, all.Corrected+page.Corrected, page.Next
		if page.Next == "" {
			break
		}
		// Each page holds back whoever changes something. They get as much time.
		pace.Wait(ctx, time.Since(begun), nil)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	f.cfg.Logger.InfoContext(ctx, "freeze: a billing period is frozen", day("from", p.From), day("to", p.To),
		slog.Int("statements", all.Made), slog.Int("corrections", all.Corrected), slog.Int("left", named))
	return nil
}

// report logs what is in the way, once, and that nothing is any more.
func (f *Freezer) report(ctx context.Context, failure error) {
	if ctx.Err() != nil {
		return
	}
	var wait *WaitError
	switch {
	case failure == nil && f.said != "":
		f.said = ""
		f.cfg.Logger.InfoContext(ctx, "freeze: nothing is in its way any more")
	case failure == nil:
	case errors.As(failure, &wait):
		// What it says of how far the collector is changes with each look.
		if f.said != string(wait.Reason) {
			f.said = string(wait.Reason)
			f.cfg.Logger.WarnContext(ctx, "freeze: a billing period is due and cannot be frozen", slog.String("reason", string(wait.Reason)), slog.String("why", wait.Problem))
		}
	case f.said != failed:
		f.said = failed
		f.cfg.Logger.ErrorContext(ctx, "freeze: it does not go on", slog.String("error", failure.Error()))
	}
}

// failed is what was said of an error that is no reason.
const failed = "failed"

// day is a day in a log.
func day(name string, at time.Time) slog.Attr { return slog.String(name, at.Format(time.DateOnly)) }
