package access

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// TokenPrefix is what every token begins with, so that people and scanners of secrets recognise one.
//
// A token is the prefix, the ID, an underscore, 256 random bits, and a mark, in lower case base32: 77 characters, which match
// grl_[a-z2-7]{13}_[a-z2-7]{59}. The mark is the first 4 bytes of an HMAC-SHA-256 of what stands before, under the [TokenKey]. It tells a token that this
// control plane has issued from one that was cut, mistyped or made up, without asking anything.
const TokenPrefix = "grl_"

const (
	// DefaultTokenLife is for how long a token holds where nothing is said.
	DefaultTokenLife = 90 * 24 * time.Hour
	// MaxTokenLife is for how long a token holds at most.
	MaxTokenLife = 366 * 24 * time.Hour
	// BootstrapLife is for how long the bootstrap token holds.
	BootstrapLife = time.Hour
	// UsedEvery is how exactly it is known when a token was used last: a use is noted once in that time.
	UsedEvery = 10 * time.Minute
	// MaxTokens is how many tokens hold at once that were issued with one root, see [Token.Root], or by one [Actor.Person] without any token or with
	// one that nobody has issued. So it bounds how many tokens hold that one credential has brought about:
	//
	//   - 100 for a token that is given away, and for a viewer's that somebody has issued: all that comes from it has its root;
	//   - 10 100 for an operator's or admin's that somebody has issued. Those that they give away are among the 100, and each has a root of its own. This
	//     is accepted: who gives a token away answers for that;
	//   - for a person, 100 times what holds for each token that they issue, and the 100: 10 100 for a viewer or a customer, and 1 010 100 for an operator.
	MaxTokens = 100
	// EndedTokenLife is for how long a token that has ended is still listed, at least.
	EndedTokenLife = 90 * 24 * time.Hour
	// MaxSubject is how many bytes the name of a token has.
	MaxSubject = 128
	// MaxTenant is how many bytes the name of a tenant has to which an actor is confined.
	MaxTenant = 256
)

// lower is base32 that is selected with a double click and read over the telephone.
var lower = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// Token is what is known of a token. The token itself is shown once, when it is issued, and is nowhere else.
type Token struct {
	// ID names the token. It is no secret, and part of the token.
	ID string `json:"id"`
	// Hash is the SHA-256 of the token, which is told to nobody. That is enough: a token has 256 random bits, and nobody can try them all.
	Hash [sha256.Size]byte `json:"-"`
	// Subject is whom it is for, the name of a person or of a program.
	Subject string `json:"subject"`
	// Owner is the [Actor.Person] who has issued it, and Parent the ID of the token that it was issued with. Owner is empty where the
	// bootstrap token was exchanged, and Parent there and where the issuer has come in otherwise.
	Owner  string `json:"owner,omitempty"`
	Parent string `json:"parent,omitempty"`
	// Root is the ID of the token whose budgets this one has: that of its parent if somebody has issued that, so that no token has more by issuing
	// others. Otherwise it is its own, as it is of one that is Apart. A customer is told of no root but those of their own tokens.
	Root string `json:"root,omitempty"`
	// Apart says that it is given away: who may end every token, see [RevokeToken], has issued it to somebody who is confined to some tenants. It is no
	// program of its owner then: it answers for itself, and for what is issued with it. Whatever anybody else issues is a program of theirs.
	Apart bool `json:"apart,omitempty"`
	// Roles and Tenants are those of the actor.
	Roles   []Role   `json:"roles,omitempty"`
	Tenants []string `json:"tenants,omitempty"`
	// Bootstrap says that it is the bootstrap token.
	Bootstrap bool `json:"bootstrap,omitempty"`
	// Issued and Expires are when it was issued, and from when on it does not hold.
	Issued  time.Time `json:"issued"`
	Expires time.Time `json:"expires"`
	// Used is when it was used last, to [UsedEvery]; of the bootstrap token, when it was exchanged. Zero means never.
	Used time.Time `json:"used,omitzero"`
	// Revoked is when it was revoked. Zero means not.
	Revoked time.Time `json:"revoked,omitzero"`
}

// TokenStore is where tokens are kept. It is safe for concurrent use.
type TokenStore interface {
	// Key returns the key with which its tokens are made. It is the same each time.
	Key() TokenKey
	// Token returns the token with the ID, also one that holds no longer, and nil if there is none.
	Token(ctx context.Context, id string) (*Token, error)
	// UseToken notes that a token was used at a time. It is called at most once in [UsedEvery] for each token and process, never for a
	// bootstrap token, and an error keeps nobody out.
	UseToken(ctx context.Context, id string, at time.Time) error
}

// TokenRequest asks for a token.
type TokenRequest struct {
	// Subject is whom it is for: 1 to [MaxSubject] bytes of printable UTF-8 without spaces.
	Subject string
	// Roles are what the bearer is, at least one, and Tenants confine it to those. Empty confines nobody.
	Roles   []Role
	Tenants []string
	// Life is for how long it holds, and no longer than the token that it is issued with. Zero is [DefaultTokenLife].
	Life time.Duration
}

