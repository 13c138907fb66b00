package access

import (
	"context"
	"net/http"
)

// turns is how many tokens the store is asked for at once.
const turns = 4

// lookup asks the store for a token, when it is its turn.
func (a *Authenticator) lookup(ctx context.Context, id string) (*Token, error) {
	select {
	case a.turns <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-a.turns }()
	return a.cfg.Tokens.Token(ctx, id)
}

// Lookup returns the ID of the token for which [Authenticator.Authenticate] asks the store, and "" if it asks for none. It asks nothing and lets nobody
// in. How many may wait for the store is for the caller to bound. The store has issued each token for which it is asked, but for a guess in 2³².
func (a *Authenticator) Lookup(r *http.Request) (id string) {
	headers := r.Header.Values("Authorization")
	if len(headers) == 0 || a.cfg.Tokens == nil {
		return ""
	}
	if credential, ok := bearer(headers); ok {
		id, _ = a.cfg.Tokens.Key().tokenID(credential)
	}
	return id
}
