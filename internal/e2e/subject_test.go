package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/testserver"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

func TestByPeerBelievesForwardedAddressesOnlyOfTrustedProxies(t *testing.T) {
	t.Parallel()
	proxies := ratelimit.ProxyConfig{Trusted: []netip.Prefix{
		netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8:ffff::/48"), netip.MustParsePrefix("fe80::/10"),
	}}
	for _, c := range []struct {
		name      string
		peer      string
		forwarded []string
		want      string
	}{
		{"no header", "203.0.113.7", nil, "ip:203.0.113.7"},
		{"a client that sends the header itself", "203.0.113.7", []string{"198.51.100.1"}, "ip:203.0.113.7"},
		{"one proxy", "10.0.0.1", []string{"198.51.100.1"}, "ip:198.51.100.1"},
		{"a client that prepends an address", "10.0.0.1", []string{"192.0.2.9, 198.51.100.1"}, "ip:198.51.100.1"},
		{"two proxies", "10.0.0.1", []string{"198.51.100.1, 10.0.0.2"}, "ip:198.51.100.1"},
		{"two header lines", "10.0.0.1", []string{"192.0.2.9", "198.51.100.1"}, "ip:198.51.100.1"},
		{"a port", "10.0.0.1", []string{"198.51.100.1:4711"}, "ip:198.51.100.1"},
		{"nonsense from a trusted proxy", "10.0.0.1", []string{"198.51.100.1, unknown"}, "ip:10.0.0.1"},
		{"only proxies", "10.0.0.1", []string{"10.0.0.3, 10.0.0.2"}, "ip:10.0.0.3"},
		{"IPv4 in IPv6", "::ffff:203.0.113.7", nil, "ip:203.0.113.7"},
		{"IPv6 by its site", "2001:db8:1:203:3:4:5:6", nil, "ip:2001:db8:1:200::/56"},
		{"IPv6 proxy and client in brackets", "2001:db8:ffff::1", []string{"[2001:db8:1:203::9]:80"}, "ip:2001:db8:1:200::/56"},
		{"an IPv6 zone", "fe80::1%eth0", nil, "ip:fe80::/56"},
		{"a link-local proxy, which has a zone", "fe80::1%eth0", []string{"198.51.100.1"}, "ip:198.51.100.1"},
		{"a proxy whose IPv4 address is written in IPv6", "::ffff:10.0.0.1", []string{"198.51.100.1"}, "ip:198.51.100.1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			header := http.Header{"X-Forwarded-For": c.forwarded}
			client := proxies.Client(netip.MustParseAddr(c.peer), header)
			subject, err := ratelimit.ByPeer(ratelimit.PeerConfig{Tier: "anonymous"})(t.Context(), &ratelimit.Request{Client: client})
			require.NoError(t, err)
			require.NotEmpty(t, subject.User, "the client within its site")
			subject.User = ""
			require.Equal(t, ratelimit.Subject{Tenant: c.want, Tier: "anonymous", Anonymous: true}, subject)
		})
	}
}

func TestTheServerBelievesTheProxiesOfItsConfiguration(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]string{"": "ip:127.0.0.1", "X-Real-IP": "ip:192.0.2.1"} {
		f := newFixture(t, func(cfg *ratelimit.Config) {
			cfg.Subject = ratelimit.ByPeer(ratelimit.PeerConfig{})
			if header != "" {
				cfg.Proxies = ratelimit.ProxyConfig{Trusted: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Header: header}
			}
		})
		var tenant string
		see(f.server, func(d ratelimit.Decision) { tenant = d.Subject.Tenant })
		f.post(request{Query: cheapQuery, Header: http.Header{"X-Forwarded-For": {"198.51.100.1"}, "X-Real-Ip": {"192.0.2.1"}}})
		require.Equal(t, want, tenant)
	}
}

