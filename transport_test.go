package ratelimit_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// TestEveryTransportAnswersEveryOutcome compares whole answers, status and headers included, with
// golden files: what a client sees is part of the contract.
func TestEveryTransportAnswersEveryOutcome(t *testing.T) {
	t.Parallel()
	const (
		query    = `{ users(first: 60) { name } }`
		cheap    = `{ me { name } }`
		mutation = `mutation { createUser(input: {name: "Grace"}) { id name } }`
		key      = "golden-key-0001"
	)
	transports := map[string]func(*fixture, request) string{
		"post": func(f *fixture, r request) string { return f.post(r).transcript() },
		"get":  func(f *fixture, r request) string { return f.get(r).transcript() },
		"sse":  func(f *fixture, r request) string { return f.sse(r).transcript() },
		"multipart": func(f *fixture, r request) string {
			return strings.ReplaceAll(f.multipartMixed(r).transcript(), "\r", "")
		},
		"websocket": func(f *fixture, r request) string {
			messages := f.dial(r.tenant(), nil).run("1", r)
			return indented(strings.Join(messages, "\n"))
		},
	}
	outcomes := map[string]func(f *fixture, send func(*fixture, request) string, keyed string) string{
		"admitted": func(f *fixture, send func(*fixture, request) string, _ string) string {
			return send(f, request{Query: cheap})
		},
		"refused": func(f *fixture, send func(*fixture, request) string, _ string) string {
			f.post(request{Query: query})
			return send(f, request{Query: query})
		},
		"warned": func(f *fixture, send func(*fixture, request) string, _ string) string {
			f.post(request{Query: `{ users(first: 20) { name } }`, Tenant: "warned"})
			return send(f, request{Query: `{ users(first: 20) { name } }`, Tenant: "warned"})
		},
		"replayed": func(f *fixture, send func(*fixture, request) string, keyed string) string {
			send(f, request{Query: keyed, Key: key})
			return send(f, request{Query: keyed, Key: key})
		},
		"store-away-open": func(f *fixture, send func(*fixture, request) string, _ string) string {
			f.store.Fail(bucket.ErrUnavailable)
			return send(f, request{Query: cheap})
		},
		"store-away-closed": func(f *fixture, send func(*fixture, request) string, _ string) string {
			f.store.Fail(bucket.ErrUnavailable)
			return send(f, request{Query: cheap, Tenant: "closed"})
		},
	}
	for transport, send := range transports {
		for outcome, run := range outcomes {
			t.Run(transport+"/"+outcome, func(t *testing.T) {
				t.Parallel()
				keyed := mutation
				if transport == "get" {
					// A GET cannot carry a mutation; a repeated query runs again on the first charge.
					keyed = cheap
				}
				golden(t, transport+"-"+outcome, run(newFixture(t, nil), send, keyed))
			})
		}
	}
}

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
	f := newFixture(t, nil)
	s := f.dial("free", http.Header{"Idempotency-Key": {"upgrade-key-1"}})
	const mutation = `mutation { createUser(input: {name: "Grace"}) { id } }`
	s.run("1", request{Query: mutation})
	s.run("2", request{Query: mutation})
	if created := f.resolver.Created.Load(); created != 2 {
		t.Fatalf("two mutations of one connection ran %d times", created)
	}
}
