package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/relay"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/storetest"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/web"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/observe/report"
	"github.com/gqlgen-ratelimit/ratelimit/policy/redisswitch"
)

// document is a policy with limits at all levels.
const document = `version: 1
default: free
tiers:
  free:
    limits:
      minute: {capacity: 1000, per: minute}
    teams: {limits: {minute: {capacity: 500, per: minute}}}
    users: {limits: {minute: {capacity: 100, per: minute}}}
    operations: {Mutation.createOrder: {limits: {minute: {unit: requests, capacity: 10, per: minute}}}}
`

// plenty are limits that no test reaches.
var plenty = web.LimitConfig{Address: 1e6, Actor: 1e6, Changes: 1e6}

// budgets are a store that may be away.
type budgets struct {
	*bucket.Memory

	away atomic.Bool
}

// Peek implements control.Budgets.
func (b *budgets) Peek(ctx context.Context, tenant string, buckets []bucket.Bucket) ([]bucket.LimitState, error) {
	if b.away.Load() {
		return nil, bucket.ErrUnavailable
	}
	return b.Memory.Peek(ctx, tenant, buckets)
}

// lines are how many were written.
type lines struct{ atomic.Int64 }

// Write implements io.Writer.
func (l *lines) Write(line []byte) (int, error) {
	l.Add(1)
	return len(line), nil
}

// scene is a server on a database, which is asked over HTTP.
type scene struct {
	*testing.T
	web    *web.Server
	server *httptest.Server
	db     *store.DB
	// budgets are those of the instances.
	budgets *budgets
	// logged counts lines of the log.
	logged    lines
	bootstrap string
	// admin may everything.
	admin string
	// fleet is what instances say, and relay what the relay knows.
	fleet struct {
		said []report.Instance
		err  error
	}
	relay relay.Status
	// redis is the client of the Redis of mode switches, and switched the tag of the one that was set last.
	redis    redis.UniversalClient
	switched string
	// tokens is where the authenticator finds tokens.
	tokens *tokenStore
	// stopped is what the clock of the server says, nil for that of the system.
	stopped atomic.Pointer[time.Time]
}

// folder is where the Redis of all tests has its files.
var folder string

// server is that Redis. Each scene has a namespace of its own.
var server = sync.OnceValues(func() (_ *redistest.Server, err error) {
	if folder, err = os.MkdirTemp("", "web"); err != nil {
		return nil, err
	}
	return redistest.Launch(folder)
})

// scenes counts namespaces.
var scenes atomic.Int64

func TestMain(m *testing.M) {
	code := m.Run()
	if scenes.Load() > 0 {
		if launched, err := server(); err == nil {
			launched.Kill()
		}
		_ = os.RemoveAll(folder)
	}
	os.Exit(code)
}

// modes are the mode switches of the scene.
func (s *scene) modes() *redisswitch.Switches {
	s.Helper()
	namespace := fmt.Sprint("scene-", scenes.Add(1))
	launched, err := server()
	require.NoError(s, err)
	s.redis = redistest.Connect(s, launched.Addr)
	switches, err := redisswitch.New(redisswitch.Config{Client: s.redis, Namespace: namespace})
	require.NoError(s, err)
	return switches
}

// Summary implements control.Instances.
func (s *scene) Summary(context.Context, time.Duration) (*report.Summary, error) {
	return &report.Summary{Instances: s.fleet.said}, s.fleet.err
}

func newScene(t *testing.T, limits web.LimitConfig) *scene {
	t.Helper()
	return newSceneOf(t, limits, true)
}

// newSceneOf is a scene with or without a Redis.
func newSceneOf(t *testing.T, limits web.LimitConfig, redis bool) *scene {
	t.Helper()
	s := &scene{T: t}
	var err error
	s.db, err = store.Open(t.Context(), store.Config{URL: storetest.SQLite(t)})
	require.NoError(t, err)
	var once sync.Once
	t.Cleanup(func() { once.Do(func() { _ = s.db.Close() }) })
	log := slog.New(slog.NewTextHandler(&s.logged, nil))
	s.budgets = &budgets{Memory: bucket.NewMemory(bucket.MemoryConfig{})}
	cfg := control.Config{Store: s.db, Changed: func() { s.web.Wake() }, Budgets: s.budgets}
	if redis {
		cfg.Webhooks, cfg.Modes = webhooks(t), s.modes()
		cfg.Instances, cfg.Relay = s, func() relay.Status { return s.relay }
	}
	c, err := control.New(cfg)
	require.NoError(t, err)
	s.tokens = &tokenStore{TokenStore: c.TokenStore()}
	authenticator, err := access.NewAuthenticator(access.AuthConfig{Tokens: s.tokens, Logger: log})
	require.NoError(t, err)
	t.Cleanup(authenticator.Close)
	s.web, err = web.New(web.Config{
		Control: c, Authenticator: authenticator, Limits: limits, Logger: log, Now: s.clock,
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "up 1\n") }),
	})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { s.web.Run(ctx) })
	s.server = httptest.NewServer(s.web)
	t.Cleanup(func() {
		stop()
		running.Wait()
		s.server.Close()
	})
	s.bootstrap, err = c.Bootstrap(t.Context(), false)
	require.NoError(t, err)
	return s
}

