package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
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
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/digest"
	"github.com/gqlgen-ratelimit/ratelimit/digest/redisdigest"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/internal/testserver"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/policy/redisfeed"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

const (
	// soon is how often something is looked at that comes by itself, and patient how long it is waited for.
	soon    = 20 * time.Millisecond
	patient = 60 * time.Second
)

var quiet = slog.New(slog.DiscardHandler)

// fleet is a daemon whose clock the test has, its Redis, and instances that follow: servers with the extension.
type fleet struct {
	*running
	// ahead is how far the clock of the daemon is, in nanoseconds.
	ahead     *atomic.Int64
	instances []*instance
	digests   *redisdigest.Reader
	// token is of who may do everything, and sent is how many operations were sent.
	token string
	sent  int64
}

// instance is a server with the extension.
type instance struct {
	http.Handler
	policy tiers.Source
}

// newFleet starts all of it, with a first policy that all instances serve. What stands around the follower differs: nothing, a switch, a
// roll-out of their own.
func newFleet(t *testing.T, first string) *fleet {
	t.Helper()
	server := redistest.Start(t)
	f := &fleet{ahead: &atomic.Int64{}}
	f.running = startAt(t, "redis://"+server.Addr, func() time.Time { return time.Now().Add(time.Duration(f.ahead.Load())) }, io.Discard)
	for i, around := range []func(tiers.Source) tiers.Source{
		func(s tiers.Source) tiers.Source { return s },
		func(s tiers.Source) tiers.Source { return tiers.NewModeSwitch(s) },
		func(s tiers.Source) tiers.Source { return tiers.NewRollout(s) },
	} {
		f.instances = append(f.instances, newInstance(t, server.Addr, fmt.Sprint("instance-", i), around))
	}
	var err error
	f.digests, err = redisdigest.NewReader(redisdigest.Config{Client: redistest.Connect(t, server.Addr)})
	require.NoError(t, err)
	var issued struct{ Token string }
	body := f.ask(http.StatusCreated, http.MethodPost, "/v1/tokens", f.running.token, `{"subject": "me", "roles": ["publisher", "operator", "auditor"]}`)
	require.NoError(t, json.Unmarshal([]byte(body), &issued))
	f.token = issued.Token
	f.ask(http.StatusOK, http.MethodPut, "/v1/ratelimit/policies", f.token, first, "If-None-Match", "*")
	f.serve(1)
	return f
}

// startAt starts a daemon with a clock and a log, which looks at its roll-out all the time.
func startAt(t *testing.T, redis string, now func() time.Time, log io.Writer) *running {
	t.Helper()
	return startWith(t, &options{Listen: "127.0.0.1:0", Data: t.TempDir(), Redis: redis, Alone: true, now: now, interval: soon}, log)
}

// startWith starts a daemon with options that have no flags.
func startWith(t testing.TB, o *options, log io.Writer) *running {
	t.Helper()
	require.NoError(t, o.complete())
	ctx, cancel := context.WithCancel(t.Context())
	said := make(greeting, 1)
	d, err := open(ctx, o, console{strings.NewReader(""), said, log})
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- d.serve(ctx) }()
	r := &running{TB: t, url: "http://" + d.listener.Addr().String(), token: d.token}
	r.stop = sync.OnceValue(func() int {
		cancel()
		require.NoError(t, <-ended)
		return 0
	})
	t.Cleanup(func() { r.stop() })
	r.out = <-said
	return r
}

