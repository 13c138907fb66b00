package control

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

// IssuedToken is a token that was issued.
type IssuedToken struct {
	access.Token
	// Secret is the token itself, for its bearer alone. It is nowhere else, and not in the answer to a repeat under an
	// idempotency key: who has lost it issues another one.
	Secret string `json:"-"`
}

// IssueToken issues a token with no more rights than the actor has: [access.IssueToken] and [access.AuthorizeIssue]. The bootstrap token is
// exchanged by it for one with any rights, once, and all other bootstrap tokens end.
func (c *Control) IssueToken(ctx context.Context, r Request, in access.TokenRequest) (*IssuedToken, error) {
	a := action{Action: access.IssueToken}
	if len(in.Tenants) > 0 {
		a.tenant = in.Tenants[0]
	}
	var issued *access.Token
	var secret string
	check := func() (err error) {
		issued, secret, err = c.cfg.Store.TokenKey().NewToken(r.Actor, in, c.now())
		if err != nil && !errors.Is(err, access.ErrDenied) {
			err = &InvalidError{Field: "token", Err: err}
		}
		return err
	}
	answer, err := mutate(ctx, c, r, a, in, check, func(tx *store.Tx) (*IssuedToken, done, error) {
		if err := mayStillIssue(tx, r.Actor); err != nil {
			return nil, done{}, err
		}
		if err := tx.AddToken(issued); err != nil {
			return nil, done{}, err
		}
		return &IssuedToken{Token: tokenFor(r.Actor, issued), Secret: secret}, done{target: "token " + issued.ID, after: shownToken(issued)}, nil
	})
	return answer, err
}

// mayStillIssue returns why no token is issued to an actor, whose own token may have ended since they came in. A bootstrap token is spent by it.
func mayStillIssue(tx *store.Tx, actor access.Actor) error {
	token, err := tx.Token(actor.Token)
	if err != nil {
		return err
	}
	switch {
	case actor.Token == "":
	case token == nil || !token.Revoked.IsZero() || !tx.Now().Before(token.Expires):
		return &access.UnauthenticatedError{Reason: access.ReasonRevoked}
	case token.Bootstrap && !token.Used.IsZero():
		return &access.UnauthenticatedError{Reason: access.ReasonSpent}
	case token.Bootstrap:
		if err := tx.UseToken(token.ID, tx.Now()); err != nil {
			return err
		}
		return tx.RevokeBootstrap()
	}
	live, err := tx.LiveTokens(actor.Person(), actor.Root)
	if err == nil && live >= access.MaxTokens {
		err = &InvalidError{Field: "token", Err: ErrTooManyTokens, Problem: fmt.Sprintf(
			"%d tokens hold that were issued with this token, or with those that come from it, and no more may: revoke one that nobody needs, or wait until one ends", live)}
	}
	return err
}

// RevokeTokenInput says which token is revoked.
type RevokeTokenInput struct{ ID string }

// RevokedToken is a token that has ended.
type RevokedToken struct {
	access.Token
	// Children is how many have ended with it that were issued with it, or with one of those.
	Children int64 `json:"children"`
}

// RevokeToken ends a token for ever, and with it all that were issued with it or with one of those: [access.AuthorizeRevoke]. There is [ErrNotFound] if no such token is kept, or it was revoked.
func (c *Control) RevokeToken(ctx context.Context, r Request, in RevokeTokenInput) (*RevokedToken, error) {
	var there *access.Token
	err := c.cfg.Store.Read(ctx, func(v *store.View) (err error) {
		there, err = v.Token(in.ID)
		return err
	})
	if err != nil {
		return nil, err
	}
	a := action{Action: access.RevokeToken}
	if there != nil {
		// Whose it is never changes.
		if err := access.AuthorizeRevoke(r.Actor, there); err != nil {
			return nil, err
		}
		a.permitted = true
		if len(there.Tenants) > 0 {
			a.tenant = there.Tenants[0]
		}
	}
	check := func() error {
		if there == nil {
			return ErrNotFound
		}
		return nil
	}
	return mutate(ctx, c, r, a, in, check, func(tx *store.Tx) (*RevokedToken, done, error) {
		was, err := tx.Token(in.ID)
		if err == nil && (was == nil || !was.Revoked.IsZero()) {
			err = ErrNotFound
		}
		if err != nil {
			return nil, done{}, err
		}
		ended, err := tx.RevokeToken(in.ID)
		if err != nil {
			return nil, done{}, err
		}
		after := RevokedToken{shownToken(was), ended - 1}
		after.Revoked = tx.Now()
		// The log has all of it, and the actor what they may know.
		answer := RevokedToken{tokenFor(r.Actor, &after.Token), after.Children}
		return &answer, done{target: "token " + in.ID, before: was, after: after}, nil
	})
}

