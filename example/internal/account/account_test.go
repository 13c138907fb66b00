package account_test

import (
	"net/http"
	"testing"

	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/example/internal/account"
)

func TestNothingOfAPayloadIsKept(t *testing.T) {
	t.Parallel()
	gate, err := account.NewGate(func(*http.Request) (ratelimit.Subject, error) { return ratelimit.Subject{Tenant: "ip:192.0.2.1"}, nil })
	require.NoError(t, err)
	payload := transport.InitPayload{account.Header: "demo-pro", "large": make([]any, 10_000)}
	ctx, _, err := gate.Init(t.Context(), payload)
	require.NoError(t, err)
	caller, known := account.FromContext(ctx)
	require.True(t, known)
	require.Equal(t, "demo-pro", caller.Tenant)
	require.Empty(t, payload, "gqlgen keeps it for as long as the connection")
}
