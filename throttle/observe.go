package throttle

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

const scopeName = "github.com/gqlgen-ratelimit/ratelimit/throttle"

// instruments show what is shed, and why.
type instruments struct {
	throttle *Throttle
	shed     metric.Float64ObservableGauge
	depth    metric.Float64ObservableGauge
	fleet    metric.Float64ObservableGauge
	pressure metric.Float64ObservableGauge
	points   metric.Int64ObservableCounter
	runs     metric.Int64ObservableCounter
	failures metric.Int64Counter
	reading  metric.Registration
	orders   [Orders]metric.MeasurementOption

	// pressures are those of the last beat, and base and effective the points since the start by place.
	pressures       atomic.Pointer[[]pressed]
	base, effective [Orders]atomic.Int64
}

func newInstruments(provider metric.MeterProvider, t *Throttle) (*instruments, error) {
	if provider == nil {
		provider = otel.GetMeterProvider()
	}
	meter := provider.Meter(scopeName)
	i := &instruments{throttle: t}
	var errs [7]error
	i.shed, errs[0] = meter.Float64ObservableGauge("ratelimit.throttle.shed_share",
		metric.WithDescription("Share of the offered load that the adaptive throttle sheds, as this instance knows it."))
	i.depth, errs[1] = meter.Float64ObservableGauge("ratelimit.throttle.depth",
		metric.WithDescription("How much of what the floors of the tiers in a place of the order leave is shed."))
	i.fleet, errs[2] = meter.Float64ObservableGauge("ratelimit.throttle.fleet_pressure",
		metric.WithDescription("How far the fleet is from its targets: 1 is on them, and above it the shed share grows."))
	i.pressure, errs[3] = meter.Float64ObservableGauge("ratelimit.throttle.pressure",
		metric.WithDescription("How far a signal of this instance is from its target: 1 is on it."))
	i.points, errs[4] = meter.Int64ObservableCounter("ratelimit.throttle.offered", metric.WithUnit("{point}"),
		metric.WithDescription("Points that were asked for, before anything was shed."))
	i.runs, errs[5] = meter.Int64ObservableCounter("ratelimit.throttle.admitted", metric.WithUnit("{point}"),
		metric.WithDescription("Points that were asked for and not shed."))
	i.failures, errs[6] = meter.Int64Counter("ratelimit.throttle.failures", metric.WithUnit("{exchange}"),
		metric.WithDescription("Exchanges with the centre of the adaptive throttle that failed."))
	err := errors.Join(errs[:]...)
	if err == nil {
		i.reading, err = meter.RegisterCallback(i.observe, i.shed, i.depth, i.fleet, i.pressure, i.points, i.runs)
	}
	if err != nil {
		return nil, fmt.Errorf("throttle: the meter provider: %w", err)
	}
	for order := range i.orders {
		i.orders[order] = metric.WithAttributeSet(attribute.NewSet(attribute.String("ratelimit.throttle.order", strconv.Itoa(order+1))))
	}
	return i, nil
}

// close ends the reading of gauges.
func (i *instruments) close() {
	// It only fails for a provider that did not register it.
	_ = i.reading.Unregister()
}

// observe says what is shed now.
func (i *instruments) observe(_ context.Context, o metric.Observer) error {
	status := i.throttle.Status()
	o.ObserveFloat64(i.shed, status.Shed)
	if status.Fleet.Instances > 0 {
		o.ObserveFloat64(i.fleet, status.Fleet.Pressure)
	}
	for order := range Orders {
		base := i.base[order].Load()
		if base == 0 {
			continue
		}
		o.ObserveFloat64(i.depth, status.Depth[order], i.orders[order])
		o.ObserveInt64(i.points, base, i.orders[order])
		o.ObserveInt64(i.runs, i.effective[order].Load(), i.orders[order])
	}
	if pressures := i.pressures.Load(); pressures != nil {
		for _, p := range *pressures {
			o.ObserveFloat64(i.pressure, p.pressure, metric.WithAttributes(attribute.String("ratelimit.throttle.signal", p.name)))
		}
	}
	return nil
}

func (i *instruments) pressed(pressures []pressed) { i.pressures.Store(&pressures) }

// counted adds what a place was asked for in a beat, and what of it was admitted.
func (i *instruments) counted(order int, offered, admitted int64) {
	i.base[order].Add(offered)
	i.effective[order].Add(admitted)
}

func (i *instruments) exchanged(ctx context.Context, err error) {
	if err != nil {
		i.failures.Add(ctx, 1)
	}
}
