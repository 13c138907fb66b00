package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/postgrestest"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/observe/report"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/policy/redisfeed"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

const document = `version: 1
default: free
tiers:
  free:
    limits:
      minute: {capacity: 1000, per: minute}
`

// running is a daemon that runs.
type running struct {
	testing.TB
	url, token string
	// out is what it has written until it served.
	out  string
	stop func() int
}

// greeting takes what a daemon writes when it serves, which is one write.
type greeting chan string

// Write implements io.Writer.
func (g greeting) Write(p []byte) (int, error) {
	g <- string(p)
	return len(p), nil
}

// start starts a daemon on a port of its own, and waits until it serves.
func start(t testing.TB, data string, args ...string) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	said, ended := make(greeting, 1), make(chan int, 1)
	var errs strings.Builder
	go func() {
		ended <- run(ctx, append([]string{"-listen", "127.0.0.1:0", "-data", data}, args...), console{strings.NewReader(""), said, &errs})
	}()
	r := &running{TB: t}
	r.stop = sync.OnceValue(func() int {
		cancel()
		code := <-ended
		if code != 0 {
			t.Log(errs.String())
		}
		return code
	})
	t.Cleanup(func() { require.Zero(t, r.stop()) })
	select {
	case r.out = <-said:
	case code := <-ended:
		ended <- code
		t.Fatal("it did not start: ", errs.String())
	}
	r.understand()
	return r
}

// understand reads where it serves, and the one-time token, out of what it has written.
func (r *running) understand() {
	_, r.url, _ = strings.Cut(strings.SplitN(r.out, "\n", 2)[0], "gqlratelimitd serves ")
	r.token = regexp.MustCompile(`grl_[a-z2-7]{13}_[a-z2-7]{59}`).FindString(r.out)
}

// ask sends a request, and returns what is answered.
func (r *running) ask(status int, method, path, token, body string, headers ...string) string {
	r.Helper()
	request, err := http.NewRequestWithContext(r.Context(), method, r.url+path, strings.NewReader(body))
	require.NoError(r, err)
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Ratelimit-Reason", "why")
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	require.NoError(r, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	require.NoError(r, err)
	require.Equal(r, status, response.StatusCode, string(text))
	return string(text)
}

// first does what a stranger does first: the token, and the first policy.
func (r *running) first() (token string) {
	r.Helper()
	var issued struct{ Token string }
	answer := r.ask(http.StatusCreated, http.MethodPost, "/v1/tokens", r.token, `{"subject": "me", "roles": ["admin"]}`)
	require.NoError(r, json.Unmarshal([]byte(answer), &issued))
	r.ask(http.StatusOK, http.MethodPut, "/v1/ratelimit/policies", issued.Token, document, "If-None-Match", "*")
	return issued.Token
}

func TestAStrangerStartsItTakesATokenPublishesAndVerifiesTheLogWithoutIt(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "state")
	r := start(t, data)
	token := r.first()
	require.Contains(t, r.ask(http.StatusOK, http.MethodGet, "/metrics", token, ""), "http_server_request_duration_seconds")
	require.Zero(t, r.stop())

	again := start(t, data)
	require.Empty(t, again.token, "there is a token")
	require.Equal(t, document, again.ask(http.StatusOK, http.MethodGet, "/v1/ratelimit/policies", token, ""))
	require.Zero(t, again.stop())
	export := filepath.Join(t.TempDir(), "audit.jsonl")
	out, code := command("audit", "export", "-o", export, "-data", data)
	require.Zero(t, code, out)
	out, code = command("audit", "verify", export)
	require.Zero(t, code, out)
	require.Contains(t, out, "3 rows", "the one-time token, the token, the policy")

	text, err := os.ReadFile(export)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(export, []byte(strings.Replace(string(text), `"reason":"why"`, `"reason":"who"`, 1)), 0o600))
	out, code = command("audit", "verify", export)
	require.Equal(t, exitFailed, code, out)
	require.Contains(t, out, "row 1 does not fit")
}

func TestVerifyReadsADatabaseAndRemembersARow(t *testing.T) {
	t.Parallel()
	data, export := filepath.Join(t.TempDir(), "state"), filepath.Join(t.TempDir(), "audit.jsonl")
	start(t, data).first()
	out, code := command("audit", "verify", "-data", data)
	require.Zero(t, code, out)
	require.Contains(t, out, "3 rows")
	require.Contains(t, out, "cut off at the end are not found")
	known := regexp.MustCompile(`(?m)^The last row is (2:[0-9a-f]{64})$`).FindStringSubmatch(out)
	require.Len(t, known, 2, out)
	out, code = command("audit", "verify", "-known", known[1], "-data", data)
	require.Zero(t, code, out)
	require.NotContains(t, out, "not found")

	out, code = command("audit", "export", "-data", data, "-o", export)
	require.Zero(t, code, out)
	text, err := os.ReadFile(export)
	require.NoError(t, err)
	lines := strings.SplitAfter(string(text), "\n")
	require.NoError(t, os.WriteFile(export, []byte(lines[0]+lines[1]), 0o600))
	out, code = command("audit", "verify", export)
	require.Zero(t, code, out)
	out, code = command("audit", "verify", export, "-known", known[1])
	require.Equal(t, exitFailed, code, out)
	require.Contains(t, out, "row 2 is missing")
	for _, wrong := range [][]string{{"verify", export, "-known", "2"}, {"verify", export, export}, {"verify", "-data", data, export}, {"prove"}, {}} {
		out, code = command(append([]string{"audit"}, wrong...)...)
		require.Equal(t, exitUsage, code, out)
	}
}

