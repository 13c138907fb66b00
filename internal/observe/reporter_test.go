package observe_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
	"github.com/gqlgen-ratelimit/ratelimit/internal/observe"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// refusing is a provider of a meter that makes no counter of one name.
type refusing struct {
	noop.MeterProvider

	name string
}

type refusingMeter struct {
	noop.Meter

	name string
}

var errRefused = errors.New("no such instrument")

func (r refusing) Meter(string, ...metric.MeterOption) metric.Meter {
	return refusingMeter{name: r.name}
}

func (m refusingMeter) Int64Counter(name string, options ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	if name == m.name {
		return noop.Int64Counter{}, errRefused
	}
	return m.Meter.Int64Counter(name, options...)
}

func TestAnInstrumentThatTheMeterRefusesIsAnErrorWhicheverItIs(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"ratelimit.decisions", "ratelimit.settlements", "ratelimit.excess", "ratelimit.store.spared", "ratelimit.local.settled",
	} {
		_, err := observe.New(observe.Config{MeterProvider: refusing{name: name}}, nil)
		require.ErrorIs(t, err, errRefused, name)
	}
	_, err := observe.New(observe.Config{MeterProvider: refusing{}}, nil)
	require.NoError(t, err)
}

// limited is a decision that a limit has refused.
func limited() *decision.Decision {
	limit := &bucket.Limit{Name: "minute", Unit: bucket.Points, Capacity: 100, Refill: 100, Period: time.Minute}
	state := bucket.LimitState{Limit: limit, Asked: 7, Remaining: 9, Exceeded: true, RetryAfter: time.Second, Approximate: true, Held: 5}
	d := &decision.Decision{
		Subject: tiers.Subject{Tenant: "acme", Tier: "gold"}, Tier: "pro", Kind: "query", Points: 7,
		Limits: []bucket.LimitState{state}, Rules: &tiers.Rules{},
		Asked: bucket.Amounts{{Unit: bucket.Points, N: 7}},
	}
	d.Refuse(decision.RefusedBy(d.Limits))
	return d
}

func TestOneCallTellsMetricsAndObserverOfADecision(t *testing.T) {
	t.Parallel()
	reader := sdk.NewManualReader()
	var told []string
	r, err := observe.New(observe.Config{
		Logger: slog.New(slog.DiscardHandler), MeterProvider: sdk.NewMeterProvider(sdk.WithReader(reader)),
		Refusals: 100, RepeatedRefusals: 2, RepeatedWithin: time.Hour,
		Observer: event.Func(func(_ context.Context, e event.Event) {
			if d, ok := e.(event.Decided); ok {
				require.Equal(t, "gold", d.SubjectTier)
				require.Len(t, d.RefusalID, 26)
				require.True(t, d.Limits[0].Approximate)
				require.Equal(t, []int64{9, 5}, []int64{d.Limits[0].Remaining, d.Limits[0].Held}, "what was held is told apart")
			}
			told = append(told, e.Name())
		}),
	}, nil)
	require.NoError(t, err)
	for range 3 {
		ctx, span := r.Start(t.Context())
		r.Decided(ctx, span, limited())
	}
	require.Equal(t, []string{
		"limit_reached", "decided", // the first of the period
		"refused_repeatedly", "decided",
		"decided",
	}, told)

	var collected metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &collected))
	counted := map[string]int64{}
	for _, m := range collected.ScopeMetrics[0].Metrics {
		if sum, is := m.Data.(metricdata.Sum[int64]); is {
			require.Len(t, sum.DataPoints, 1, "one set of attributes for all three")
			counted[m.Name] = sum.DataPoints[0].Value
		}
	}
	require.Equal(t, map[string]int64{
		"ratelimit.decisions": 3, "ratelimit.limit.exceeded": 3, "ratelimit.tenant.refused_repeatedly": 1,
	}, counted)
}