// Bootstrap issues the bootstrap token, for who has the machine, and returns its text. If any other token was ever issued it returns an
// empty text, unless it is asked to all the same because all tokens are lost.
func (c *Control) Bootstrap(ctx context.Context, lost bool) (string, error) {
	token, secret := c.cfg.Store.TokenKey().NewBootstrapToken(c.now())
	r := Request{Actor: access.System("bootstrap"), Reason: "nobody has a token"}
	if lost {
		r.Reason = "who has the machine asked for a token"
	}
	err := c.cfg.Store.Change(ctx, func(tx *store.Tx) error {
		there, err := tx.HasTokens()
		if err != nil {
			return err
		}
		if there && !lost {
			secret = ""
			return nil
		}
		if err := tx.AddToken(token); err != nil {
			return err
		}
		return note(ctx, tx, &r, action{Action: access.IssueToken}, &done{target: "token " + token.ID, after: token})
	})
	if err != nil {
		return "", err
	}
	return secret, nil
}

// TokenFilter says which tokens are listed. The zero value is all.
type TokenFilter struct {
	// Tenant is one that they are confined to, perhaps among others, and Parent the token that they were issued with.
	Tenant, Parent string
	// After is the ID of the last one of the page before, and N how many there are on a page.
	After string
	N     int
}

// Tokens lists tokens by ID, also those that hold no longer: [access.ReadToken], of a tenant or of all. Everybody may list what was issued with the token that
// they come with. Who is confined is told of no other tenants.
func (c *Control) Tokens(ctx context.Context, actor access.Actor, f TokenFilter) (found []access.Token, _ error) {
	own := f.Parent != "" && f.Parent == actor.Token
	if err := access.Authorize(actor, access.ReadToken, f.Tenant); err != nil && !own {
		return nil, err
	}
	err := c.cfg.Store.Read(ctx, func(v *store.View) error {
		n := min(f.N, store.MaxPage)
		for len(found) < n {
			page, err := tokensAfter(v, &f)
			for i := range page {
				if f.After = page[i].ID; len(found) < n && (f.Tenant == "" || slices.Contains(page[i].Tenants, f.Tenant)) {
					found = append(found, tokenFor(actor, &page[i]))
				}
			}
			if err != nil || len(page) < store.MaxPage {
				return err
			}
		}
		return nil
	})
	return found, err
}

// tokensAfter reads a page of those that a filter may let through.
func tokensAfter(v *store.View, f *TokenFilter) ([]access.Token, error) {
	if f.Parent != "" {
		return v.Children(f.Parent, f.After, store.MaxPage)
	}
	return v.Tokens(f.After, store.MaxPage)
}

// tokenFor is a token as it is told to an actor: who is confined is told which other tenants there are of no token, and of who has issued it and
// from what it comes nothing but what they are themselves.
func tokenFor(actor access.Actor, t *access.Token) access.Token {
	token := shownToken(t)
	if actor.Confined() {
		if !actor.AnswersFor(t) {
			token.Owner = ""
			if token.Parent != actor.Token {
				token.Parent = ""
			}
			if token.Root != actor.Token && token.Root != token.ID {
				token.Root = ""
			}
		}
		token.Tenants = slices.DeleteFunc(slices.Clone(token.Tenants), func(tenant string) bool { return !slices.Contains(actor.Tenants, tenant) })
	}
	return token
}

// TokenStore is where an authenticator finds tokens.
func (c *Control) TokenStore() access.TokenStore { return tokens{c.cfg.Store} }

// tokens are those of a store.
type tokens struct{ db *store.DB }

// Key implements access.TokenStore.
func (t tokens) Key() access.TokenKey { return t.db.TokenKey() }

// Token implements access.TokenStore.
func (t tokens) Token(ctx context.Context, id string) (found *access.Token, _ error) {
	err := t.db.Read(ctx, func(v *store.View) (err error) {
		found, err = v.Token(id)
		return err
	})
	return found, err
}

// UseToken implements access.TokenStore.
func (t tokens) UseToken(ctx context.Context, id string, at time.Time) error {
	return t.db.Change(ctx, func(tx *store.Tx) error { return tx.UseToken(id, at) })
}

// shownToken is a token without its hash, which is told to nobody.
func shownToken(t *access.Token) access.Token {
	shown := *t
	shown.Hash = [sha256.Size]byte{}
	return shown
}
