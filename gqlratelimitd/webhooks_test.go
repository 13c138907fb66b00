package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/event/redisstream"
	"github.com/gqlgen-ratelimit/ratelimit/event/stream"
	"github.com/gqlgen-ratelimit/ratelimit/internal/postgrestest"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/internal/testserver"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

var webhookRefusals = flag.Int("webhook-refusals", 3, "of how many refusals the time to the webhook is measured")

// receiver is an endpoint of a tenant: a server that remembers what has come.
type receiver struct {
	*testing.T
	server *httptest.Server
	// answer says how the attempt of a message is answered: the first one is 1. It is called without the lock.
	answer func(w http.ResponseWriter, attempt int)

	mu sync.Mutex
	// attempts are those of each message that was verified.
	attempts map[string]int
	bodies   []arrival
	forged   int
	verifier *standardwebhooks.Webhook
	id       string
}

// arrival is a message that has come, and when.
type arrival struct {
	id, body string
	at       time.Time
}

// has returns when the first message came that has a text, and whether one has.
func (r *receiver) has(text string) (at time.Time, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.bodies {
		if strings.Contains(a.body, text) {
			return a.at, true
		}
	}
	return at, false
}

func newReceiver(t *testing.T, address string, answer func(w http.ResponseWriter, attempt int)) *receiver {
	t.Helper()
	r := &receiver{T: t, answer: answer, attempts: map[string]int{}}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address+":0")
	require.NoError(t, err)
	r.server = httptest.NewUnstartedServer(http.HandlerFunc(r.receive))
	require.NoError(t, r.server.Listener.Close())
	r.server.Listener = listener
	r.server.Start()
	t.Cleanup(r.server.Close)
	return r
}

func (r *receiver) receive(w http.ResponseWriter, request *http.Request) {
	r.mu.Lock()
	id := request.Header.Get(standardwebhooks.HeaderWebhookID)
	body, err := io.ReadAll(request.Body)
	if err == nil && r.verifier != nil {
		err = r.verifier.Verify(body, request.Header)
	}
	if err != nil || r.verifier == nil {
		r.forged++
		r.mu.Unlock()
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	r.attempts[id]++
	r.bodies = append(r.bodies, arrival{id, string(body), time.Now()})
	attempt := r.attempts[id]
	r.mu.Unlock()
	r.answer(w, attempt)
}

// came returns how many attempts each message had, and how many messages came unsigned.
func (r *receiver) came() (attempts []int, forged int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.attempts {
		attempts = append(attempts, n)
	}
	slices.Sort(attempts)
	return attempts, r.forged
}

func (r *receiver) port() string {
	_, port, _ := net.SplitHostPort(r.server.Listener.Addr().String())
	return port
}

func status(code int) func(http.ResponseWriter, int) {
	return func(w http.ResponseWriter, _ int) { w.WriteHeader(code) }
}

// hooksConfig is a file in which receivers may be reached, which are on this machine.
func hooksConfig(t *testing.T, receivers ...*receiver) string {
	t.Helper()
	var ports []string
	for _, r := range receivers {
		ports = append(ports, r.port())
	}
	return hooksAt(t, ports...)
}

// hooksAt is a file in which these ports of this machine may be reached.
func hooksAt(t *testing.T, ports ...string) string {
	t.Helper()
	ports = append(ports, "443")
	name := filepath.Join(t.TempDir(), "limits.yaml")
	text := "webhooks: {allowNetworks: [127.0.0.1/32], allowPlain: [127.0.0.1, 127.0.0.2], ports: [" + strings.Join(ports, ", ") + "]}\n"
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

// register registers a receiver as an endpoint of a tenant.
func (r *running) register(token, tenant string, to *receiver) {
	r.Helper()
	var made struct{ ID, Secret string }
	answer := r.ask(http.StatusCreated, http.MethodPost, "/v1/orgs/"+tenant+"/ratelimit/webhooks", token, fmt.Sprintf(`{"url": %q}`, to.server.URL+"/in"))
	require.NoError(r, json.Unmarshal([]byte(answer), &made))
	verifier, err := standardwebhooks.NewWebhook(made.Secret)
	require.NoError(r, err)
	to.mu.Lock()
	defer to.mu.Unlock()
	to.id, to.verifier = made.ID, verifier
}

// endpointState is an endpoint of acme as the daemon tells it.
type endpointState struct {
	Disabled      string
	Waiting, Dead int
	Revision      uint64
}

func (r *running) state(token string, of *receiver) (s endpointState) {
	r.Helper()
	answer := r.ask(http.StatusOK, http.MethodGet, "/v1/orgs/acme/ratelimit/webhooks/"+of.id, token, "")
	require.NoError(r, json.Unmarshal([]byte(answer), &s))
	return s
}

// queueTo is the queue of an instance before a Redis.
func queueTo(t *testing.T, redis string) *stream.Queue {
	t.Helper()
	client := redistest.Connect(t, redis)
	sink, err := redisstream.New(redisstream.Config{Client: client})
	require.NoError(t, err)
	queue, err := stream.Start(stream.Config{Sink: sink, Logger: quiet})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, queue.Close(context.Background())) })
	return queue
}

