package e2e_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

func TestARefusedSubscriptionNeverReachesItsResolver(t *testing.T) {
	t.Parallel()
	const subscription = `subscription { ticks(count: 2) }`
	for name, send := range map[string]func(*fixture) string{
		"sse": func(f *fixture) string { return f.sse(request{Query: subscription, Tenant: "blocked"}).transcript() },
		"websocket": func(f *fixture) string {
			return indented(strings.Join(f.dial("blocked", nil).run("1", request{Query: subscription}), "\n"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, nil)
			golden(t, name+"-subscription-refused", send(f))
			if asked := f.resolver.Asked.Load(); asked != 0 {
				t.Fatalf("the resolver ran %d times", asked)
			}
		})
	}
}

func TestASubscriptionReportsWithItsFirstEventOnly(t *testing.T) {
	t.Parallel()
	const subscription = `subscription { ticks(count: 3) }`
	f := newFixture(t, nil)
	golden(t, "sse-subscription-admitted", f.sse(request{Query: subscription}).transcript())
	messages := f.dial("free", nil).run("1", request{Query: subscription})
	golden(t, "websocket-subscription-admitted", indented(strings.Join(messages, "\n")))
}

func TestAKeyInTheUpgradeHeaderIsNotAKeyOfItsOperations(t *testing.T) {
	t.Parallel()
	for _, upgrade := range []string{"websocket", "foo, WebSocket"} {
		f := newFixture(t, nil)
		f.client.Transport = upgradesTo{upgrade, f.client.Transport}
		s := f.dial("free", http.Header{"Idempotency-Key": {"upgrade-key-1"}})
		const mutation = `mutation { createUser(input: {name: "Grace"}) { id } }`
		const told = `"idempotencyKeyIgnored":"the headers of a WebSocket belong to the connection`
		require.Contains(t, s.run("1", request{Query: mutation})[0], told)
		s.run("2", request{Query: mutation})
		require.NotContains(t, s.run("3", request{Query: cheapQuery, Key: testKey})[0], told)
		if created := f.resolver.Created.Load(); created != 2 {
			t.Fatalf("%s: two mutations of one connection ran %d times", upgrade, created)
		}
	}
}

// upgradesTo sends another Upgrade than the client does, which takes any that lists a WebSocket.
type upgradesTo struct {
	upgrade string
	http.RoundTripper
}

func (u upgradesTo) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Upgrade", u.upgrade)
	return u.RoundTripper.RoundTrip(r)
}

func TestASubscriptionNeedsATransportThatStreams(t *testing.T) {
	t.Parallel()
	const subscription = `subscription { ticks(count: 2) }`
	f := newFixture(t, nil)
	for name, sent := range map[string]func() reply{
		"POST": func() reply { return f.post(request{Query: subscription}) },
		"POST that accepts another type": func() reply {
			return f.do(http.MethodPost, f.url, request{Query: subscription}, "application/graphql-response+json")
		},
		"URL-encoded form": func() reply {
			return f.exchange(http.MethodPost, f.url, request{}, "application/json", "application/x-www-form-urlencoded",
				strings.NewReader("query="+subscription))
		},
		"multipart form": func() reply { return f.multipartForm(request{Query: subscription}) },
	} {
		answer := sent()
		require.Equal(t, http.StatusBadRequest, answer.Status, name)
		require.Equal(t, ratelimitclient.CodeQueryLimitExceeded, answer.errorCode(t), name)
		require.Contains(t, answer.Body, "text/event-stream", name)
	}
	require.Zero(t, f.resolver.Asked.Load(), "a resolver ran")
	require.Empty(t, f.store.Takes(), "something was charged")
	f.multipartMixed(request{Query: subscription})
	f.sse(request{Query: subscription})
	f.dial("free", nil).run("1", request{Query: subscription})
	require.EqualValues(t, 3, f.resolver.Asked.Load())
}
