package directory

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/gqlgen-ratelimit/ratelimit/internal/follow"
)

// scopeName is the instrumentation scope of the metrics.
const scopeName = "github.com/gqlgen-ratelimit/ratelimit/policy/directory"

// The attributes of the metrics. None has a value that somebody outside chooses.
const (
	attrName   = "ratelimit.directory.name"
	attrResult = "ratelimit.directory.result"
	attrState  = "ratelimit.directory.state"
)

// What a question about a tenant that is not in the cache comes to.
const (
	resultFound     = "found"
	resultAbsent    = "absent"
	resultMalformed = "malformed"
	resultMisfit    = "misfit"
	resultFailed    = "failed"
	// resultLate is a request that has not waited until the answer came.
	resultLate = "late"
	// resultAway, resultBusy and resultLimited are requests for which the source is not asked: it does not answer, is asked too much
	// at once, or is asked too often about names that nobody has.
	resultAway    = "away"
	resultBusy    = "busy"
	resultLimited = "limited"
)

// warnEvery is the shortest time between two lines of the log about records that cannot be used.
const warnEvery = time.Second

// teller tells operators what a directory does.
type teller struct {
	named   []attribute.KeyValue
	logger  *slog.Logger
	misses  metric.Int64Counter
	reading metric.Registration
	// warned is when a record was last warned of, in nanoseconds since 1970.
	warned atomic.Int64
	// silent says that it was told why the source does not say what has changed. It belongs to whoever asks that.
	silent bool
}

func newTeller(cfg *ObserveConfig, status func() Status, known func() follow.State) (*teller, error) {
	provider := cfg.MeterProvider
	if provider == nil {
		provider = otel.GetMeterProvider()
	}
	t := &teller{logger: cfg.Logger}
	if cfg.Name != "" {
		t.named = []attribute.KeyValue{attribute.String(attrName, cfg.Name)}
	}
	meter := provider.Meter(scopeName)
	var err1, err2, err3, err4, err error
	t.misses, err1 = meter.Int64Counter("ratelimit.directory.misses", metric.WithUnit("{request}"),
		metric.WithDescription("Questions about tenants that are not in the cache, and requests that did not wait for the answer."))
	tenants, err2 := meter.Int64ObservableGauge("ratelimit.directory.tenants", metric.WithUnit("{tenant}"),
		metric.WithDescription("Tenants in the cache, with a record and without."))
	size, err3 := meter.Int64ObservableGauge("ratelimit.directory.bytes", metric.WithUnit("By"),
		metric.WithDescription("About how much memory the cache takes."))
	age, err4 := meter.Float64ObservableGauge("ratelimit.directory.age", metric.WithUnit("s"),
		metric.WithDescription("For how long the source has not said what has changed."))
	if err = errors.Join(err1, err2, err3, err4); err == nil {
		t.reading, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
			s, named := status(), metric.WithAttributes(t.named...)
			o.ObserveFloat64(age, known().Age.Seconds(), named)
			o.ObserveInt64(size, s.Bytes, named)
			o.ObserveInt64(tenants, int64(s.Known), t.with(attrState, "known"))
			o.ObserveInt64(tenants, int64(s.Absent), t.with(attrState, "absent"))
			return nil
		}, tenants, size, age)
	}
	if err != nil {
		return nil, fmt.Errorf("directory: the meter provider: %w", err)
	}
	return t, nil
}

func (t *teller) with(key, value string) metric.MeasurementOption {
	return metric.WithAttributes(append(t.named[:len(t.named):len(t.named)], attribute.String(key, value))...)
}

// missed counts what a question came to. Empty is nothing.
func (t *teller) missed(ctx context.Context, result string) {
	if result != "" {
		t.misses.Add(ctx, 1, t.with(attrResult, result))
	}
}

// warn logs that the record of a tenant is of no use, at most once a second: there may be as many as there are tenants.
func (t *teller) warn(ctx context.Context, result, tenant string, err error) {
	now, was := time.Now().UnixNano(), t.warned.Load()
	if now-was < int64(warnEvery) || !t.warned.CompareAndSwap(was, now) {
		return
	}
	t.logger.WarnContext(ctx, "directory: the record of a tenant is of no use, or could not be read",
		slog.String("result", result), slog.String("tenant", fmt.Sprintf("%.64q", tenant)), slog.String("error", shortened(err)))
}

// gone logs that the source does not answer questions about tenants.
func (t *teller) gone() {
	t.logger.Warn("directory: the source of records does not answer: what was known last holds")
}

// answered logs that the source has gone, or come.
func (t *teller) answered(ctx context.Context, was, is bool, err error) {
	switch {
	case is && !t.silent:
		t.silent = true
		t.logger.WarnContext(ctx, "directory: the source does not say which records have changed: what was known last holds",
			slog.String("error", shortened(err)))
	case was && !is:
		t.logger.InfoContext(ctx, "directory: the source of records answers again")
	}
	t.silent = t.silent && is
}

// close has the status read no more.
func (t *teller) close() {
	if t.reading != nil {
		// It only fails where there is nothing to unregister.
		_ = t.reading.Unregister()
	}
}
