package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"

	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/internal/inbound"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// Subject says who pays for an operation. It is an alias of the type in package tiers, so that a
// server needs to import only this package.
type Subject = tiers.Subject

// Claims are what is known of a subject by name, for the custom limits of a policy: an alias of the type in package tiers.
type Claims = tiers.Claims

// Request is what a [SubjectFunc] can look at.
type Request struct {
	// Header holds the headers of the HTTP request, on a WebSocket those of the upgrade.
	Header http.Header
	// Peer is the address of the TCP peer. It is invalid without the [Handler].
	Peer netip.Addr
	// Client is the address of the client: that of the peer, or what trusted proxies say in its place ([ProxyConfig]). It
	// is invalid without the [Handler].
	Client netip.Addr
	// InitPayload is what a WebSocket client sent when it connected. It is nil on other transports.
	InitPayload transport.InitPayload
	// Operation is the operation that was selected. It is nil for a document that failed to parse or
	// validate, which is charged a flat amount, and for one that is not parsed yet.
	Operation *ast.OperationDefinition
	// Variables are the coerced variables of the operation.
	Variables map[string]any
}

// SubjectFunc decides who pays. It runs once for each operation, before anything is charged, and
// must be safe for concurrent use and quick: it has no deadline of its own. Where a door asks what is refused unread
// ([Extension.RefusesUnread]) it runs a second time, without the operation, for documents that are not in the cache.
//
// An error that matches [ErrNoSubject] lets [FirstOf] ask the next function, and refuses the
// operation with ratelimitclient.CodeSubjectUnknown if there is none. An error that is a *gqlerror.Error is
// answered as it is, so that authentication keeps its own errors. Any other error refuses with
// ratelimitclient.CodeUnavailable and is told to the logger, not to the client.
type SubjectFunc func(ctx context.Context, r *Request) (Subject, error)

// ErrNoSubject says that a [SubjectFunc] does not know the caller.
var ErrNoSubject = errors.New("ratelimit: no subject for the request")

// ErrNoPeer says that [ByPeer] was not told an address. It is a mistake of the server and not of the caller, so it
// does not match [ErrNoSubject]: the operation is refused with ratelimitclient.CodeUnavailable, and the logger is told.
var ErrNoPeer = errors.New("ratelimit: ByPeer knows no address: serve ratelimit.Handler(srv) instead of srv, " +
	"and on a listener whose peers have IP addresses, which those of a Unix socket have not")

// ByHeader returns a function that looks the value of a header up, such as an API key. A missing
// header, or a value that lookup does not know, matches [ErrNoSubject].
//
// The value itself never becomes a name: lookup returns the subject that stands for it, so that no
// secret reaches a stored key, a log or a metric.
func ByHeader(name string, lookup func(ctx context.Context, value string) (Subject, bool)) SubjectFunc {
	return func(ctx context.Context, r *Request) (Subject, error) {
		return known(ctx, r.Header.Get(name), lookup)
	}
}

// ByContext returns a function that reads what the server's own authentication has put into the
// context. If from returns false the error matches [ErrNoSubject].
func ByContext(from func(ctx context.Context) (Subject, bool)) SubjectFunc {
	return func(ctx context.Context, _ *Request) (Subject, error) {
		subject, ok := from(ctx)
		if !ok {
			return Subject{}, ErrNoSubject
		}
		return subject, nil
	}
}

// ByInitPayload returns a function that looks a string of the WebSocket init payload up. A missing
// one, or one that lookup does not know, matches [ErrNoSubject].
func ByInitPayload(key string, lookup func(ctx context.Context, value string) (Subject, bool)) SubjectFunc {
	return func(ctx context.Context, r *Request) (Subject, error) {
		return known(ctx, r.InitPayload.GetString(key), lookup)
	}
}

// known looks a value up that the client sent, empty if it sent none.
func known(
	ctx context.Context, value string, lookup func(context.Context, string) (Subject, bool),
) (Subject, error) {
	if value != "" {
		if subject, ok := lookup(ctx, value); ok {
			return subject, nil
		}
	}
	return Subject{}, ErrNoSubject
}

// PeerConfig says what [ByPeer] makes of an address. The zero value counts each IPv4 address, and each /64 of IPv6 within
// its /56. A mistake is the error of every call of the function that ByPeer returns, which refuses all operations.
type PeerConfig struct {
	// Tier is the tier of every subject found by address. Empty leaves it to the policy.
	Tier string
	// IPv6Client is how many bits of an IPv6 address make one client, 1 to 128. Zero means 64: a host has a /64 to
	// itself, and could otherwise choose a fresh budget 2^64 times.
	IPv6Client int
	// IPv6Site is how many bits make the site that the client is in, at most as many as IPv6Client. Zero means 56, or IPv6Client
	// if that is less: a household has a /56 or more, and would have 256 budgets by its /64 alone. [None] means no level
	// above the client. Who can have a /48, as any tunnel gives it, has 256 sites of a /56: set 48 where a site has a
	// budget that is enough for the clients of a mobile network, which may share a /48.
	IPv6Site int
}

// ByPeer returns a function for callers that nobody knows, by the address of the client. The tenant is "ip:" and the site, the
// user is the client, and the subject is anonymous. Of IPv4 both are the address. Of IPv6 they are networks: the client
// 2001:db8:1:203::/64 is a user of ip:2001:db8:1:200::/56. So limits of a tier bound a site, and those of its users
// each client in it.
//
// An IPv6 address that leads to an IPv4 address counts as that: ::ffff:0:0/96, NAT64 (64:ff9b::/96, RFC 6052), 6to4
// (2002::/16, RFC 3056) and Teredo (2001::/32, RFC 4380).
//
// It needs the [Handler], which sees the connection; without it, and on a Unix socket, the error matches [ErrNoPeer].
// Behind proxies it needs [Config.Proxies] too.
func ByPeer(cfg PeerConfig) SubjectFunc {
	levels := inbound.Levels{Client: cfg.IPv6Client, Site: cfg.IPv6Site}
	var mistakes []error
	levels.Check("PeerConfig.IPv6Client", "PeerConfig.IPv6Site", func(format string, args ...any) {
		mistakes = append(mistakes, fmt.Errorf("ratelimit: "+format, args...))
	})
	mistake := errors.Join(mistakes...)
	return func(_ context.Context, r *Request) (Subject, error) {
		if mistake != nil {
			return Subject{}, mistake
		}
		if !r.Client.IsValid() {
			return Subject{}, ErrNoPeer
		}
		client, site := levels.Names(r.Client)
		return Subject{Tenant: "ip:" + site, User: client, Tier: cfg.Tier, Anonymous: true}, nil
	}
}

// FirstOf returns a function that asks each function in turn until one knows the caller. An error
// that does not match [ErrNoSubject] ends the search.
func FirstOf(functions ...SubjectFunc) SubjectFunc {
	return func(ctx context.Context, r *Request) (Subject, error) {
		for _, function := range functions {
			subject, err := function(ctx, r)
			if err == nil || !errors.Is(err, ErrNoSubject) {
				return subject, err
			}
		}
		return Subject{}, ErrNoSubject
	}
}
