package throttle_test

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/throttle"
)

// A server asks the throttle before it works, and tells it when it is done. Package ratelimit does both for operations; this is what a server of
// another kind has.
func Example() {
	t, err := throttle.New(throttle.Config{
		Centre:  throttle.NewMemory(nil), // redisthrottle.New for a fleet
		Latency: 200 * time.Millisecond,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- t.Run(ctx) }()

	verdict := t.Offer("acme", 1, 0.1, 42) // the first tier that is shed, a tenth of it never
	if verdict.Shed {
		fmt.Println("503, Retry-After:", verdict.RetryAfter)
	} else {
		start := t.Begin("acme")
		fmt.Println("served")
		t.End(start, false)
	}
	stop()
	if err := <-ended; err != nil {
		fmt.Println(err)
	}
	if err := t.Shutdown(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output: served
}

// pool stands for a pgxpool.Pool, and poolStat for what its Stat returns.
type (
	pool     struct{}
	poolStat struct{ acquired, most int32 }
)

func (pool) Stat() poolStat             { return poolStat{acquired: 3, most: 10} }
func (s poolStat) AcquiredConns() int32 { return s.acquired }
func (s poolStat) MaxConns() int32      { return s.most }

// The connections of a pool that are in use are a signal, in five lines.
func ExampleSource() {
	var db pool
	source := throttle.Source{Name: "pgx", Target: 0.9, Read: func() (float64, bool) {
		s := db.Stat()
		return float64(s.AcquiredConns()) / float64(s.MaxConns()), true
	}}
	fmt.Println(source.Read())
	// Output: 0.3 true
}

// What HTTP requests take is a signal, in five lines: those to a service that this server asks, or those that it serves.
func ExampleThrottle_Latency() {
	t, err := throttle.New(throttle.Config{Centre: throttle.NewMemory(nil)})
	if err != nil {
		fmt.Println(err)
		return
	}
	latency := t.Latency("search", 200*time.Millisecond)
	timed := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func(began time.Time) { latency.Observe(time.Since(began)) }(time.Now())
			next.ServeHTTP(w, r)
		})
	}
	_ = timed(http.NotFoundHandler())
	// Output:
}

// Whatever grows with load is a signal: here the jobs that wait in a queue of the server's own, above 100 of which there is too much load.
func ExampleThrottle_Signal() {
	t, err := throttle.New(throttle.Config{Centre: throttle.NewMemory(nil), Processor: throttle.None, Memory: throttle.None})
	if err != nil {
		fmt.Println(err)
		return
	}
	jobs := make(chan func(), 1000)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- t.Run(ctx) }()

	for range 150 {
		jobs <- func() {}
	}
	for t.Status().Fleet.Pressure <= 1 {
		// A value holds for three seconds.
		t.Signal("jobs", float64(len(jobs)), 100)
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Println("too much load")
	stop()
	if err := <-ended; err != nil {
		fmt.Println(err)
	}
	if err := t.Shutdown(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output: too much load
}
