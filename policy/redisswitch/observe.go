package redisswitch

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

const scopeName = "github.com/gqlgen-ratelimit/ratelimit/policy/redisswitch"

// instruments show what a follower applies.
type instruments struct{ reading metric.Registration }

func newInstruments(provider metric.MeterProvider, f *Follower) (*instruments, error) {
	if provider == nil {
		provider = otel.GetMeterProvider()
	}
	meter := provider.Meter(scopeName)
	count, err1 := meter.Int64ObservableGauge("ratelimit.mode.switches", metric.WithUnit("{switch}"),
		metric.WithDescription("Mode switches that this instance applies, by the strictest mode that they leave."))
	refused, err2 := meter.Int64ObservableGauge("ratelimit.mode.switches.refused", metric.WithUnit("{switch}"),
		metric.WithDescription("1 where what stands in the Redis are no mode switches: those before stay."))
	age, err3 := meter.Float64ObservableGauge("ratelimit.mode.switches.age", metric.WithUnit("s"),
		metric.WithDescription("For how long nobody has said which mode switches there are."))
	err := errors.Join(err1, err2, err3)
	i := &instruments{}
	if err == nil {
		i.reading, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
			status, _ := f.Status()
			for _, mode := range [...]bucket.Mode{bucket.Warn, bucket.Shadow, bucket.Off} {
				n := int64(0)
				for j := range status.InForce {
					if status.InForce[j].AtMost == mode.String() {
						n++
					}
				}
				o.ObserveInt64(count, n, metric.WithAttributes(attribute.String("ratelimit.mode", mode.String())))
			}
			o.ObserveInt64(refused, int64(status.Refused))
			o.ObserveFloat64(age, f.keeps.State().Age.Seconds())
			return nil
		}, count, refused, age)
	}
	if err != nil {
		return nil, fmt.Errorf("redisswitch: the meter provider: %w", err)
	}
	return i, nil
}

// close has nothing read any more.
func (i *instruments) close() {
	if i.reading != nil {
		// It only fails where there is nothing to unregister.
		_ = i.reading.Unregister()
	}
}