func TestItRunsOnPostgreSQL(t *testing.T) {
	t.Parallel()
	server, err := postgrestest.Launch()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	url, data := server.URL("postgres"), t.TempDir()
	one := start(t, data, "-database", url)
	token := one.first()
	two := start(t, data, "-database", url)
	require.Equal(t, document, two.ask(http.StatusOK, http.MethodGet, "/v1/ratelimit/policies", token, ""))
	two.ask(http.StatusOK, http.MethodPut, "/v1/ratelimit/policies", token, document+"# two\n", "If-Match", `"1"`)
	one.ask(http.StatusPreconditionFailed, http.MethodPut, "/v1/ratelimit/policies", token, document, "If-Match", `"1"`)
	out, code := command("audit", "verify", "-database", url)
	require.Zero(t, code, out)
	require.Contains(t, out, "4 rows")
}

func TestWhatIsPublishedReachesAnInstanceThatFollowsRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	r := start(t, t.TempDir(), "-redis", "redis://"+server.Addr)
	feed, err := redisfeed.New(redisfeed.Config{Client: client})
	require.NoError(t, err)
	builtIn, err := tiers.Load([]byte(document), 0)
	require.NoError(t, err)
	reporter, err := report.Start(report.Config{Place: report.Place{Client: client}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, reporter.Close()) })
	applied := make(chan uint64, 8)
	follower, err := policy.Follow(t.Context(), feed, policy.Config{
		First: builtIn,
		Observe: policy.ObserveConfig{Observer: event.All(reporter, event.Func(func(_ context.Context, e event.Event) {
			if change, ok := e.(event.PolicyApplied); ok && change.Revision > 0 {
				applied <- change.Revision
			}
		}))},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, follower.Close()) })
	token := r.first()
	require.Equal(t, uint64(1), <-applied)
	r.ask(http.StatusOK, http.MethodPut, "/v1/ratelimit/policies", token, strings.ReplaceAll(document, "1000", "2000"), "If-Match", `"1"`)
	require.Equal(t, uint64(2), <-applied)

	// One that this instance refuses is told with its reason, beside the one that it goes on with.
	require.NoError(t, follower.Check(func(s *tiers.Snapshot) error {
		if s.Rules(tiers.Subject{Tenant: "x"}, tiers.Selection{}).Buckets[0].Limits.All()[0].Capacity == 3000 {
			return errors.New("3000 is too much")
		}
		return nil
	}))
	r.ask(http.StatusOK, http.MethodPut, "/v1/ratelimit/policies", token, strings.ReplaceAll(document, "1000", "3000"), "If-Match", `"2"`)
	require.Eventually(t, func() bool {
		answer := r.ask(http.StatusOK, http.MethodGet, "/v1/ratelimit/instances?refusing=true&revision=2", token, "")
		return strings.Contains(answer, "3000 is too much") && strings.Contains(answer, `"behind":1`) && strings.Contains(answer, `"cause":"check"`)
	}, time.Minute, 50*time.Millisecond)
	require.Eventually(t, func() bool {
		answer := r.ask(http.StatusOK, http.MethodGet, "/v1/ratelimit/relay", token, "")
		return strings.Contains(answer, `"leads":true`) && strings.Contains(answer, `"waiting":0`)
	}, time.Minute, 50*time.Millisecond)
}

func TestItDoesNotListenBeyondLoopbackWithoutTLSUnlessItIsToldTo(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0", "example.org:0", "192.0.2.1:0"} {
		o := &options{Listen: address, Data: t.TempDir()}
		require.ErrorContains(t, o.complete(), "-tls-cert", address)
		o.PlainText = true
		require.NoError(t, o.complete(), address)
	}
	for _, address := range []string{"127.0.0.1:0", "[::1]:0", "localhost:0"} {
		require.NoError(t, (&options{Listen: address, Data: t.TempDir()}).complete(), address)
	}
}

func TestAFieldThatItDoesNotKnowIsAMistakeAndFlagsBeatTheFile(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "limits.yaml")
	require.NoError(t, os.WriteFile(name, []byte("listen: 127.0.0.1:1\nlisen: x\n"), 0o600))
	_, err := readOptions([]string{"-config", name}, io.Discard)
	require.ErrorContains(t, err, "lisen")
	require.NoError(t, os.WriteFile(name, []byte(`
listen: 127.0.0.1:1
redis: redis://of.file
oidc: [{issuer: "https://login.example.org", audience: ratelimits, roles: [{claim: groups, value: x, role: admin}]}]
`), 0o600))
	o, err := readOptions([]string{"-config", name, "-listen", "127.0.0.1:2"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:2", o.Listen)
	require.Equal(t, "redis://of.file", o.Redis)
	require.Len(t, o.auth(nil).OIDC, 1)
}

func TestTheTablesArePrintedForThoseWhoMigrateThemselves(t *testing.T) {
	t.Parallel()
	lite, code := command("-print-sql")
	require.Zero(t, code)
	large, code := command("-print-sql", "-database", "postgres://")
	require.Zero(t, code)
	require.Contains(t, lite, "CREATE TABLE")
	require.Contains(t, large, "CREATE TABLE")
	require.NotEqual(t, lite, large)
}

// command runs a command that ends, and returns what it has written.
func command(args ...string) (string, int) {
	var out strings.Builder
	code := run(context.Background(), args, console{strings.NewReader(""), &out, &out})
	return out.String(), code
}
