package refusals

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/gqlgen-ratelimit/ratelimit/observe/report"
)

// Config is where it comes from, and who is told.
type Config struct {
	// Tenants returns what the tenants of all instances have asked for within a minute. It is required.
	Tenants func(context.Context) ([]report.Tenant, error)
	// Blocked returns which of these tenants an operator has blocked. It is required.
	Blocked func(context.Context, []string) (map[string]bool, error)
	// MeterProvider takes the metrics. Nil means the global one.
	MeterProvider metric.MeterProvider
	// Now is the clock. Nil means that of the system.
	Now func() time.Time
}

// Observe has the provider of meters tell who is refused much, until it is shut down. They are read when metrics are collected, every ten
// seconds at most and for two seconds at most; while they cannot be read there are no such metrics.
func Observe(cfg Config) error {
	if cfg.MeterProvider == nil {
		cfg.MeterProvider = otel.GetMeterProvider()
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	w := &watch{cfg: cfg, named: make(map[string]time.Time)}
	meter := cfg.MeterProvider.Meter("github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/refusals")
	share, shareErr := meter.Float64ObservableGauge("ratelimit.fleet.tenant.refused_share",
		metric.WithDescription("Share of what a tenant has asked all instances for within a minute that was refused, of the few that are refused most."))
	decisions, decisionsErr := meter.Int64ObservableGauge("ratelimit.fleet.tenant.decisions", metric.WithUnit("{decision}"),
		metric.WithDescription("What these tenants have asked for within a minute."))
	tenants, tenantsErr := meter.Int64ObservableGauge("ratelimit.fleet.tenants.refused", metric.WithUnit("{tenant}"),
		metric.WithDescription("How many tenants were refused more than three in ten of at least sixty operations within a minute."))
	unnamed, unnamedErr := meter.Int64ObservableGauge("ratelimit.fleet.tenants.unnamed", metric.WithUnit("{tenant}"),
		metric.WithDescription("How many of these are not named by the gauges beside this one, because there are too many."))
	if err := errors.Join(shareErr, decisionsErr, tenantsErr, unnamedErr); err != nil {
		return fmt.Errorf("refusals: the meter provider: %w", err)
	}
	_, err := meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		r, err := w.now(ctx)
		if err != nil {
			return err
		}
		for i := range r.named {
			of := metric.WithAttributes(attribute.String("ratelimit.tenant", r.named[i].Name))
			o.ObserveFloat64(share, r.named[i].RefusedShare(), of)
			o.ObserveInt64(decisions, r.named[i].Decisions, of)
		}
		o.ObserveInt64(tenants, int64(r.above))
		o.ObserveInt64(unnamed, int64(r.unnamed))
		return nil
	}, share, decisions, tenants, unnamed)
	if err != nil {
		return fmt.Errorf("refusals: the meter provider: %w", err)
	}
	return nil
}
