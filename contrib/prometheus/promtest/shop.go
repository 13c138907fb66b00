package promtest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/edge"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/event/stream"
	"github.com/gqlgen-ratelimit/ratelimit/internal/testserver"
	"github.com/gqlgen-ratelimit/ratelimit/observe/report"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/throttle"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// document has a tier for each fail mode. A tenant of one can pay for two [Users] a minute.
const document = `version: 1
default: local
tiers:
  local: {failMode: local, limits: {minute: {capacity: 100, per: minute}}}
  closed: {failMode: closed, limits: {minute: {capacity: 100, per: minute}}}
  open: {failMode: open, limits: {minute: {capacity: 100, per: minute}}}
  large: {store: archive, failMode: open, limits: {minute: {capacity: 1000000, per: minute}}}
  tiny: {limits: {minute: {capacity: 10, per: minute}}}
`

// walled is the document with a budget over all tenants, of two [Users] a minute.
const walled = document + "backstop: {limits: {minute: {capacity: 100, per: minute}}}\n"

const (
	// Users is a query of 46 points, which it comes to.
	Users = `{"operationName": "Users", "query": "query Users { users(first: 45) { name } }"}`
	// Search is a query that comes to less than its price.
	Search = `{"query": "{ search(first: 10) { __typename } }"}`
)

// Shop is a server with a limiter, a front door, a policy that follows a feed, a stream and a reporter. Its methods are safe for concurrent use.
type Shop struct {
	// URL is where it is scraped, at /metrics.
	URL     string
	handler http.Handler
	store   *shopStore
	feed    *shopFeed
	sink    *shopSink
}

// ShopConfig is what a shop has little of.
type ShopConfig struct {
	// Revision is the number of the policy that its feed has, 0 for 1.
	Revision uint64
	// Budgets is how many budgets its store remembers, and Addresses how many the front door. 0 is plenty.
	Budgets, Addresses int
	// Events is how many events wait for an observer that takes none. 0 is plenty.
	Events int
	// Backstop has the policy have a budget over all tenants, which is soon used up.
	Backstop bool
	// Overloaded has the throttle aim at a latency that no query has.
	Overloaded bool
	// Candidate has another policy tried beside the one of its feed.
	Candidate bool
	// Report is the address of a Redis that takes what the shop reports, in a namespace. Empty reports nothing. At [Nowhere] nothing takes it.
	Report, Namespace string
}

// Nowhere is an address at which nothing answers.
const Nowhere = "127.0.0.1:1"

var quiet = slog.New(slog.DiscardHandler)

// NewShop starts a shop, and ends it with the test.
func NewShop(t testing.TB, cfg ShopConfig) *Shop {
	t.Helper()
	registry := prometheus.NewRegistry()
	reader, err := exporter.New(exporter.WithRegisterer(registry))
	require.NoError(t, err)
	meter := sdk.NewMeterProvider(sdk.WithReader(reader))
	t.Cleanup(func() { _ = meter.Shutdown(context.Background()) })
	s := &Shop{
		store: &shopStore{Memory: bucket.NewMemory(bucket.MemoryConfig{MaxEntries: cfg.Budgets})},
		feed:  &shopFeed{}, sink: &shopSink{},
	}
	first := document
	if cfg.Backstop {
		first = walled
	}
	s.Publish(max(1, cfg.Revision), first)
	follower, err := policy.Follow(t.Context(), s.feed, policy.Config{
		Interval: 100 * time.Millisecond, Observe: policy.ObserveConfig{Name: "shop", MeterProvider: meter, Logger: quiet},
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = follower.Close() })
	served := tiers.NewRollout(follower)
	if cfg.Candidate {
		tried, err := tiers.Load([]byte(document), 1)
		require.NoError(t, err)
		require.NoError(t, served.Propose("tried", tried))
	}
	limiter := ratelimit.New(ratelimit.Config{
		Throttle: ratelimit.ThrottleConfig{Throttle: throttled(t, cfg, meter)},
		Store:    s.store, Stores: map[string]bucket.Store{"archive": s.store}, Policy: served, Subject: subject,
		Settlement: ratelimit.SettlementConfig{Refund: true},
		Observe: ratelimit.ObserveConfig{
			MeterProvider: meter, TopTenants: 10, Operations: []string{"Users"}, Observer: s.observer(t, cfg, meter), Logger: quiet,
		},
	})
	s.serve(t, cfg, meter, limiter)
	scraped := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	t.Cleanup(scraped.Close)
	s.URL = scraped.URL
	return s
}

// throttled is a throttle that has a signal, and a target that no query comes near: a busy machine sheds nothing. In a shop that is overloaded every query is beyond it.
func throttled(t testing.TB, cfg ShopConfig, meter metric.MeterProvider) *throttle.Throttle {
	t.Helper()
	latency := time.Hour
	if cfg.Overloaded {
		latency = time.Nanosecond
	}
	shedding, err := throttle.New(throttle.Config{
		Centre: throttle.NewMemory(nil), Processor: throttle.None, Memory: throttle.None, Latency: latency, MeterProvider: meter, Logger: quiet,
	})
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- shedding.Run(context.Background()) }()
	t.Cleanup(func() {
		require.NoError(t, shedding.Shutdown(context.Background()))
		require.NoError(t, <-ended)
	})
	return shedding
}

// subject is the tenant of a header, whose tier is what its name begins with.
func subject(_ context.Context, r *ratelimit.Request) (ratelimit.Subject, error) {
	tier, _, _ := strings.Cut(r.Header.Get("Tenant"), "-")
	return ratelimit.Subject{Tenant: r.Header.Get("Tenant"), Tier: tier}, nil
}

