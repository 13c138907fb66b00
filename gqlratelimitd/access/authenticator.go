package access

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"
	"unicode"
)

// AuthConfig configures an [Authenticator]. What is empty is not offered; with nothing in it nobody is let in.
type AuthConfig struct {
	// Tokens are tokens of the control plane's own.
	Tokens TokenStore
	// OIDC are issuers of OpenID Connect.
	OIDC []OIDCConfig
	// Address returns where a request comes from. Nil is the peer of the connection: behind a proxy that is the proxy, and
	// all its clients count as one.
	Address func(*http.Request) netip.Addr
	// Now is the clock. Nil is time.Now.
	Now func() time.Time
	// Logger is told what does not answer. Nil is slog.Default.
	Logger *slog.Logger
}

// Authenticator finds out who asks: by a bearer token, of its own or of an issuer of OpenID Connect. It is safe for concurrent use.
type Authenticator struct {
	cfg     AuthConfig
	issuers map[string]*issuer
	// turns are the lookups that are under way.
	turns chan struct{}
	// warned is when it was logged last that something does not answer, in nanoseconds.
	warned atomic.Int64
}

// NewAuthenticator returns an authenticator. It asks nobody anything yet, so that a server starts while an issuer is away. The error
// names every mistake in the configuration.
func NewAuthenticator(cfg AuthConfig) (*Authenticator, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.Address == nil {
		cfg.Address = peer
	}
	var mistakes []error
	a := &Authenticator{issuers: make(map[string]*issuer, len(cfg.OIDC)), turns: make(chan struct{}, turns)}
	for i := range cfg.OIDC {
		issuer, err := newIssuer(cfg.OIDC[i], cfg.Now)
		mistakes = append(mistakes, err)
		if err == nil && a.issuers[issuer.cfg.Issuer] != nil {
			mistakes = append(mistakes, errors.New("access: two OIDCConfig have one Issuer"))
		} else if err == nil {
			a.issuers[issuer.cfg.Issuer] = issuer
		}
	}
	if err := errors.Join(mistakes...); err != nil {
		return nil, err
	}
	a.cfg = cfg
	return a, nil
}

// Close ends what is under way, and waits for it. Keys of issuers are not fetched any more then.
func (a *Authenticator) Close() {
	for _, issuer := range a.issuers {
		issuer.keys.close()
	}
}

// maxCredential is how many bytes a bearer token has at most. Those of issuers carry groups.
const maxCredential = 16 << 10

// Authenticate returns who makes a request, or an [*UnauthenticatedError], or [context.Canceled] where the client has left. An actor may still have no
// rights: [Authorize] says which. It asks the store for a token that this control plane has issued, and for no other:
// see [Authenticator.Lookup].
func (a *Authenticator) Authenticate(r *http.Request) (Actor, error) {
	address := a.cfg.Address(r)
	actor, err := a.authenticate(r)
	if err != nil {
		var refused *UnauthenticatedError
		if errors.As(err, &refused) && refused.Reason == ReasonUnavailable {
			if errors.Is(r.Context().Err(), context.Canceled) {
				return Actor{}, context.Canceled
			}
			a.warn(r.Context(), refused.Err)
		}
		return Actor{}, err
	}
	actor.Address, actor.Agent = address, agentOf(r)
	return actor, nil
}

// warnEvery is how often it is logged at most that something does not answer: anybody can ask.
const warnEvery = 10 * time.Second

// warn logs why nobody can be authenticated.
func (a *Authenticator) warn(ctx context.Context, err error) {
	now, last := a.cfg.Now().UnixNano(), a.warned.Load()
	if last != 0 && now-last < int64(warnEvery) && now >= last || !a.warned.CompareAndSwap(last, now) {
		return
	}
	a.cfg.Logger.WarnContext(ctx, "access: nobody can be authenticated", slog.Any("error", err))
}

// authenticate finds out who asks, without where from.
func (a *Authenticator) authenticate(r *http.Request) (Actor, error) {
	headers := r.Header.Values("Authorization")
	if len(headers) == 0 {
		return Actor{}, refuse(ReasonMissing)
	}
	credential, ok := bearer(headers)
	if !ok {
		return Actor{}, refuse(ReasonMalformed)
	}
	return a.byCredential(r.Context(), credential, a.cfg.Now())
}

// bearer returns the token of the one header that there may be.
func bearer(headers []string) (string, bool) {
	scheme, credential, ok := strings.Cut(headers[0], " ")
	if len(headers) > 1 || !ok || !strings.EqualFold(scheme, "Bearer") || len(credential) > maxCredential {
		return "", false
	}
	credential = strings.Trim(credential, " ")
	return credential, credential != "" && !strings.ContainsFunc(credential, func(r rune) bool { return r <= ' ' || r > '~' })
}

// byCredential finds out whose a bearer token is.
func (a *Authenticator) byCredential(ctx context.Context, credential string, now time.Time) (Actor, error) {
	if strings.HasPrefix(credential, TokenPrefix) {
		return a.byToken(ctx, credential, now)
	}
	name, ok := issuerOf(credential)
	if !ok {
		return Actor{}, refuse(ReasonMalformed)
	}
	issuer := a.issuers[name]
	if issuer == nil {
		return Actor{}, refuse(ReasonUnknown)
	}
	return issuer.actor(ctx, credential, now)
}

// byToken finds out whose a token of the control plane's own is.
func (a *Authenticator) byToken(ctx context.Context, credential string, now time.Time) (Actor, error) {
	if a.cfg.Tokens == nil {
		return Actor{}, refuse(ReasonUnknown)
	}
	id, ok := a.cfg.Tokens.Key().tokenID(credential)
	if !ok {
		return Actor{}, refuse(ReasonMalformed)
	}
	token, err := a.lookup(ctx, id)
	if err != nil {
		return Actor{}, unavailable(err)
	}
	if reason := token.judge(sha256.Sum256([]byte(credential)), now); reason != "" {
		return Actor{}, refuse(reason)
	}
	if at := now.Truncate(UsedEvery); !token.Bootstrap && token.Used.Before(at) {
		if err := a.cfg.Tokens.UseToken(ctx, id, at); err != nil && ctx.Err() == nil {
			a.cfg.Logger.WarnContext(ctx, "access: the use of a token was not noted", slog.String("token", id), slog.Any("error", err))
		}
	}
	return token.actor(), nil
}

// peer returns the address at the other end of the connection.
func peer(r *http.Request) netip.Addr {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return from.Addr().Unmap()
}

// agentOf returns what the client calls itself, as far as it can be shown and kept.
func agentOf(r *http.Request) string {
	agent := strings.ToValidUTF8(r.UserAgent(), "")
	agent = strings.Map(func(c rune) rune {
		if unicode.IsControl(c) || unicode.Is(unicode.Bidi_Control, c) {
			return -1
		}
		return c
	}, agent)
	if len(agent) > MaxAgent {
		agent = strings.ToValidUTF8(agent[:MaxAgent], "")
	}
	return agent
}