// reading waits until the daemons read the stream from here on: what was before the first endpoint is nobody's.
func reading(t *testing.T, queue *stream.Queue, to *receiver, tenant string) {
	t.Helper()
	require.Eventually(t, func() bool {
		queue.Observe(t.Context(), event.LimitReached{Budget: event.Budget{Tenant: tenant, Limit: "first"}, At: time.Now()})
		came, _ := to.came()
		return len(came) > 0
	}, patient, 50*time.Millisecond)
}

func TestEventsReachTheEndpointsOfTheirTenantOnceEachThoughSeveralDaemonsBringThem(t *testing.T) {
	t.Parallel()
	const events = 60
	redis := redistest.Start(t)
	postgres, err := postgrestest.Launch()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, postgres.Close()) })
	release := make(chan struct{})
	elsewhere := newReceiver(t, "127.0.0.1", func(http.ResponseWriter, int) { t.Error("a redirect was followed") })
	fine := newReceiver(t, "127.0.0.1", status(http.StatusNoContent))
	slow := newReceiver(t, "127.0.0.1", func(w http.ResponseWriter, _ int) {
		<-release
		w.WriteHeader(http.StatusOK)
	})
	wrong := newReceiver(t, "127.0.0.1", func(w http.ResponseWriter, attempt int) {
		w.WriteHeader(map[bool]int{true: http.StatusInternalServerError, false: http.StatusOK}[attempt == 1])
	})
	redirects := newReceiver(t, "127.0.0.1", func(w http.ResponseWriter, _ int) {
		w.Header().Set("Location", elsewhere.server.URL)
		w.WriteHeader(http.StatusTemporaryRedirect)
	})
	gone := newReceiver(t, "127.0.0.1", status(http.StatusGone))
	private := newReceiver(t, "127.0.0.2", func(http.ResponseWriter, int) { t.Error("a private address was reached") })
	other := newReceiver(t, "127.0.0.1", status(http.StatusOK))
	all := []*receiver{fine, slow, wrong, redirects, gone, private}
	config := hooksConfig(t, append(all, elsewhere, other)...)
	data := t.TempDir()
	args := []string{"-config", config, "-database", postgres.URL("postgres"), "-redis", "redis://" + redis.Addr}
	one := start(t, data, args...)
	token := one.first()
	two := start(t, data, args...)
	for _, r := range all {
		one.register(token, "acme", r)
	}
	two.register(token, "globex", other)
	queue := queueTo(t, redis.Addr)
	reading(t, queue, other, "globex")
	for n := range events {
		queue.Observe(t.Context(), event.Decided{At: time.Now(), RefusalID: fmt.Sprint("R", n), Outcome: "limited", Code: "RATE_LIMITED", Tenant: "acme", Origin: event.Origin{Rule: []string{"secret"}}})
	}
	once := slices.Repeat([]int{1}, events)
	arrived := func(r *receiver, want []int) {
		t.Helper()
		require.Eventually(t, func() bool { came, _ := r.came(); return slices.Equal(came, want) }, patient, soon, "%v", want)
	}
	arrived(fine, once)
	require.Eventually(t, func() bool { came, _ := slow.came(); return len(came) >= 2 }, patient, soon)
	// A daemon that ends has the other one bring what it had under way.
	require.Zero(t, one.stop())
	close(release)
	require.Eventually(t, func() bool { came, _ := slow.came(); return len(came) == events }, patient, soon, "all of it, some twice")
	require.Eventually(t, func() bool {
		came, _ := wrong.came()
		// What the daemon that ended had under way may come a third time.
		return len(came) == events && came[0] >= 2
	}, patient, soon)
	came, _ := wrong.came()
	require.LessOrEqual(t, came[events-1], 3)
	require.Eventually(t, func() bool { return two.state(token, gone).Disabled == "gone" }, patient, soon)
	require.Contains(t, two.ask(http.StatusOK, http.MethodGet, "/v1/audit/entries?action=webhook.disable", token, ""), gone.id)
	came, _ = gone.came()
	require.LessOrEqual(t, len(came), 4, "two daemons, two at once")
	require.Equal(t, events-len(came), two.state(token, gone).Waiting, "what it did not get waits")
	for _, r := range []*receiver{redirects, private} {
		require.Equal(t, events, two.state(token, r).Waiting, "it is tried for three days")
	}
	require.Zero(t, two.state(token, fine).Waiting)
	for _, r := range append(all, other) {
		_, forged := r.came()
		require.Zero(t, forged)
	}
	for text, want := range map[string]bool{`"type":"ratelimit.decision.refused.v1"`: true, "secret": false} {
		_, ok := fine.has(text)
		require.Equal(t, want, ok, text)
	}
	_, ok := other.has("acme")
	require.False(t, ok)
}