// observer is who is told of decisions: the stream, the reporter, and whoever takes nothing.
func (s *Shop) observer(t testing.TB, cfg ShopConfig, meter metric.MeterProvider) event.Observer {
	t.Helper()
	streams, err := stream.Start(stream.Config{Sink: s.sink, MeterProvider: meter, Logger: quiet})
	require.NoError(t, err)
	t.Cleanup(func() {
		// What waits for a broker that is away is not waited for.
		ended, end := context.WithCancel(context.Background())
		end()
		_ = streams.Close(ended)
	})
	told := []event.Observer{streams}
	if cfg.Events > 0 {
		told = append(told, event.NewChannel(cfg.Events))
	}
	if cfg.Report != "" {
		client := redis.NewClient(&redis.Options{Addr: cfg.Report})
		t.Cleanup(func() { _ = client.Close() })
		reporter, err := report.Start(report.Config{
			Place: report.Place{Client: client, Namespace: cfg.Namespace}, MeterProvider: meter, Logger: quiet,
		})
		require.NoError(t, err)
		t.Cleanup(func() { _ = reporter.Close() })
		told = append(told, reporter)
	}
	return event.All(told...)
}

// serve has a server behind a front door, and runs its limiter.
func (s *Shop) serve(t testing.TB, cfg ShopConfig, meter metric.MeterProvider, limiter *ratelimit.Extension) {
	t.Helper()
	srv := handler.New(testserver.NewExecutableSchema(testserver.Config{Resolvers: &testserver.Resolver{}}))
	srv.AddTransport(transport.POST{})
	door, err := edge.New(edge.Config{
		// It is more than anybody sends, and a budget of which one is spent is not full again before others come.
		Address:    edge.AddressConfig{Limits: []bucket.Limit{{Name: "minute", Unit: bucket.Requests, Capacity: 100_000, Period: 24 * time.Hour}}},
		MaxBudgets: cfg.Addresses, Observe: edge.ObserveConfig{MeterProvider: meter, Logger: quiet},
	})
	require.NoError(t, err)
	srv.Use(door)
	srv.Use(limiter)
	s.handler = door.Handler(ratelimit.Handler(srv))
	running, end := context.WithCancel(context.Background())
	var behind sync.WaitGroup
	behind.Go(func() { limiter.Run(running) })
	t.Cleanup(func() {
		end()
		behind.Wait()
		_ = limiter.Shutdown(running)
	})
}

// Ask sends a query, and returns the status of its answer. The tenant is called after its tier, a hyphen and anything: its part behind the
// last hyphen, if that is a number, is that of its address too.
func (s *Shop) Ask(t testing.TB, tenant, query string) int {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/query", strings.NewReader(query))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Tenant", tenant)
	number := 0
	_, _ = fmt.Sscan(tenant[strings.LastIndexByte(tenant, '-')+1:], &number)
	request.RemoteAddr = fmt.Sprintf("192.0.2.%d:1234", number%256)
	answer := httptest.NewRecorder()
	s.handler.ServeHTTP(answer, request)
	return answer.Code
}

// StoreAway has the store of budgets answer no more, or again.
func (s *Shop) StoreAway(away bool) { s.store.away.Store(away) }

// SettlementsFail has the store correct no charges, or again.
func (s *Shop) SettlementsFail(fail bool) { s.store.settlementsFail.Store(fail) }

// BrokerAway has the broker of the stream take nothing, or again.
func (s *Shop) BrokerAway(away bool) { s.sink.away.Store(away) }

// FeedAway has the feed of the policy not answer, or again.
func (s *Shop) FeedAway(away bool) { s.feed.away.Store(away) }

// Publish has the feed offer a revision, which may be one that nobody can serve.
func (s *Shop) Publish(number uint64, document string) {
	s.feed.newest.Store(&policy.Revision{Number: number, Document: []byte(document), Hash: policy.HashOf([]byte(document))})
}

var errAway = errors.New("promtest: away")

// shopStore is a store in memory that can be away.
type shopStore struct {
	*bucket.Memory
	away, settlementsFail atomic.Bool
}

// Take implements [bucket.Store].
func (s *shopStore) Take(ctx context.Context, take bucket.Take) (bucket.Result, error) {
	if s.away.Load() {
		return bucket.Result{}, fmt.Errorf("%w: %w", bucket.ErrUnavailable, errAway)
	}
	return s.Memory.Take(ctx, take)
}

// Settle implements [bucket.Store].
func (s *shopStore) Settle(ctx context.Context, settlement bucket.Settlement) (bucket.Settled, error) {
	switch {
	case s.away.Load():
		return bucket.Settled{}, fmt.Errorf("%w: %w", bucket.ErrUnavailable, errAway)
	case s.settlementsFail.Load():
		return bucket.Settled{}, errAway
	}
	return s.Memory.Settle(ctx, settlement)
}

// shopFeed is a feed in memory that can be away.
type shopFeed struct {
	newest atomic.Pointer[policy.Revision]
	away   atomic.Bool
}

// Newest implements [policy.Feed].
func (f *shopFeed) Newest(_ context.Context, have policy.Head) (*policy.Revision, error) {
	newest := f.newest.Load()
	switch {
	case f.away.Load():
		return nil, errAway
	case newest.Number == have.Number && newest.Hash == have.Hash:
		return nil, nil
	}
	return newest, nil
}

// Hints implements [policy.Feed].
func (f *shopFeed) Hints(context.Context, func()) error { return policy.ErrNoHints }

// shopSink is a broker that keeps nothing, and can be away.
type shopSink struct{ away atomic.Bool }

// Send implements [stream.Sink].
func (s *shopSink) Send(_ context.Context, batch []stream.Envelope) []error {
	if !s.away.Load() {
		return nil
	}
	errs := make([]error, len(batch))
	for i := range errs {
		errs[i] = errAway
	}
	return errs
}