func newInstance(t *testing.T, redis, name string, around func(tiers.Source) tiers.Source) *instance {
	t.Helper()
	client := redistest.Connect(t, redis)
	collector, err := digest.New(digest.Config{Users: digest.Plain})
	require.NoError(t, err)
	writer, err := redisdigest.Start(redisdigest.WriterConfig{
		Config: redisdigest.Config{Client: client}, Collector: collector, Instance: name, Logger: quiet,
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = writer.Close() })
	feed, err := redisfeed.New(redisfeed.Config{Client: client, Instance: name})
	require.NoError(t, err)
	builtIn, err := tiers.Load([]byte(document), 0)
	require.NoError(t, err)
	follower, err := policy.Follow(t.Context(), feed, policy.Config{
		First: builtIn, Reporter: feed, Observe: policy.ObserveConfig{Observer: event.All(collector), Logger: quiet},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, follower.Close()) })
	store, err := bucket.NewRedis(bucket.RedisConfig{Client: client})
	require.NoError(t, err)
	i := &instance{policy: around(follower)}
	srv := handler.New(testserver.NewExecutableSchema(testserver.Config{Resolvers: &testserver.Resolver{}}))
	srv.AddTransport(transport.POST{})
	extension := ratelimit.New(ratelimit.Config{
		Store: store, Policy: i.policy,
		Subject: func(_ context.Context, r *ratelimit.Request) (ratelimit.Subject, error) {
			return ratelimit.Subject{Tenant: r.Header.Get("Tenant")}, nil
		},
		Observe: ratelimit.ObserveConfig{Observer: event.All(collector), Logger: quiet},
	})
	srv.Use(extension)
	t.Cleanup(func() { require.NoError(t, extension.Shutdown(context.Background())) })
	i.Handler = ratelimit.Handler(srv)
	return i
}

// serve waits until each instance serves a revision.
func (f *fleet) serve(revision uint64) {
	f.Helper()
	require.Eventually(f, func() bool {
		for _, i := range f.instances {
			if i.policy.Snapshot().Generation() != revision {
				return false
			}
		}
		return true
	}, patient, soon)
}

// send sends a number of operations of a tenant, spread over the instances, and returns how many were refused.
func (f *fleet) send(tenant string, n int) (refused int) {
	f.Helper()
	f.sent += int64(n)
	for i := range n {
		r := httptest.NewRequestWithContext(f.Context(), http.MethodPost, "/query", strings.NewReader(`{"query": "{ me { name } }"}`))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Tenant", tenant)
		w := httptest.NewRecorder()
		f.instances[i%len(f.instances)].ServeHTTP(w, r)
		var answer struct {
			Errors []struct {
				Extensions struct{ Code string }
			}
		}
		require.NoError(f, json.Unmarshal(w.Body.Bytes(), &answer), w.Body.String())
		if len(answer.Errors) > 0 {
			require.Equal(f, "RATE_LIMITED", answer.Errors[0].Extensions.Code, w.Body.String())
			refused++
		}
	}
	return refused
}

// pass lets time pass for the daemon, once instances have written what they were sent.
func (f *fleet) pass(d time.Duration) {
	f.Helper()
	require.Eventually(f, func() bool {
		digests, err := f.digests.Digests(f.Context())
		require.NoError(f, err)
		var written int64
		for i := range digests {
			written += digests[i].Total.Decisions
		}
		return written == f.sent
	}, patient, soon)
	f.ahead.Add(int64(d))
}

// progress is what the daemon answers about its roll-out.
type progress struct {
	ID, Phase, Why, Remark string
	Step                   int
	Revision               uint64
	Measured               *struct{ Tenants, Users float64 }
}

// roll makes a change of the roll-out, of the revision that is expected.
func (f *fleet) roll(path, body string, expected uint64) (r progress) {
	f.Helper()
	answer := f.ask(http.StatusOK, http.MethodPost, "/v1/ratelimit/rollout"+path, f.token, body, "If-Match", fmt.Sprintf("%q", fmt.Sprint(expected)))
	require.NoError(f, json.Unmarshal([]byte(answer), &r))
	return r
}

// until waits for what a roll-out comes to.
func (f *fleet) until(is func(r *progress) bool) (r progress) {
	f.Helper()
	require.Eventually(f, func() bool {
		r = progress{}
		answer := f.ask(http.StatusOK, http.MethodGet, "/v1/ratelimit/rollout", f.token, "")
		require.NoError(f, json.Unmarshal([]byte(answer), &r))
		return is(&r)
	}, patient, soon, "it is %+v", &r)
	return r
}

// newest is the newest document.
func (f *fleet) newest() string {
	f.Helper()
	return f.ask(http.StatusOK, http.MethodGet, "/v1/ratelimit/policies", f.token, "")
}