func TestADaemonWithAnotherKeyForWebhooksDoesNotStart(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	data := t.TempDir()
	to := newReceiver(t, "127.0.0.1", status(http.StatusOK))
	one := start(t, data, "-redis", "redis://"+redis.Addr, "-config", hooksConfig(t, to))
	one.register(one.first(), "acme", to)
	require.Zero(t, one.stop())
	info, err := os.Stat(filepath.Join(data, "webhook.key"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	other := filepath.Join(data, "other.key")
	out, code := command("-data", data, "-listen", "127.0.0.1:0", "-redis", "redis://"+redis.Addr, "-webhook-key", other)
	require.Equal(t, exitFailed, code, out)
	require.Contains(t, out, "copy "+other+" from the first one")
}

func TestWhatIsWrongWithTheOptionsOfWebhooksIsSaid(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "limits.yaml")
	require.NoError(t, os.WriteFile(name, []byte("webhooks: {topics: [a..b], allowPlain: ['http://x'], deadDays: 401}\n"), 0o600))
	_, err := readOptions([]string{"-config", name}, os.Stderr)
	require.ErrorContains(t, err, "webhooks.topics[0]")
	require.ErrorContains(t, err, "AllowPlain")
	require.ErrorContains(t, err, "webhooks.deadDays is 401: write 1 to 400, or 0 for 30")
}

// TestTheTimeFromARefusalToTheWebhook measures: from the answer of a server that refuses until the receiver has the message.
func TestTheTimeFromARefusalToTheWebhook(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	to := newReceiver(t, "127.0.0.1", status(http.StatusNoContent))
	r := start(t, t.TempDir(), "-redis", "redis://"+redis.Addr, "-config", hooksConfig(t, to))
	token := r.first()
	r.register(token, "acme", to)
	queue := queueTo(t, redis.Addr)
	reading(t, queue, to, "acme")
	server := refusing(t, queue)
	var took []time.Duration
	id := regexp.MustCompile(`"refusalId":"(\w+)"`)
	for range *webhookRefusals {
		var refused string
		var began time.Time
		// Of a tenant one refusal in a second is told for sure.
		require.Eventually(t, func() bool {
			w := httptest.NewRecorder()
			request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/query", strings.NewReader(`{"query": "{ me { name } }"}`))
			request.Header.Set("Content-Type", "application/json")
			server.ServeHTTP(w, request)
			found := id.FindStringSubmatch(w.Body.String())
			began = time.Now()
			if found != nil {
				refused = found[1]
			}
			return found != nil
		}, patient, 1100*time.Millisecond)
		require.Eventually(t, func() bool { _, ok := to.has(refused); return ok }, patient, 5*time.Millisecond, refused)
		at, _ := to.has(refused)
		took = append(took, at.Sub(began))
	}
	slices.Sort(took)
	t.Logf("%d refusals: from the answer of the server to the webhook: p50 %v, at most %v", len(took), took[len(took)/2], took[len(took)-1])
}

// refusing is an instance that refuses everything but the first operation of acme, and tells the queue.
func refusing(t *testing.T, queue *stream.Queue) http.Handler {
	t.Helper()
	policy, err := tiers.Load([]byte(strings.Replace(document, "1000, per: minute", "1, per: month, window: calendar", 1)), 0)
	require.NoError(t, err)
	srv := handler.New(testserver.NewExecutableSchema(testserver.Config{Resolvers: &testserver.Resolver{}}))
	srv.AddTransport(transport.POST{})
	extension := ratelimit.New(ratelimit.Config{
		Store: bucket.NewMemory(bucket.MemoryConfig{}), Policy: policy,
		Subject: func(context.Context, *ratelimit.Request) (ratelimit.Subject, error) {
			return ratelimit.Subject{Tenant: "acme"}, nil
		},
		Observe: ratelimit.ObserveConfig{Observer: queue, Logger: quiet},
	})
	srv.Use(extension)
	t.Cleanup(func() { require.NoError(t, extension.Shutdown(context.Background())) })
	return ratelimit.Handler(srv)
}
