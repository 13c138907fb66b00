package stream_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/event/stream"
)

// printer is a sink that prints. redisstream.New and kafkastream.New return those of brokers.
type printer struct{}

func (printer) Send(_ context.Context, batch []stream.Envelope) []error {
	for i := range batch {
		_, _ = fmt.Fprintln(os.Stdout, batch[i].Topic, batch[i].Type, batch[i].Subject, batch[i].ID)
	}
	return nil
}

// The queue is the observer of a server, which is closed after the server: requests never wait for a broker.
func Example() {
	queue, err := stream.Start(stream.Config{Sink: printer{}, Namespace: "shop"})
	if err != nil {
		panic(err)
	}
	// ratelimit.Config{Observe: ratelimit.ObserveConfig{Observer: queue}} fills it.
	queue.Observe(context.Background(), event.Decided{
		At: time.Now(), RefusalID: "3R2FISY5QO7WUCFQ3E2EEUFWSX", Outcome: "limited", Code: "RATE_LIMITED", Tenant: "acme", Cost: 611,
	})

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := queue.Close(ctx); err != nil {
		fmt.Println("the broker has not got:", err)
	}
	fmt.Println("dropped:", queue.Dropped())
	// Output:
	// ratelimit.denials ratelimit.decision.refused.v1 acme 3R2FISY5QO7WUCFQ3E2EEUFWSX
	// dropped: 0
}

// Names of users stay in the house.
func ExampleConfig_edit() {
	queue, err := stream.Start(stream.Config{
		Sink: printer{},
		Edit: func(e event.Event) event.Event {
			if d, ok := e.(event.Decided); ok {
				d.User = ""
				// Other observers have the same limits.
				d.Limits = slices.Clone(d.Limits)
				for i := range d.Limits {
					if d.Limits[i].Level == "user" {
						d.Limits[i].Owner = ""
					}
				}
				return d
			}
			return e
		},
	})
	if err != nil {
		panic(err)
	}
	queue.Observe(context.Background(), event.Decided{RefusalID: "A1", Tenant: "acme", User: "mira"})
	if err := queue.Close(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// ratelimit.denials ratelimit.decision.refused.v1 acme A1
}
