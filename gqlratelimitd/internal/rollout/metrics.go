package rollout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// loadFor is how long the store may take when metrics are collected.
const loadFor = 2 * time.Second

// Observe has a provider of meters tell of the newest roll-out of a store, until it is shut down. Nil means the global one.
// The store is asked when metrics are collected, for two seconds at most; while it does not answer there are no such metrics.
func Observe(provider metric.MeterProvider, store Store) error {
	if provider == nil {
		provider = otel.GetMeterProvider()
	}
	meter := provider.Meter("github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/rollout")
	state, stateErr := meter.Int64ObservableGauge("ratelimit.rollout.state",
		metric.WithDescription("1 for the phase that the newest roll-out is in, 0 for the others. All are 0 if there was none."))
	step, stepErr := meter.Int64ObservableGauge("ratelimit.rollout.step",
		metric.WithDescription("The step that the newest roll-out has reached, from 1. 0 if there was none."))
	refused, refusedErr := meter.Float64ObservableGauge("ratelimit.rollout.newly_refused",
		metric.WithDescription("The largest share of tenants or users that was newly refused in the step."))
	if err := errors.Join(stateErr, stepErr, refusedErr); err != nil {
		return fmt.Errorf("rollout: the meter provider: %w", err)
	}
	_, err := meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		ctx, cancel := context.WithTimeout(ctx, loadFor)
		defer cancel()
		there, err := store.Load(ctx)
		if err != nil {
			return err
		}
		s := there.State
		for _, phase := range []Phase{Running, Halted, Done, Aborted, Superseded} {
			is := int64(0)
			if s != nil && s.Phase == phase {
				is = 1
			}
			o.ObserveInt64(state, is, metric.WithAttributes(attribute.String("ratelimit.rollout.state", string(phase))))
		}
		if s == nil {
			o.ObserveInt64(step, 0)
			return nil
		}
		o.ObserveInt64(step, int64(s.Step)+1)
		o.ObserveFloat64(refused, max(s.Highest.Tenants, s.Highest.Users))
		return nil
	}, state, step, refused)
	if err != nil {
		return fmt.Errorf("rollout: the meter provider: %w", err)
	}
	return nil
}
