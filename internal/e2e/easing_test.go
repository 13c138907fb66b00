package e2e_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/testserver"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// TestAnOperationThatIsEasedRunsAndOneWithAnotherFieldBesideDoesNot asks a whole server, whose tenants can pay for nothing.
func TestAnOperationThatIsEasedRunsAndOneWithAnotherFieldBesideDoesNot(t *testing.T) {
	t.Parallel()
	policy, err := tiers.Load([]byte("{version: 1, default: free, tiers: {free: {limits: {minute: {capacity: 1, per: 1m}}}}}"), 1)
	require.NoError(t, err)
	source := tiers.NewModeSwitch(policy)
	srv := handler.New(testserver.NewExecutableSchema(testserver.Config{Resolvers: &testserver.Resolver{}}))
	srv.AddTransport(transport.POST{})
	srv.Use(ratelimit.New(ratelimit.Config{
		Store: bucket.NewMemory(bucket.MemoryConfig{}), Policy: source,
		Subject: func(context.Context, *ratelimit.Request) (ratelimit.Subject, error) {
			return ratelimit.Subject{Tenant: "acme"}, nil
		},
	}))
	server := ratelimit.Handler(srv)
	refused := func(query string) bool {
		r := httptest.NewRequest(http.MethodPost, "/query", strings.NewReader(`{"query": "`+query+`"}`))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		return strings.Contains(w.Body.String(), "refusalId")
	}
	const users, both = "{ users(first: 60) { name } }", "{ users(first: 60) { name } page(first: 60) { name } }"
	until := time.Now().Add(time.Hour)
	for _, step := range []struct {
		eased       []tiers.Easing
		users, both bool
	}{
		{nil, true, true},
		{[]tiers.Easing{{Operation: "Query.users", AtMost: bucket.Shadow, Until: until}}, false, true},
		{[]tiers.Easing{{Operation: tiers.DocumentID(both), AtMost: bucket.Shadow, Until: until}}, true, false},
		{[]tiers.Easing{{Tenant: "acme", AtMost: bucket.Shadow, Until: until}}, false, false},
		{[]tiers.Easing{{Tenant: "globex", AtMost: bucket.Shadow, Until: until}}, true, true},
		{[]tiers.Easing{{AtMost: bucket.Off, Until: until}}, false, false},
	} {
		require.NoError(t, source.Ease(step.eased))
		require.Equal(t, []bool{step.users, step.both}, []bool{refused(users), refused(both)}, "%+v", step.eased)
	}
}
