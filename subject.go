package ratelimit

import (
	"context"
	"errors"
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
	// validate, which is charged a flat amount.
	Operation *ast.OperationDefinition
	// Variables are the coerced variables of the operation.
	Variables map[string]any
}

// SubjectFunc decides who pays. It runs once for each operation, before anything is charged, and
// must be safe for concurrent use and quick: it has no deadline of its own.
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

// PeerConfig says what [ByPeer] makes of an address.
type PeerConfig struct {
	// Tier is the tier of every subject found by address. Empty leaves it to the policy.
	Tier string
}

// ByPeer returns a function for callers that nobody knows: the tenant is "ip:" and the client's
// address, for IPv6 "ip:" and its /64 network, and the subject is anonymous. It needs the [Handler], which
// sees the connection; without it, and on a Unix socket, the error matches [ErrNoPeer]. Behind proxies it needs
// [Config.Proxies] too.
func ByPeer(cfg PeerConfig) SubjectFunc {
	return func(_ context.Context, r *Request) (Subject, error) {
		if !r.Client.IsValid() {
			return Subject{}, ErrNoPeer
		}
		return Subject{Tenant: "ip:" + inbound.Network(r.Client, inbound.ClientBits), Tier: cfg.Tier, Anonymous: true}, nil
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
