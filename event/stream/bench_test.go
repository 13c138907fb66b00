package stream_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/event/stream"
)

// BenchmarkObserve is what a request pays for an event, with a broker that stores and with one that is frozen, which soon leaves no room. All processors
// observe at once.
func BenchmarkObserve(b *testing.B) {
	for name, judge := range map[string]func(context.Context, *stream.Envelope) error{"stored": nil, "frozen": frozen} {
		b.Run(name, func(b *testing.B) {
			sink := &forgetful{broker{judge: judge}}
			q := start(b, stream.Config{Sink: sink})
			events := make([]event.Event, 100)
			for i := range events {
				events[i] = refusal(fmt.Sprint("tenant-", i), i)
			}
			var next atomic.Uint64
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					q.Observe(context.Background(), events[next.Add(1)%100])
				}
			})
			b.StopTimer()
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			_ = q.Close(ctx)
			b.ReportMetric(float64(q.Dropped())/float64(b.N), "dropped/op")
		})
	}
}

// forgetful is a broker that keeps nothing.
type forgetful struct{ broker }

func (f *forgetful) Send(ctx context.Context, batch []stream.Envelope) []error {
	if f.judge == nil {
		return nil
	}
	return f.broker.Send(ctx, batch)
}
