package event_test

import (
	"context"
	"fmt"

	"github.com/gqlgen-ratelimit/ratelimit/event"
)

// A goroutine of the server's own sends mail, however long that takes: requests never wait for it.
func ExampleChannel() {
	events := event.NewChannel(1000)
	// ratelimit.Config{Events: ratelimit.ObserveConfig{Observer: events}} fills it.
	events.Observe(context.Background(), event.ThresholdCrossed{
		Budget:    event.Budget{Tenant: "acme", Level: "tenant", Limit: "day", Unit: "points", Capacity: 50_000},
		Threshold: 0.8, Share: 0.83, Remaining: 8500,
	})

	for len(events.Events()) > 0 {
		switch e := (<-events.Events()).(type) {
		case event.ThresholdCrossed:
			fmt.Printf("to %s: %.0f %% of your %s a %s are used\n", e.Tenant, 100*e.Share, e.Unit, e.Limit)
		default:
		}
	}
	fmt.Println("dropped:", events.Dropped())
	// Output:
	// to acme: 83 % of your points a day are used
	// dropped: 0
}
