package ratelimit

import (
	"cmp"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/observe"
)

// ObserveConfig configures what operators are told: by a logger, by spans and metrics of OpenTelemetry, and by events
// about decisions and limits. The zero value is the default in each field.
type ObserveConfig struct {
	// Logger is told what operators must know: unsized lists at start-up, a store that is away and
	// that is back. Nil means slog.Default().
	Logger *slog.Logger

	// TracerProvider makes a span for each decision. Nil means the global provider.
	TracerProvider trace.TracerProvider
	// MeterProvider takes the metrics. Nil means the global provider.
	MeterProvider metric.MeterProvider
	// Tenants are the tenants that metrics name, at most 1000; all others are "other". Metrics name no
	// tenant if both Tenants and TopTenants are empty.
	Tenants []string
	// TopTenants is how many of the busiest tenants metrics name besides, at most 1000. Who is among them is looked at every
	// ten seconds, by what was surely counted of each, so that tenants that come once take no name from them. A tenant keeps its
	// name for an hour after it was. At most four times as many have a name at once, and
	// five times as many get one within an hour: many exporters keep the series of each as long as the process lives.
	TopTenants int
	// Operations are the names of operations that the metrics of decisions and of actual cost tell apart, at most 1000; all
	// others are "other". Clients choose these names, so metrics name none without it: they tell
	// operations apart by their root field.
	Operations []string
	// RootSpan has the span of the request carry what was decided, as ratelimit.outcome and ratelimit.tier: the span that [Handler] finds
	// in the request, which otelhttp and its like make. Then traces are found, and sampled at their end, by
	// outcome without a look at the spans below. Of a batch of operations it has the last one. A WebSocket has a span
	// of its upgrade only, which is over: its operations are not in it. False leaves the span as it is.
	RootSpan bool

	// Observer is told of decisions, of limits that are nearly used up and that refuse, of tenants that are refused a hundred times
	// within a minute, and of stores that go and
	// come back. One that is an [event.Counter] is told what every decision came to, besides; package report has one. It is called in the request, so
	// that it must not block; package event has a channel, and a logger. Nil means that Refusals are lines of Logger, and nobody is told of the rest.
	Observer event.Observer
	// Refusals is how many refusals are told in each second, one by one, as [event.Decided]. A client is given the id of a
	// refusal only if it is told, or stands in a span that is sampled; metrics count all. Zero means 100, [None] that
	// none is told.
	Refusals int
	// TenantRefusals is how many of them are of one tenant. Zero means the first of each second, and ten more a minute
	// as long as half of Refusals is free; [None] that nothing but Refusals bounds them.
	TenantRefusals int
	// Thresholds are the shares of a limit, above 0 and at most 1, that are told when the used share rises
	// over them: at most 8. Each is told once for each period or window of the limit of an owner, by each
	// replica. Nil means 0.8 and 1; empty means none.
	Thresholds []float64
	// Admissions is the share of the operations, and of the charges inside them, that were not refused and are
	// told all the same, as [event.Decided]: from 0 to 1, drawn at random for each.
	// Zero means none.
	Admissions float64
}

// Defaults and bounds of an [ObserveConfig].
const (
	defaultRefusals    = 100
	maxThresholds      = 8
	maxTopTenants      = 1000
	maxNamedOperations = 1000
)

func (c ObserveConfig) withDefaults() ObserveConfig {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Thresholds == nil {
		c.Thresholds = []float64{0.8, 1}
	}
	c.Refusals = cmp.Or(c.Refusals, defaultRefusals)
	return c
}

func (c *ObserveConfig) validate(fail failFunc) {
	within(fail, "the number of Observe.Thresholds", len(c.Thresholds), 0, maxThresholds)
	for _, threshold := range c.Thresholds {
		// Written so that NaN is refused too.
		if !(threshold > 0 && threshold <= 1) {
			fail("Observe.Thresholds has %v, want above 0 and at most 1", threshold)
		}
	}
	within(fail, "Observe.Admissions", c.Admissions, 0, 1)
	countOrNone(fail, "Observe.Refusals", int64(c.Refusals))
	countOrNone(fail, "Observe.TenantRefusals", int64(c.TenantRefusals))
	within(fail, "Observe.TopTenants", c.TopTenants, 0, maxTopTenants)
	within(fail, "the number of Observe.Tenants", len(c.Tenants), 0, maxTopTenants)
	within(fail, "the number of Observe.Operations", len(c.Operations), 0, maxNamedOperations)
}

// The numbers of an [observe.Config] that nobody sets.
const (
	// rememberedFacts take 2 MiB, which is enough for 70 000 tenants of whom each has three facts at once.
	rememberedFacts = 1 << 18
	// A tenant that is refused so often within that time is told once in it.
	repeatedRefusals = 100
	repeatedWithin   = time.Minute
)

// reporter is the configuration of what tells operators.
func (c *ObserveConfig) reporter() observe.Config {
	return observe.Config{
		Logger: c.Logger, TracerProvider: c.TracerProvider, MeterProvider: c.MeterProvider, Tenants: c.Tenants, TopTenants: c.TopTenants,
		Operations: c.Operations, RootSpan: c.RootSpan, Observer: c.Observer, Refusals: c.Refusals, TenantRefusals: c.TenantRefusals,
		Thresholds: c.Thresholds, Admissions: c.Admissions,
		Facts: rememberedFacts, RepeatedRefusals: repeatedRefusals, RepeatedWithin: repeatedWithin,
	}
}