// NewToken makes a token for an actor who may issue it at a time, and returns what is to be stored and the token, which is to be shown
// once. The error is a [*DeniedError], or names every mistake in the request. It stores nothing. Who stores a token that the
// bootstrap token was exchanged for sets [Token.Used] of that one in the same transaction, if it is still zero: it is good once. It also finds out there whether the token of
// the actor still holds, and whether fewer than [MaxTokens] do.
func (k TokenKey) NewToken(actor Actor, request TokenRequest, now time.Time) (*Token, string, error) {
	if err := AuthorizeIssue(actor, request.Roles, request.Tenants); err != nil {
		return nil, "", err
	}
	if request.Life == 0 {
		request.Life = DefaultTokenLife
	}
	if err := request.check(); err != nil {
		return nil, "", err
	}
	t := &Token{
		Subject: request.Subject, Roles: slices.Clone(request.Roles), Tenants: slices.Clone(request.Tenants),
		Issued: now, Expires: now.Add(request.Life),
	}
	if actor.Method != MethodBootstrap {
		t.Owner, t.Parent = actor.Person(), actor.Token
		t.Apart = len(t.Tenants) > 0 && Authorize(actor, RevokeToken, "") == nil
	}
	if actor.Owner != "" && !t.Apart {
		t.Root = actor.Root
	}
	if !actor.Until.IsZero() && actor.Until.Before(t.Expires) {
		t.Expires = actor.Until
	}
	return t, t.make(k), nil
}

// NewBootstrapToken makes the bootstrap token, for a control plane that has no other, or whose tokens are all lost. It may be
// exchanged for one token with any roles, once, within [BootstrapLife]. Who can call it has the machine.
func (k TokenKey) NewBootstrapToken(now time.Time) (*Token, string) {
	t := &Token{Subject: "bootstrap", Bootstrap: true, Issued: now, Expires: now.Add(BootstrapLife)}
	return t, t.make(k)
}

// check returns all mistakes.
func (r *TokenRequest) check() error {
	var mistakes []error
	if !plain(r.Subject, MaxSubject) {
		mistakes = append(mistakes, fmt.Errorf("access: the name of a token has 1 to %d bytes of printable UTF-8, without spaces", MaxSubject))
	}
	for _, tenant := range r.Tenants {
		if len(tenant) > MaxTenant || !utf8.ValidString(tenant) {
			mistakes = append(mistakes, fmt.Errorf("access: the name of a tenant has 1 to %d bytes of UTF-8", MaxTenant))
			break
		}
	}
	if r.Life < time.Minute || r.Life > MaxTokenLife {
		mistakes = append(mistakes, fmt.Errorf("access: a token holds for a minute to %d days", MaxTokenLife/(24*time.Hour)))
	}
	return errors.Join(mistakes...)
}

// plain says whether a text is a name: printable, without spaces, and not longer.
func plain(text string, most int) bool {
	return text != "" && len(text) <= most && utf8.ValidString(text) &&
		!strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) })
}

// make gives the token an ID and returns its text. rand.Read of crypto never fails.
func (t *Token) make(k TokenKey) string {
	var random [8 + 32]byte
	_, _ = rand.Read(random[:])
	t.ID = lower.EncodeToString(random[:8])
	t.Root = cmp.Or(t.Root, t.ID)
	text := TokenPrefix + t.ID + "_" + lower.EncodeToString(random[8:])
	text += k.mark(text)
	t.Hash = sha256.Sum256([]byte(text))
	return text
}

// judge returns why a token with this hash does not hold at a time, or "". The token is nil where none has the ID. It takes as long
// for an ID that there is as for one that there is not.
func (t *Token) judge(hash [sha256.Size]byte, now time.Time) Reason {
	var known [sha256.Size]byte
	if t != nil {
		known = t.Hash
	}
	same := subtle.ConstantTimeCompare(known[:], hash[:]) == 1
	switch {
	case t == nil || !same:
		return ReasonUnknown
	case !t.Revoked.IsZero():
		return ReasonRevoked
	case !now.Before(t.Expires):
		return ReasonExpired
	case t.Bootstrap && !t.Used.IsZero():
		return ReasonSpent
	}
	return ""
}

// actor returns the actor of a token.
func (t *Token) actor() Actor {
	if t.Bootstrap {
		return Actor{Subject: t.Subject + "#" + t.ID, Issuer: LocalIssuer, Method: MethodBootstrap, Token: t.ID, Root: t.Root}
	}
	return Actor{
		Subject: t.Subject + "#" + t.ID, Issuer: LocalIssuer, Method: MethodToken, Owner: t.Owner, Token: t.ID, Root: t.Root, Apart: t.Apart, Until: t.Expires,
		Roles: slices.Clone(t.Roles), Tenants: slices.Clone(t.Tenants),
	}
}