func TestAProxyThatCanNeverMatchIsAMistake(t *testing.T) {
	t.Parallel()
	schema := testserver.NewExecutableSchema(testserver.Config{Resolvers: &testserver.Resolver{}})
	mistake := func(proxies ratelimit.ProxyConfig) string {
		err := ratelimit.New(ratelimit.Config{
			Store: bucket.NewMemory(bucket.MemoryConfig{}), Policy: compiledPolicy(t), Subject: byTenantHeader, Proxies: proxies,
			Observe: ratelimit.ObserveConfig{Logger: discard},
		}).Validate(schema)
		if err == nil {
			return ""
		}
		return err.Error()
	}
	for network, want := range map[string]string{
		"::ffff:10.0.0.0/104": "write 10.0.0.0/8",
		"::ffff:10.1.2.3/128": "write 10.1.2.3/32",
		"::ffff:0.0.0.0/96":   "write 0.0.0.0/0",
		"::ffff:10.0.0.0/90":  "list their networks as IPv4",
		"0.0.0.0/32":          "no address of a host",
		"::/128":              "no address of a host",
		"224.0.0.0/4":         "a group of hosts",
		"239.1.2.0/24":        "a group of hosts",
		"ff02::1/128":         "a group of hosts",
		"255.255.255.255/32":  "a broadcast",
		"10.0.0.0/8":          "",
		"10.1.2.3/8":          "",
		"0.0.0.0/0":           "",
		"::/0":                "",
		"192.0.0.0/2":         "",
		"::1/128":             "",
		"fe80::/10":           "",
		"2001:db8:ffff::/48":  "",
	} {
		got := mistake(ratelimit.ProxyConfig{Trusted: []netip.Prefix{netip.MustParsePrefix("10.9.9.9/32"), netip.MustParsePrefix(network)}})
		if want == "" {
			require.Empty(t, got, network)
			continue
		}
		require.Contains(t, got, "Config.Proxies.Trusted[1] is "+network+", which no peer is ever of", network)
		require.Contains(t, got, want, network)
	}
	require.Contains(t, mistake(ratelimit.ProxyConfig{Trusted: make([]netip.Prefix, 1)}), "the zero value")
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	for header, want := range map[string]string{
		"forwarded": "X-Forwarded-For", "X Real IP": "not the name of a header", "X-Real-IP:": "not the name of a header", "X-Real-IP": "",
	} {
		got := mistake(ratelimit.ProxyConfig{Trusted: trusted, Header: header})
		require.Equal(t, want == "", got == "", header)
		require.Contains(t, got, want)
	}
	require.Contains(t, mistake(ratelimit.ProxyConfig{Header: "X-Real-IP"}), "which nobody reads")
}

func TestByPeerWithoutTheHandlerIsAMistakeThatTheLogNames(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	server := newGraphQLServer(&testserver.Resolver{})
	server.Use(ratelimit.New(ratelimit.Config{
		Store: bucket.NewMemory(bucket.MemoryConfig{}), Policy: compiledPolicy(t),
		Subject: ratelimit.FirstOf(
			func(context.Context, *ratelimit.Request) (ratelimit.Subject, error) {
				return ratelimit.Subject{}, ratelimit.ErrNoSubject
			},
			ratelimit.ByPeer(ratelimit.PeerConfig{}),
		),
		Observe: ratelimit.ObserveConfig{Logger: slog.New(slog.NewTextHandler(&log, nil))},
	}))
	asked := httptest.NewRequest(http.MethodPost, "/query", strings.NewReader(`{"query": "{ me { name } }"}`))
	asked.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	server.ServeHTTP(answer, asked)
	require.Contains(t, answer.Body.String(), ratelimitclient.CodeUnavailable)
	require.NotContains(t, answer.Body.String(), "Handler", "it is none of the client's business")
	require.Contains(t, log.String(), "Config.Subject failed")
	require.Contains(t, log.String(), "serve ratelimit.Handler(srv)")

	_, err := ratelimit.ByPeer(ratelimit.PeerConfig{})(t.Context(), &ratelimit.Request{})
	require.ErrorIs(t, err, ratelimit.ErrNoPeer)
	require.NotErrorIs(t, err, ratelimit.ErrNoSubject)
}