// clock is that of the system, unless a test has stopped it.
func (s *scene) clock() time.Time {
	if at := s.stopped.Load(); at != nil {
		return *at
	}
	return time.Now()
}

// stop stops the clock of the server.
func (s *scene) stop() {
	now := time.Now()
	s.stopped.Store(&now)
}

// answer is what the server has answered.
type answer struct {
	*http.Response

	body string
}

// header is one that is sent.
type header map[string]string

// ask sends a request. A body of nothing is none.
func (s *scene) ask(method, path, token string, h header, body string) answer {
	s.Helper()
	request, err := http.NewRequestWithContext(s.Context(), method, s.server.URL+path, strings.NewReader(body))
	require.NoError(s, err)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	for name, value := range h {
		if value == theSwitch {
			value = s.switched
		}
		request.Header.Set(name, value)
	}
	response, err := s.server.Client().Do(request)
	require.NoError(s, err)
	if method == http.MethodPut && strings.HasPrefix(path, modes) && response.StatusCode == http.StatusOK {
		s.switched = response.Header.Get("ETag")
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	require.NoError(s, err)
	return answer{response, string(text)}
}

// want requires a status, and says what was answered instead.
func (s *scene) want(status int, a answer) answer {
	s.Helper()
	require.Equal(s, status, a.StatusCode, a.body)
	return a
}

// problem reads a refusal.
func (s *scene) problem(status int, a answer) (p struct {
	Status                     int
	Title, Detail, Request, By string
	Field                      string
	Current                    *uint64
	At                         time.Time
	Mistakes                   []struct{ Line int }
	Roles                      []access.Role
},
) {
	s.Helper()
	s.want(status, a)
	require.Equal(s, "application/problem+json", a.Header.Get("Content-Type"))
	s.read(a, &p)
	require.Equal(s, status, p.Status)
	require.NotEmpty(s, p.Title)
	require.NotRegexp(s, `(?m)(^|[:;] )(access|audit|bucket|control|policy|store|tiers|web): `, p.Detail, "clients read plain words")
	require.Equal(s, a.Header.Get("Request-Id"), p.Request)
	return p
}

func (s *scene) read(a answer, into any) {
	s.Helper()
	require.NoError(s, json.Unmarshal([]byte(a.body), into), a.body)
}

// because is a reason, and perhaps more.
func because(more ...string) header {
	h := header{"Ratelimit-Reason": "why"}
	for i := 0; i+1 < len(more); i += 2 {
		h[more[i]] = more[i+1]
	}
	return h
}

var first = because("If-None-Match", "*")

// on is a reason, and the revision that is replaced.
func on(etag string) header { return because("If-Match", etag) }

// issue issues a token by another one.
func (s *scene) issue(by, subject string, tenants []string, roles ...access.Role) (id, token string) {
	s.Helper()
	body, err := json.Marshal(map[string]any{"subject": subject, "roles": roles, "tenants": tenants})
	require.NoError(s, err)
	var issued struct{ ID, Token string }
	s.read(s.want(http.StatusCreated, s.ask(http.MethodPost, "/v1/tokens", by, because(), string(body))), &issued)
	require.NotEmpty(s, issued.Token)
	return issued.ID, issued.Token
}

// start exchanges the bootstrap token for one of an admin.
func (s *scene) start() *scene {
	s.Helper()
	_, s.admin = s.issue(s.bootstrap, "admin", nil, access.Admin)
	return s
}

// publish publishes a first policy.
func (s *scene) publish() *scene {
	s.Helper()
	s.want(http.StatusOK, s.ask(http.MethodPut, policies, s.admin, first, document))
	return s
}

const (
	policies  = "/v1/ratelimit/policies"
	overrides = "/v1/orgs/acme/ratelimit/overrides"
	onTenant  = overrides + "?level=tenant&limit=minute"
)

// soonOver is when overrides of the tests end.
var soonOver = time.Now().Add(48 * time.Hour).UTC().Format(time.RFC3339)

// raise is an override of a capacity.
var raise = `{"capacity": 5000, "expires": "` + soonOver + `"}`

const (
	// patient is for how long a test waits for something at most, and soon how often it looks.
	patient = 20 * time.Second
	soon    = 5 * time.Millisecond
)
