package overload_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/internal/testserver"
	"github.com/gqlgen-ratelimit/ratelimit/throttle"
	"github.com/gqlgen-ratelimit/ratelimit/throttle/redisthrottle"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// The scene: three servers, each with a gqlgen handler on a port of its own, share a dependency that serves so many calls at once, each in
// 50 ms. What waits for it longer than two seconds fails. In the slow time four in ten places are left.
const (
	servers    = 3
	places     = 10
	slowPlaces = 4
	callTakes  = 50 * time.Millisecond
	patience   = 2 * time.Second
	// capacity is what the dependency serves in a second.
	capacity = places * int(time.Second/callTakes)
	// target is the latency that both laws are given.
	target = 200 * time.Millisecond
)

// tier is who asks: what in a second, 85 % of the capacity together.
type tier struct {
	name string
	rate int
}

var asking = []tier{{"free", 50}, {"pro", 80}, {"enterprise", 40}}

const policy = `
version: 1
default: free
tiers:
  free: {limits: {minute: {capacity: 1000000, per: minute}}}
  pro: {limits: {minute: {capacity: 1000000, per: minute}}, throttle: {order: 2}}
  enterprise: {limits: {minute: {capacity: 1000000, per: minute}}, throttle: {order: 3}}
`

// dependency is what all servers ask.
type dependency struct{ free chan struct{} }

func newDependency() *dependency {
	d := &dependency{free: make(chan struct{}, places)}
	for range places {
		d.free <- struct{}{}
	}
	return d
}

var errLate = errors.New("the dependency did not answer in time")

// call asks it.
func (d *dependency) call(ctx context.Context) error {
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-d.free:
	case <-late.C:
		return errLate
	case <-ctx.Done():
		return ctx.Err()
	}
	timer := time.NewTimer(callTakes)
	defer timer.Stop()
	<-timer.C
	d.free <- struct{}{}
	return nil
}

// slow takes places away, and returns what gives them back.
func (d *dependency) slow() (end func()) {
	for range places - slowPlaces {
		<-d.free
	}
	return func() {
		for range places - slowPlaces {
			d.free <- struct{}{}
		}
	}
}

// law is what sheds.
type law int

const (
	nothing law = iota
	shedShare
)

func (l law) String() string {
	return [...]string{"nothing", "shed share"}[l]
}

// fleet is the servers of a law, with their dependency.
type fleet struct {
	dependency *dependency
	throttles  []*throttle.Throttle
	urls       []string
	client     *http.Client
	next       atomic.Uint64
}

func newFleet(t *testing.T, l law, redisAddr string) *fleet {
	t.Helper()
	f := &fleet{dependency: newDependency(), client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1000}}}
	t.Cleanup(f.client.CloseIdleConnections)
	limits, err := tiers.Load([]byte(policy), 1)
	require.NoError(t, err)
	for i := range servers {
		quiet := slog.New(slog.DiscardHandler)
		cfg := ratelimit.Config{
			Store: bucket.NewMemory(bucket.MemoryConfig{}), Policy: limits, Observe: ratelimit.ObserveConfig{Logger: quiet},
			Outage: ratelimit.OutageConfig{MaxConcurrent: ratelimit.None},
			Subject: func(_ context.Context, r *ratelimit.Request) (ratelimit.Subject, error) {
				name := r.Header.Get("X-Tier")
				return ratelimit.Subject{Tenant: name + r.Header.Get("X-Tenant"), Tier: name}, nil
			},
		}
		if l != nothing {
			cfg.Throttle.Throttle = newThrottle(t, redisAddr, i)
			f.throttles = append(f.throttles, cfg.Throttle.Throttle)
		}
		srv := handler.New(testserver.NewExecutableSchema(testserver.Config{Resolvers: &testserver.Resolver{
			OnExport: func(ctx context.Context, _ int) error { return f.dependency.call(ctx) },
		}}))
		srv.AddTransport(transport.POST{})
		srv.Use(ratelimit.New(cfg))
		server := httptest.NewServer(ratelimit.Handler(srv))
		t.Cleanup(server.Close)
		f.urls = append(f.urls, server.URL)
	}
	return f
}

func newThrottle(t *testing.T, redisAddr string, i int) *throttle.Throttle {
	t.Helper()
	cfg := throttle.Config{
		Instance: strconv.Itoa(i), Latency: target, Errors: 0.02, Logger: slog.New(slog.DiscardHandler),
		// All servers are one process, beside the clients and other work: its processor time says nothing of any.
		Processor: throttle.None, Memory: throttle.None,
	}
	centre, err := redisthrottle.New(redisthrottle.Config{Client: redistest.Connect(t, redisAddr)})
	require.NoError(t, err)
	cfg.Centre = centre
	one, err := throttle.New(cfg)
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- one.Run(context.WithoutCancel(t.Context())) }()
	t.Cleanup(func() {
		require.NoError(t, one.Shutdown(context.Background()))
		require.NoError(t, <-ended)
	})
	return one
}

// answered is what became of an operation.
type answered struct {
	tier string
	// at is when it was sent, and took how long the answer took.
	at   time.Time
	took time.Duration
	// shed says that it was refused, and failed that the dependency was late.
	shed, failed bool
}

// crowd is clients that ask at their rate, whatever becomes of it.
type crowd struct {
	mu   sync.Mutex
	all  []answered
	work sync.WaitGroup
	stop context.CancelFunc
}

// ask begins to ask the fleet, until the crowd is stopped.
func (f *fleet) ask(t *testing.T) *crowd {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	c := &crowd{stop: stop}
	t.Cleanup(func() {
		stop()
		c.work.Wait()
	})
	for _, who := range asking {
		c.work.Go(func() {
			ticker := time.NewTicker(time.Second / time.Duration(who.rate))
			defer ticker.Stop()
			for n := 0; ctx.Err() == nil; n++ {
				<-ticker.C
				c.work.Go(func() {
					a := f.once(who.name, strconv.Itoa(n%10))
					c.mu.Lock()
					defer c.mu.Unlock()
					c.all = append(c.all, a)
				})
			}
		})
	}
	return c
}

// once asks once.
func (f *fleet) once(tier, tenant string) answered {
	a := answered{tier: tier, at: time.Now()}
	url := f.urls[f.next.Add(1)%uint64(len(f.urls))]
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url, strings.NewReader(`{"query": "{ export(rows: 1) }"}`))
	if err != nil {
		a.failed = true
		return a
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Tier", tier)
	r.Header.Set("X-Tenant", tenant)
	response, err := f.client.Do(r)
	if err != nil {
		a.failed = true
		return a
	}
	defer func() { _ = response.Body.Close() }()
	body, _ := io.ReadAll(response.Body)
	a.took = time.Since(a.at)
	a.shed = response.StatusCode == http.StatusServiceUnavailable
	a.failed = !a.shed && strings.Contains(string(body), `"errors"`)
	return a
}

// since is what has been answered of what was sent in a time.
func (c *crowd) since(from, to time.Time) []answered {
	c.mu.Lock()
	defer c.mu.Unlock()
	var some []answered
	for _, a := range c.all {
		if !a.at.Before(from) && a.at.Before(to) {
			some = append(some, a)
		}
	}
	return some
}
