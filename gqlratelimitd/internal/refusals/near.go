package refusals

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
)

// nearFor is for how long it is not looked again who is near a limit: it is about days.
const nearFor = 10 * time.Minute

// NearConfig is where it comes from, and who is told.
type NearConfig struct {
	// Near returns how many tenants were near a limit on most days of a week, and whether anybody has counted. It is required.
	Near func(context.Context) (tenants int, some bool, _ error)
	// MeterProvider takes the metric. Nil means the global one.
	MeterProvider metric.MeterProvider
	// Now is the clock. Nil means that of the system.
	Now func() time.Time
}

// ObserveNear has the provider of meters tell how many tenants were near a limit on most days of a week, until it is shut down: those who could buy
// more. It is looked up when metrics are collected, every ten minutes at most; while nobody has counted there is no such metric.
func ObserveNear(cfg NearConfig) error {
	if cfg.MeterProvider == nil {
		cfg.MeterProvider = otel.GetMeterProvider()
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	var mu sync.Mutex
	var read time.Time
	var tenants int
	var some bool
	var failed error
	_, err := cfg.MeterProvider.Meter("github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/refusals").Int64ObservableGauge(
		"ratelimit.fleet.tenants.near_limit", metric.WithUnit("{tenant}"),
		metric.WithDescription("How many tenants have used a limit up to 80 % on most of the last seven days."),
		metric.WithInt64Callback(func(ctx context.Context, o metric.Int64Observer) error {
			mu.Lock()
			defer mu.Unlock()
			now := cfg.Now()
			if since := now.Sub(read); read.IsZero() || since < 0 || since >= nearFor {
				ctx, cancel := context.WithTimeout(ctx, readFor)
				defer cancel()
				tenants, some, failed = cfg.Near(ctx)
				// What has failed is not tried again so soon either: every scrape would wait for a database that hangs.
				read = now
			}
			if failed != nil {
				return failed
			}
			if some {
				o.Observe(int64(tenants))
			}
			return nil
		}))
	if err != nil {
		return fmt.Errorf("refusals: the meter provider: %w", err)
	}
	return nil
}
