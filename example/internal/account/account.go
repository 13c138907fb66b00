// Package account knows the API keys of the example and who stands behind them.
package account

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/99designs/gqlgen/graphql/handler/transport"
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

type contextKey struct{}

// FromContext returns the account of a request. It returns false for an anonymous one.
func FromContext(ctx context.Context) (Account, bool) {
	account, ok := ctx.Value(contextKey{}).(Account)
	return account, ok
}

// Handler returns a handler that puts the account of the key into the context of next. A request
// without a key passes as anonymous; one with an unknown key is answered with a GraphQL error and
// 401, so that a mistyped key does not look like a small budget.
func Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get(Header)
		if key == "" {
			next.ServeHTTP(w, r)
			return
		}
		account, err := Lookup(key)
		if err != nil {
			refuse(w, err)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), contextKey{}, account)))
	})
}

// Init reads the key from the payload of a WebSocket client, for those that sent none in a header.
// It is a [transport.WebsocketInitFunc].
func Init(ctx context.Context, payload transport.InitPayload) (context.Context, *transport.InitPayload, error) {
	key := payload.GetString(Header)
	if key == "" {
		return ctx, nil, nil
	}
	account, err := Lookup(key)
	if err != nil {
		// The protocol has no message for a refused introduction: the reason of the close frame, which
		// has room for 123 bytes, is all that the client is told.
		ctx = transport.WithWebsocketCloseCode(ctx, CloseUnknownKey)
		return transport.AppendCloseReason(ctx, err.Error()), nil, err
	}
	return context.WithValue(ctx, contextKey{}, account), nil, nil
}

func refuse(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusUnauthorized)
	// The client is gone if this fails: there is nobody to tell.
	_ = json.NewEncoder(w).Encode(map[string]any{
		"errors": []any{map[string]any{
			"message":    err.Error(),
			"extensions": map[string]any{"code": CodeUnknownKey},
		}},
		"data": nil,
	})
}
