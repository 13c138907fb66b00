package main

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

func TestOperationsThatTakeLongerThanTheFlagSaysAreShed(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"in this process": nil, "in Redis": {"-redis", redistest.Start(t).Addr},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// Nothing is that quick.
			i := startExample(t, append(args, "-latency", "1ns")...)
			var got reply
			poll(t, "an operation that is shed", func() bool {
				got = post(t, i.url, request{key: "demo-pro", query: `{ viewer { login } }`})
				return got.status != http.StatusOK
			})
			require.Equal(t, http.StatusServiceUnavailable, got.status, got.body)
			require.Equal(t, ratelimitclient.CodeOverloaded, got.refusal(t).Code)
			require.NotEmpty(t, got.header.Get("Retry-After"))
		})
	}
}

func TestABusyTenantOfTheBuiltInPolicyIsLeased(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	i := startExample(t, "-redis", server.Addr)
	poll(t, "parts that are leased", func() bool {
		for range 20 {
			post(t, i.url, request{key: "demo-enterprise", query: `{ viewer { login } }`}).requireCharged(t, 3)
		}
		// What a server holds itself it knows, and not what others have used since.
		return post(t, i.url, request{key: "demo-enterprise", query: `{ viewer { login } }`}).rateLimit(t).Approximate
	})
}
