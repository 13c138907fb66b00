// Package account knows the API keys of the example and who stands behind them.
package account

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/99designs/gqlgen/graphql/handler/transport"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

// Header is the name under which a client sends its key: an HTTP header, or an entry of the payload
// with which a WebSocket client introduces itself, because a browser cannot send the header there.
const Header = "X-API-Key"

// Account is who a key belongs to.
type Account struct {
	// Tenant is whose budget the account uses.
	Tenant string
	// Login is the user that acts.
	Login string
}

// accounts holds the keys. In a demonstration they are no secrets: a key is the name of its tenant.
var accounts = map[string]Account{
	"demo-free":       {Tenant: "demo-free", Login: "mira"},
	"demo-pro":        {Tenant: "demo-pro", Login: "jonas"},
	"demo-enterprise": {Tenant: "demo-enterprise", Login: "priya"},
}

// Keys returns the keys that exist, from the smallest tier to the largest.
func Keys() []string {
	return []string{"demo-free", "demo-pro", "demo-enterprise"}
}

// CodeUnknownKey is the extensions.code of the answer to a key that does not exist.
const CodeUnknownKey = "UNAUTHENTICATED"

// CloseUnknownKey is the code with which a WebSocket is closed for the same reason: Forbidden, in the
// words of graphql-transport-ws.
const CloseUnknownKey = 4403

// ErrUnknownKey says that a key does not exist. Its text is fit for clients.
var ErrUnknownKey = errors.New("unknown key")

// Lookup returns the account of a key. The error for a key that does not exist matches
// [ErrUnknownKey] and never repeats the key, which may be a real one sent to the wrong server.
func Lookup(key string) (Account, error) {
	account, ok := accounts[key]
	if !ok {
		return Account{}, fmt.Errorf("%w in %s: this demo has %s, and no key at all is anonymous",
			ErrUnknownKey, Header, strings.Join(Keys(), ", "))
	}
	return account, nil
}

// ErrTooManyKeys says that so many unknown keys came from the address that none is looked up for a while. Its text is fit for
// clients.
var ErrTooManyKeys = errors.New("too many unknown keys came from this address: wait a few seconds")

// CloseTooManyKeys is the code with which a WebSocket is closed for that.
const CloseTooManyKeys = 4429

// Gate lets callers act for the account of their key. It is safe for concurrent use.
type Gate struct{ guesses *guesses }

// NewGate returns a gate. caller says by the address of a request who guesses, as ratelimit.ByPeer does: the tenant is the
// site, and the user is the client.
func NewGate(caller func(*http.Request) (ratelimit.Subject, error)) (*Gate, error) {
	guesses, err := newGuesses(caller)
	if err != nil {
		return nil, err
	}
	return &Gate{guesses}, nil
}

type (
	accountKey struct{}
	callerKey  struct{}
)

// FromContext returns the account of a request. It returns false for an anonymous one.
func FromContext(ctx context.Context) (Account, bool) {
	account, ok := ctx.Value(accountKey{}).(Account)
	return account, ok
}

// Handler returns a handler that puts the account of the key into the context of next. A request
// without a key passes as anonymous; one with an unknown key is answered with a GraphQL error and
// 401, so that a mistyped key does not look like a small budget. After too many of them the answer is 429.
func (g *Gate) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller, err := g.guesses.caller(r)
		if err != nil {
			http.Error(w, "the server does not know who asks", http.StatusServiceUnavailable)
			return
		}
		// The key of a WebSocket may come later, where nothing tells the address.
		ctx := context.WithValue(r.Context(), callerKey{}, caller)
		if key := r.Header.Get(Header); key != "" {
			account, err := g.lookup(ctx, key)
			if err != nil {
				refuse(w, err)
				return
			}
			ctx = context.WithValue(ctx, accountKey{}, account)
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// lookup is [Lookup] for a caller that may be guessing.
func (g *Gate) lookup(ctx context.Context, key string) (Account, error) {
	caller, _ := ctx.Value(callerKey{}).(ratelimit.Subject)
	left, err := g.guesses.left(ctx, &caller)
	if err != nil {
		return Account{}, err
	}
	if !left {
		return Account{}, ErrTooManyKeys
	}
	account, unknown := Lookup(key)
	if unknown != nil {
		return Account{}, errors.Join(unknown, g.guesses.wrong(ctx, &caller))
	}
	return account, nil
}

// Init reads the key from the payload of a WebSocket client, for those that sent none in a header.
// It is a [transport.WebsocketInitFunc].
func (g *Gate) Init(ctx context.Context, payload transport.InitPayload) (context.Context, *transport.InitPayload, error) {
	key := payload.GetString(Header)
	// gqlgen keeps the payload for as long as the connection, and nobody reads it any more.
	clear(payload)
	if key == "" {
		return ctx, nil, nil
	}
	account, err := g.lookup(ctx, key)
	if err != nil {
		// The protocol has no message for a refused introduction: the reason of the close frame, which
		// has room for 123 bytes, is all that the client is told.
		code := CloseUnknownKey
		if errors.Is(err, ErrTooManyKeys) {
			code = CloseTooManyKeys
		}
		ctx = transport.WithWebsocketCloseCode(ctx, code)
		return transport.AppendCloseReason(ctx, err.Error()), nil, err
	}
	return context.WithValue(ctx, accountKey{}, account), nil, nil
}

func refuse(w http.ResponseWriter, err error) {
	status, extensions := http.StatusUnauthorized, map[string]any{"code": CodeUnknownKey}
	if errors.Is(err, ErrTooManyKeys) {
		refusal := ratelimitclient.Refusal{Code: ratelimitclient.CodeRateLimited, Layer: "address", RetryAfter: guessPause}
		status, extensions = http.StatusTooManyRequests, refusal.Extensions()
		w.Header().Set("Retry-After", strconv.Itoa(int(guessPause/time.Second)))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// The client is gone if this fails: there is nobody to tell.
	_ = json.NewEncoder(w).Encode(map[string]any{
		"errors": []any{map[string]any{"message": err.Error(), "extensions": extensions}},
		"data":   nil,
	})
}
