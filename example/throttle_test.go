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
			// Nothing is that quick, and three tenants say so.
			i := startExample(t, append(args, "-latency", "1ns")...)
			var got reply
			poll(t, "an operation that is shed", func() bool {
				for _, key := range []string{"demo-free", "demo-pro", "demo-enterprise"} {
					if got = post(t, i.url, request{key: key, query: `{ viewer { login } }`}); got.status == http.StatusServiceUnavailable {
						return true
					}
				}
				return false
			})
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
