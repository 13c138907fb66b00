package e2e_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// leavesNothing uses a server, waits until that has closed every connection by itself, stops it, and waits
// until no goroutine is left. It must not run beside other tests, whose goroutines it would find.
func leavesNothing(t *testing.T, name string, use func(*fixture)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		before := goleak.IgnoreCurrent()
		t.Run("connections", func(t *testing.T) {
			f := newFixture(t, nil)
			use(f)
			f.client.CloseIdleConnections()
			require.Eventually(t, func() bool { return f.connections.served.Load() == 0 }, patience, millisecond)
		})
		var leaked error
		// Each look waits for a moment by itself.
		for range 20 {
			if leaked = goleak.Find(before); leaked == nil {
				break
			}
		}
		require.NoError(t, leaked)
	})
}

func TestNoTransportLeavesAGoroutineOrASocketBehind(t *testing.T) {
	for i := range transportCases {
		via := &transportCases[i]
		leavesNothing(t, via.name, func(f *fixture) {
			via.send(f, request{Query: via.plain})
			via.send(f, request{Query: via.plain, Tenant: "blocked"})
			via.send(f, request{Query: unknown})
			if via.keyed != "" {
				via.send(f, request{Query: via.keyed, Key: testKey})
				via.send(f, request{Query: via.keyed, Key: testKey})
			}
			f.store.Fail(bucket.ErrUnavailable)
			via.send(f, request{Query: via.plain})
			via.send(f, request{Query: via.plain, Tenant: "closed"})
		})
	}
}

// TestAClientThatLeavesInTheMiddleLeavesNothingBehind breaks the connection while a resolver runs. What it did
// is settled all the same, so that a repeat by another way finds its answer.
func TestAClientThatLeavesInTheMiddleLeavesNothingBehind(t *testing.T) {
	for i := range transportCases {
		via := &transportCases[i]
		leavesNothing(t, via.name, func(f *fixture) {
			r := request{Query: via.keyed, Key: testKey}
			if via.keyed == "" {
				r = request{Query: `mutation ($f: [Upload!]!) { createUser(input: {name: "Grace"}) { id } attach(files: $f) }`}
			}
			entered := make(chan struct{})
			var once sync.Once
			hold := func(ctx context.Context) {
				once.Do(func() {
					close(entered)
					<-ctx.Done()
				})
			}
			f.resolver.BeforeCreate = hold
			f.resolver.OnExport = func(ctx context.Context, _ int) error { hold(ctx); return nil }
			leaveIn(f, via, r, entered)
			if r.Query != createUser {
				return
			}
			require.Eventually(f.t, func() bool {
				return f.post(r).Header.Get("Idempotent-Replayed") == "true"
			}, patience, millisecond)
			require.EqualValues(f.t, 1, f.resolver.Created.Load())
		})
	}
}

func TestASubscriberThatLeavesBetweenEventsLeavesNothingBehind(t *testing.T) {
	for i := range transportCases {
		via := &transportCases[i]
		if via.name != "sse" && !via.onSocket {
			continue
		}
		leavesNothing(t, via.name, func(f *fixture) {
			ticks, entered := make(chan int), make(chan struct{})
			f.resolver.Tick = ticks
			go func() {
				ticks <- 1
				close(entered)
			}()
			leaveIn(f, via, request{Query: `subscription { ticks(count: 3) }`}, entered)
		})
	}
}

// leaveIn sends the operation and breaks the connection when it has come to the point.
func leaveIn(f *fixture, via *transportCase, r request, point <-chan struct{}) {
	var sent sync.WaitGroup
	sent.Go(func() { via.send(f, r) })
	<-point
	f.connections.leave()
	sent.Wait()
	f.connections.comeBack()
}
