package edge

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/recent"
)

// scopeName is the instrumentation scope of the metrics.
const scopeName = "github.com/gqlgen-ratelimit/ratelimit/edge"

// The attributes of the metrics. None has a value that a client chooses.
const (
	attrLayer = "ratelimit.layer"
	attrCode  = "ratelimit.code"
	attrMode  = "ratelimit.mode"
)

// reporter tells operators of refusals. It is safe for concurrent use.
type reporter struct {
	logger   *slog.Logger
	observer event.Observer
	// most is how many refusals are told in a second, negative for none.
	most     int
	meter    metric.Meter
	refusals metric.Int64Counter
	// sets has the attributes of each layer, code and mode, of which there are few.
	sets sync.Map
	// known are the layers and addresses of which a refusal was told.
	known *recent.Counter[toldOf]
	// brokenOnce and evictedOnce are lines that are logged once.
	brokenOnce, evictedOnce sync.Once

	mu       sync.Mutex
	second   int64
	inSecond int
	untold   int64
}

// toldOf is what is told once a minute.
type toldOf struct{ layer, client, mode string }

// labelled are the attributes of a refusal.
type labelled struct{ layer, code, mode string }

// toldSlots is how many layers and addresses are known to have been told, in 128 KiB.
const toldSlots = 4096

func newReporter(cfg *ObserveConfig) (*reporter, error) {
	r := &reporter{logger: cfg.Logger, observer: cfg.Observer, most: cfg.Refusals, known: recent.NewCounter[toldOf](toldSlots)}
	if r.observer == nil {
		r.observer = event.NewLogger(cfg.Logger)
	}
	provider := cfg.MeterProvider
	if provider == nil {
		provider = otel.GetMeterProvider()
	}
	r.meter = provider.Meter(scopeName)
	var err error
	r.refusals, err = r.meter.Int64Counter("ratelimit.edge.refusals", metric.WithUnit("{refusal}"),
		metric.WithDescription("Requests and operations that the front door refused, by layer, code and mode."))
	return r, err
}

// state is what metrics tell of a door whenever they are collected.
type state struct{ evicted, underWay, parsing, waiting, connections func() int }

// observe has the state of the door read whenever metrics are collected.
func (r *reporter) observe(of state) error {
	gauge := func(name, unit, description string, read func() int) error {
		_, err := r.meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(description),
			metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
				o.Observe(int64(read()))
				return nil
			}))
		return err
	}
	_, err := r.meter.Int64ObservableCounter("ratelimit.edge.evicted", metric.WithUnit("{budget}"),
		metric.WithDescription("Budgets of the front door that gave way before they were full, because there are too many (Config.MaxBudgets)."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(int64(of.evicted()))
			return nil
		}))
	return errors.Join(err,
		gauge("ratelimit.edge.under_way", "{request}", "Requests that are under way, streams included.", of.underWay),
		gauge("ratelimit.edge.parsing", "{document}", "Documents that are parsed and validated.", of.parsing),
		gauge("ratelimit.edge.waiting", "{document}", "Documents that wait for their turn to be parsed.", of.waiting),
		gauge("ratelimit.edge.connections", "{connection}", "WebSockets that are open.", of.connections),
	)
}

// told counts a refusal, and tells the observer of it if it is chosen.
func (r *reporter) told(ctx context.Context, a *arrival, refusal *refusal, mode bucket.Mode) {
	r.refusals.Add(ctx, 1, r.set(labelled{refusal.Layer, refusal.Code, mode.String()}))
	now := time.Now()
	untold, chosen := r.choose(toldOf{refusal.Layer, a.client, mode.String()}, now)
	if !chosen {
		return
	}
	r.observer.Observe(ctx, event.RefusedAtDoor{
		At: now, Layer: refusal.Layer, Code: refusal.Code, Client: a.client, Key: a.key, Limit: refusal.Limit, Unit: refusal.Unit,
		Message: refusal.Message, Mode: mode.String(), RetryAfter: refusal.RetryAfter, Untold: untold,
	})
}

func (r *reporter) set(of labelled) metric.MeasurementOption {
	if value, found := r.sets.Load(of); found {
		option, _ := value.(metric.MeasurementOption)
		return option
	}
	option := metric.WithAttributeSet(attribute.NewSet(
		attribute.String(attrLayer, of.layer), attribute.String(attrCode, of.code), attribute.String(attrMode, of.mode)))
	r.sets.Store(of, option)
	return option
}

// choose reports whether a refusal is told, and how many were not since the last one that was.
func (r *reporter) choose(of toldOf, now time.Time) (untold int64, chosen bool) {
	n, _ := r.known.Count(of, now, time.Minute)
	r.mu.Lock()
	defer r.mu.Unlock()
	if second := now.Unix(); second != r.second {
		r.second, r.inSecond = second, 0
	}
	if n > 1 || r.inSecond >= r.most {
		r.untold++
		return 0, false
	}
	r.inSecond++
	untold, r.untold = r.untold, 0
	return untold, true
}

// evicts tells once that budgets give way.
func (r *reporter) evicts(ctx context.Context) {
	r.evictedOnce.Do(func() {
		r.logger.WarnContext(ctx, "edge: a budget gave way before it was full, and is full again: more addresses, keys and connections are in use "+
			"than the door has budgets for: raise Config.MaxBudgets")
	})
}

// failed tells once that the limits could not be asked.
func (r *reporter) failed(ctx context.Context, err error) {
	r.brokenOnce.Do(func() {
		r.logger.ErrorContext(ctx, "edge: the limits of the door fail", slog.Any("error", err))
	})
}
