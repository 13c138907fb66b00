// Package meter makes the instruments of the parts of the daemon, as all of them have theirs: counters, and gauges that are read when metrics are
// collected.
package meter

import (
	"context"
	"errors"
	"log/slog"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
)

// root is what the instrumentation scope of each part begins with.
const root = "github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/"

// Meter makes instruments. It is made by [Of], is not safe for concurrent use, and keeps the errors of all instruments for [Meter.Err].
type Meter struct {
	meter metric.Meter
	errs  []error
}

// Of returns the meter of a part of the daemon. A provider that is nil is the global one.
func Of(provider metric.MeterProvider, part string) *Meter {
	if provider == nil {
		provider = otel.GetMeterProvider()
	}
	return &Meter{meter: provider.Meter(root + part)}
}

// Err returns what is wrong with the instruments that were made.
func (m *Meter) Err() error { return errors.Join(m.errs...) }

// Counter makes a counter. It is 0 for each of these attributes, or without any if there are none, before anything is counted: the first of a series
// that is not there yet is no increase to Prometheus, so that an alert on it would be silent.
func (m *Meter) Counter(name, unit, description string, from ...metric.MeasurementOption) metric.Int64Counter {
	c, err := m.meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
	m.errs = append(m.errs, err)
	if err != nil {
		return c
	}
	if len(from) == 0 {
		c.Add(context.Background(), 0)
	}
	for _, attributes := range from {
		c.Add(context.Background(), 0, attributes)
	}
	return c
}

// Number makes a gauge of whole numbers. An empty unit is none.
func (m *Meter) Number(name, unit, description string) metric.Int64ObservableGauge {
	g, err := m.meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(description))
	m.errs = append(m.errs, err)
	return g
}

// Seconds makes a gauge of a time.
func (m *Meter) Seconds(name, description string) metric.Float64ObservableGauge {
	g, err := m.meter.Float64ObservableGauge(name, metric.WithUnit("s"), metric.WithDescription(description))
	m.errs = append(m.errs, err)
	return g
}

// Observe has gauges read until the function is called that it returns. Where that is not possible the log is told, and there are none: whoever has
// no metrics works all the same.
func (m *Meter) Observe(log *slog.Logger, read metric.Callback, gauges ...metric.Observable) (end func()) {
	reading, err := m.meter.RegisterCallback(read, gauges...)
	if err != nil {
		log.Error("there are no gauges", slog.Any("error", err))
		return func() {}
	}
	return func() { _ = reading.Unregister() }
}