func TestFirstOfAsksUntilSomebodyKnowsTheCaller(t *testing.T) {
	t.Parallel()
	type user struct{}
	lookup := func(_ context.Context, value string) (ratelimit.Subject, bool) {
		return ratelimit.Subject{Tenant: "key of " + value}, value == "known"
	}
	subject := ratelimit.FirstOf(
		ratelimit.ByHeader("X-API-Key", lookup),
		ratelimit.ByContext(func(ctx context.Context) (ratelimit.Subject, bool) {
			tenant, ok := ctx.Value(user{}).(string)
			return ratelimit.Subject{Tenant: tenant}, ok
		}),
		ratelimit.ByInitPayload("apiKey", lookup),
	)
	loggedIn := context.WithValue(t.Context(), user{}, "ada")
	for _, c := range []struct {
		name    string
		ctx     context.Context
		request ratelimit.Request
		want    string
	}{
		{"header", loggedIn, ratelimit.Request{Header: http.Header{"X-Api-Key": {"known"}}}, "key of known"},
		{"unknown header", loggedIn, ratelimit.Request{Header: http.Header{"X-Api-Key": {"other"}}}, "ada"},
		{"payload", t.Context(), ratelimit.Request{InitPayload: transport.InitPayload{"apiKey": "known"}}, "key of known"},
	} {
		got, err := subject(c.ctx, &c.request)
		require.NoError(t, err, c.name)
		require.Equal(t, c.want, got.Tenant, c.name)
	}
	_, err := subject(t.Context(), &ratelimit.Request{})
	require.ErrorIs(t, err, ratelimit.ErrNoSubject)
}

func TestFirstOfStopsAtAnErrorOfItsOwnKind(t *testing.T) {
	t.Parallel()
	expired := errors.New("the token has expired")
	_, err := ratelimit.FirstOf(
		func(context.Context, *ratelimit.Request) (ratelimit.Subject, error) {
			return ratelimit.Subject{}, expired
		},
		ratelimit.ByPeer(ratelimit.PeerConfig{}),
	)(t.Context(), &ratelimit.Request{Peer: netip.MustParseAddr("203.0.113.7")})
	require.ErrorIs(t, err, expired)
}

func TestASubjectThatCannotBeFoundRefusesTheOperation(t *testing.T) {
	t.Parallel()
	own := gqlerror.Errorf("the token has expired")
	own.Extensions = map[string]any{"code": "TOKEN_EXPIRED"}
	for name, c := range map[string]struct {
		err    error
		status int
		code   string
	}{
		"nobody knows the caller":       {ratelimit.ErrNoSubject, http.StatusUnauthorized, ratelimitclient.CodeSubjectUnknown},
		"authentication answers itself": {own, http.StatusUnauthorized, "TOKEN_EXPIRED"},
		"the function broke":            {errors.New("database password"), http.StatusServiceUnavailable, ratelimitclient.CodeUnavailable},
		"no tenant and no error":        {nil, http.StatusUnauthorized, ratelimitclient.CodeSubjectUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, func(cfg *ratelimit.Config) {
				cfg.Subject = func(context.Context, *ratelimit.Request) (ratelimit.Subject, error) {
					return ratelimit.Subject{}, c.err
				}
			})
			reply := f.post(request{Query: cheapQuery})
			require.Equal(t, c.status, reply.Status)
			require.Equal(t, c.code, reply.errorCode(t))
			require.NotContains(t, reply.Body, "password")
			require.Zero(t, f.resolver.Asked.Load())
			require.Empty(t, f.store.Takes())
		})
	}
}

func TestTheSubjectFunctionSeesTheRequest(t *testing.T) {
	t.Parallel()
	var seen ratelimit.Request
	f := newFixture(t, func(cfg *ratelimit.Config) {
		cfg.Subject = func(_ context.Context, r *ratelimit.Request) (ratelimit.Subject, error) {
			seen = *r
			return ratelimit.Subject{Tenant: "free"}, nil
		}
	})
	f.post(request{Query: `query Q($n: Int!) { users(first: $n) { name } }`, Variables: map[string]any{"n": 3}})
	require.True(t, seen.Peer.IsLoopback())
	require.Equal(t, "Q", seen.Operation.Name)
	require.EqualValues(t, 3, seen.Variables["n"])

	f.dial("ada", nil).run("1", request{Query: cheapQuery})
	require.Equal(t, "ada", seen.InitPayload.GetString("tenant"))
	require.True(t, seen.Peer.IsLoopback(), "the address of a WebSocket's peer is known as well")
}
