package usage_test

import (
	"fmt"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/usage"
)

// Whoever owns a recorder takes what it has once a second. Here nothing stands before the second time.
func ExampleRecorder() {
	recorder, err := usage.NewRecorder(usage.RecorderConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	noon := time.Date(2026, time.November, 23, 12, 0, 0, 0, time.UTC)
	for second := range 2 {
		// The server calls these.
		recorder.Count(event.Verdict{At: noon, Tenant: "acme", Outcome: "admitted", Cost: 7})
		recorder.CountUsage(event.UsageCounted{Tenant: "acme", At: noon})

		now := noon.Add(time.Duration(second) * time.Second)
		batch := recorder.Collect(now, now)
		fmt.Println(len(batch.Counted), batch.Decisions[0].Admitted, batch.Decisions[0].Points)
	}
	recorder.Stored()
	fmt.Println(len(recorder.Collect(noon, noon).Decisions))
	// Output:
	// 1 1 7
	// 1 2 14
	// 0
}
