package e2e_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/internal/testserver"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

const raisedPolicy = `version: 1
default: free
tiers:
  free:
    limits:
      hour: {capacity: 100, per: 1h, window: fixed}
`

// raisedFleet are instances with stores of their own in one Redis.
func raisedFleet(t *testing.T, addr string, n int) []http.Handler {
	t.Helper()
	policy, err := tiers.Load([]byte(raisedPolicy), 1)
	require.NoError(t, err)
	fleet := make([]http.Handler, n)
	for i := range fleet {
		client, err := redisclient.Open(addr, redisclient.Config{DialTimeout: time.Minute, SocketTimeout: time.Minute})
		require.NoError(t, err)
		t.Cleanup(func() { _ = client.Close() })
		store, err := bucket.NewRedis(bucket.RedisConfig{Client: client, Timeout: time.Minute, AdminTimeout: time.Minute})
		require.NoError(t, err)
		srv := handler.New(testserver.NewExecutableSchema(testserver.Config{Resolvers: &testserver.Resolver{}}))
		srv.AddTransport(transport.POST{})
		srv.Use(ratelimit.New(ratelimit.Config{
			Store: store, Policy: policy,
			Subject: func(context.Context, *ratelimit.Request) (ratelimit.Subject, error) {
				return ratelimit.Subject{Tenant: "acme"}, nil
			},
		}))
		fleet[i] = ratelimit.Handler(srv)
	}
	return fleet
}

// passes asks an instance, and reports whether the operation has run.
func passes(t *testing.T, instance http.Handler) bool {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/query", strings.NewReader(`{"query": "{ users(first: 50) { name } }"}`))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	instance.ServeHTTP(w, r)
	answer, err := ratelimitclient.FromResponse(w.Body.Bytes())
	require.NoError(t, err)
	return answer.Refusal == nil
}

// TestARaiseByTheCommandReachesATenantOnEveryInstanceThatHasRefusedIt prints in how much time: from the start of the command until
// the next operation of the tenant has passed on each of three instances, which have all refused it a moment ago.
func TestARaiseByTheCommandReachesATenantOnEveryInstanceThatHasRefusedIt(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "gqlratelimit")
	built, err := exec.Command("go", "build", "-o", binary, "../../cmd/gqlratelimit").CombinedOutput()
	require.NoError(t, err, string(built))
	redis := redistest.Start(t)
	fleet := raisedFleet(t, redis.Addr, 3)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte(raisedPolicy), 0o600))

	require.True(t, passes(t, fleet[0]))
	for i := range fleet {
		require.False(t, passes(t, fleet[i]), "the budget is used up, and each instance knows")
	}

	began := time.Now()
	var said bytes.Buffer
	command := exec.Command(binary, "override", "set", "-redis", redis.Addr, "-policy", filepath.Join(dir, "policy.yaml"), "-timeout", "1m",
		"-tenant", "acme", "-limit", "hour", "-capacity", "100000", "-for", "1h", "-reason", "incident", "-actor", "jo")
	command.Stdout, command.Stderr = &said, &said
	require.NoError(t, command.Run(), said.String())
	set := time.Since(began)

	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for i := range fleet {
		for !passes(t, fleet[i]) {
			select {
			case <-ticker.C:
			case <-t.Context().Done():
				t.Fatal("an instance goes on refusing")
			}
		}
	}
	t.Logf("the command took %v; the tenant passed on every instance of three %v after it was started",
		set.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
}
