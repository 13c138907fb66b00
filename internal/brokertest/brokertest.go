// Package brokertest drives a server whose events go to a broker: over HTTP, with the extension, and with a broker that stands still. It says
// what requests notice of it, and how long it takes from a refusal to the broker.
package brokertest

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/transport"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/event/stream"
	"github.com/gqlgen-ratelimit/ratelimit/event/streamtest"
	"github.com/gqlgen-ratelimit/ratelimit/internal/testserver"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

const (
	// tenants is of how many the requests are.
	tenants = 100
	// rounds is how often the broker stands still.
	rounds = 4
	// room is for how many events the queue has room, so that it has none while a broker stands still.
	room = 100
	// patience is for how long something that has to happen may take on a busy machine.
	patience = time.Minute
	// pace is between two refusals of which the way to the broker is timed.
	pace = 5 * time.Millisecond
)

const policy = `
version: 1
default: free
tiers:
  free:
    limits:
      day: {unit: requests, capacity: 1, per: day}
`

// Times are how long something took, the shortest first.
type Times []time.Duration

// String says how long half of them, and 99 in 100, took at most.
func (t Times) String() string {
	return fmt.Sprintf("p50 %v, p99 %v of %d", t.at(50), t.at(99), len(t))
}

func (t Times) at(percent int) time.Duration {
	if len(t) == 0 {
		return 0
	}
	return t[(len(t)-1)*percent/100].Round(time.Microsecond)
}

// scene is a server that refuses all tenants, and the queue of its events.
type scene struct {
	*testing.T
	url    string
	client *http.Client
	queue  *stream.Queue
}

// refusals is a queue that takes nothing else.
type refusals struct{ *stream.Queue }

// Observe implements event.Observer.
func (q refusals) Observe(ctx context.Context, e event.Event) { q.Keep(ctx, e) }

// Keep implements event.Keeper.
func (q refusals) Keep(ctx context.Context, e event.Event) bool {
	_, ok := e.(event.Decided)
	return ok && q.Queue.Keep(ctx, e)
}

func serve(t *testing.T, cfg stream.Config) *scene {
	t.Helper()
	cfg.Logger = slog.New(slog.DiscardHandler)
	queue, err := stream.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	source, err := tiers.Load([]byte(policy), 1)
	if err != nil {
		t.Fatal(err)
	}
	limiter := ratelimit.New(ratelimit.Config{
		Store: bucket.NewMemory(bucket.MemoryConfig{}), Policy: source,
		Subject: ratelimit.ByHeader("Tenant", func(_ context.Context, tenant string) (ratelimit.Subject, bool) {
			return ratelimit.Subject{Tenant: tenant}, true
		}),
		Observe: ratelimit.ObserveConfig{
			Observer: refusals{queue}, Logger: cfg.Logger, Refusals: 1_000_000, TenantRefusals: ratelimit.None, Thresholds: []float64{},
		},
	})
	server := handler.New(testserver.NewExecutableSchema(testserver.Config{Resolvers: &testserver.Resolver{}}))
	server.AddTransport(transport.POST{})
	server.Use(limiter)
	served := httptest.NewServer(ratelimit.Handler(server))
	t.Cleanup(served.Close)
	s := &scene{t, served.URL, &http.Client{Transport: &http.Transport{}, Timeout: patience}, queue}
	t.Cleanup(s.client.CloseIdleConnections)
	for i := range tenants {
		s.ask(i, http.StatusOK)
	}
	return s
}

// ask sends a request of a tenant, and returns how long its answer took.
func (s *scene) ask(i, status int) time.Duration {
	s.Helper()
	request, err := http.NewRequestWithContext(s.Context(), http.MethodPost, s.url, strings.NewReader(`{"query":"{users(first:1){id}}"}`))
	if err != nil {
		s.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Tenant", fmt.Sprint("tenant-", i%tenants))
	began := time.Now()
	response, err := s.client.Do(request)
	if err != nil {
		s.Fatalf("a request has waited: %v", err)
	}
	_, err = io.Copy(io.Discard, response.Body)
	took := time.Since(began)
	_ = response.Body.Close()
	if err != nil || response.StatusCode != status {
		s.Fatalf("the status is %d, and not %d: %v", response.StatusCode, status, err)
	}
	return took
}

// close closes the queue, and fails the test if what the broker has and what was dropped are not all that was refused.
func (s *scene) close(h streamtest.Harness, refused int) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	if err := s.queue.Close(ctx); err != nil {
		s.Fatal(err)
	}
	events, err := h.Read()
	if err != nil {
		s.Fatal(err)
	}
	ids := map[string]bool{}
	for i := range events {
		ids[events[i].ID] = true
	}
	if dropped := int(s.queue.Dropped()); len(ids)+dropped != refused {
		s.Fatalf("of %d refusals %d are stored, and %d were dropped and counted", refused, len(ids), dropped)
	}
}

// Frozen sends so many requests, which are refused, while the broker works, and as many while it stands still, in turns. It fails the test if one
// of these is not answered before the broker goes on, or if a refusal is neither stored afterwards nor counted as dropped. It returns how
// long requests took.
func Frozen(t *testing.T, h streamtest.Harness, requests int) (working, still Times) {
	t.Helper()
	s := serve(t, stream.Config{Sink: h.Sink, MaxEvents: room, Timeout: time.Second, MaxAge: time.Hour})
	each := max(requests/rounds, 2*room)
	refused := 0
	ask := func(times Times) Times {
		for range each {
			times = append(times, s.ask(refused, http.StatusTooManyRequests))
			refused++
		}
		return times
	}
	for range rounds {
		working = ask(working)
		before := s.queue.Dropped()
		h.Freeze()
		still = ask(still)
		h.Thaw()
		if s.queue.Dropped() == before {
			t.Fatalf("nothing was dropped of %d refusals, with room for %d: the broker did not stand still", each, room)
		}
	}
	s.close(h, refused)
	slices.Sort(working)
	slices.Sort(still)
	return working, still
}

// Delay has so many requests refused, one every 5 ms, and returns how long it took from each refusal until its broker had stored it. It fails
// the test if one is not stored.
func Delay(t *testing.T, h streamtest.Harness, requests int) Times {
	t.Helper()
	watch := &stopwatch{Sink: h.Sink}
	s := serve(t, stream.Config{Sink: watch})
	ticker := time.NewTicker(pace)
	defer ticker.Stop()
	for i := range requests {
		s.ask(i, http.StatusTooManyRequests)
		<-ticker.C
	}
	s.close(h, requests)
	if len(watch.times) != requests {
		t.Fatalf("%d of %d were acknowledged", len(watch.times), requests)
	}
	slices.Sort(watch.times)
	return watch.times
}

// stopwatch times the way of events to a sink.
type stopwatch struct {
	stream.Sink
	mu    sync.Mutex
	times Times
}

// Send implements stream.Sink.
func (w *stopwatch) Send(ctx context.Context, batch []stream.Envelope) []error {
	errs := w.Sink.Send(ctx, batch)
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range batch {
		if errs == nil || errs[i] == nil {
			w.times = append(w.times, now.Sub(batch[i].Time))
		}
	}
	return errs
}
