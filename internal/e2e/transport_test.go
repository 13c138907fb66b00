package e2e_test

import (
	"net/http"
	"strings"
	"testing"
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
		s.run("1", request{Query: mutation})
		s.run("2", request{Query: mutation})
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
