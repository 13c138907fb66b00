package access_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
)

// idp is an issuer of OpenID Connect.
type idp struct {
	*httptest.Server
	mu sync.Mutex
	// keys are those that it shows, and answer what it answers in their place.
	keys    []jose.JSONWebKey
	answer  http.HandlerFunc
	fetches atomic.Int64
	// metadata changes what it says about itself.
	metadata map[string]any
}

func newIDP(t testing.TB) *idp {
	t.Helper()
	p := &idp{metadata: map[string]any{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		about := map[string]any{"issuer": p.URL, "jwks_uri": p.URL + "/keys", "id_token_signing_alg_values_supported": []string{"RS256"}}
		p.mu.Lock()
		defer p.mu.Unlock()
		for name, value := range p.metadata {
			about[name] = value
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(about)
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, r *http.Request) {
		p.fetches.Add(1)
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.answer != nil {
			p.answer(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: p.keys})
	})
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

// show makes the issuer show these keys.
func (p *idp) show(keys ...signingKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys, p.answer = nil, nil
	for _, key := range keys {
		p.keys = append(p.keys, jose.JSONWebKey{Key: key.private.Public(), KeyID: key.id, Use: "sig"})
	}
}

// fail makes the issuer answer otherwise.
func (p *idp) fail(answer http.HandlerFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = answer
}

// signingKey is a key of an issuer.
type signingKey struct {
	id        string
	algorithm jose.SignatureAlgorithm
	private   crypto.Signer
}

func newSigningKey(t testing.TB, id string) signingKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return signingKey{id, jose.ES256, key}
}

// claims are what a token says.
type claims map[string]any

// token is a token of the issuer: whole, for the control plane, and for an hour, unless the changes say otherwise. A nil takes away.
func (p *idp) token(t testing.TB, key signingKey, changes claims) string {
	t.Helper()
	all := claims{"iss": p.URL, "aud": "limits", "sub": "ada", "iat": noon.Unix(), "exp": noon.Add(time.Hour).Unix(), "groups": []string{"staff", "admins"}}
	for name, value := range changes {
		if all[name] = value; value == nil {
			delete(all, name)
		}
	}
	return key.sign(t, all)
}

func (k signingKey) sign(t testing.TB, payload any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: k.algorithm, Key: jose.JSONWebKey{Key: k.private, KeyID: k.id}}, nil)
	require.NoError(t, err)
	text, err := json.Marshal(payload)
	require.NoError(t, err)
	signed, err := signer.Sign(text)
	require.NoError(t, err)
	compact, err := signed.CompactSerialize()
	require.NoError(t, err)
	return compact
}

// oidcDoor is a door with an issuer, which shows a key.
func oidcDoor(t testing.TB, change func(*access.OIDCConfig)) (*door, *idp, signingKey) {
	t.Helper()
	p, key := newIDP(t), newSigningKey(t, "k1")
	p.show(key)
	cfg := access.OIDCConfig{Issuer: p.URL, Audience: "limits", Roles: []access.ClaimRole{{Claim: "groups", Value: "admins", Role: access.Admin}}}
	if change != nil {
		change(&cfg)
	}
	return newDoor(t, access.AuthConfig{OIDC: []access.OIDCConfig{cfg}}), p, key
}

func TestATokenOfAnIssuerIsAnActor(t *testing.T) {
	t.Parallel()
	d, p, _ := oidcDoor(t, nil)
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	keys := []signingKey{newSigningKey(t, "ec"), {"rsa", jose.RS256, rsaKey}, {"pss", jose.PS512, rsaKey}, {"ed", jose.EdDSA, edKey}}
	p.show(keys...)
	for _, key := range keys {
		actor, err := d.enter(p.token(t, key, nil))
		require.NoError(t, err, key.id)
		require.Equal(t, access.Actor{
			Subject: "ada", Issuer: p.URL, Method: access.MethodOIDC, Roles: []access.Role{access.Admin}, Address: actor.Address, Agent: "test/1",
		}, actor)
	}
	require.EqualValues(t, 1, p.fetches.Load())
	actor, err := d.enter(p.token(t, keys[0], claims{"groups": nil}))
	require.NoError(t, err)
	require.Empty(t, actor.Roles)
	require.ErrorIs(t, access.Authorize(actor, access.ReadPolicy, ""), access.ErrDenied, "who has no role may nothing")
}

func TestATokenThatTheIssuerHasNotMadeForUsIsRefused(t *testing.T) {
	t.Parallel()
	d, p, key := oidcDoor(t, nil)
	stranger := newSigningKey(t, "k1")
	_, err := d.enter(p.token(t, key, nil))
	require.NoError(t, err)
	for name, c := range map[string]struct {
		reason access.Reason
		token  string
	}{
		"another key":               {access.ReasonUnknown, p.token(t, stranger, nil)},
		"another key of no name":    {access.ReasonUnknown, p.token(t, signingKey{"", jose.ES256, stranger.private}, nil)},
		"another issuer":            {access.ReasonUnknown, p.token(t, key, claims{"iss": "https://other.example.org"})},
		"no issuer":                 {access.ReasonUnknown, p.token(t, key, claims{"iss": nil})},
		"the issuer with a slash":   {access.ReasonUnknown, p.token(t, key, claims{"iss": p.URL + "/"})},
		"for another service":       {access.ReasonAudience, p.token(t, key, claims{"aud": "mail"})},
		"for nobody":                {access.ReasonAudience, p.token(t, key, claims{"aud": nil})},
		"for others":                {access.ReasonAudience, p.token(t, key, claims{"aud": []string{"mail", "limit"}})},
		"given to another service":  {access.ReasonAudience, p.token(t, key, claims{"aud": []string{"mail", "limits"}, "azp": "mail"})},
		"expired":                   {access.ReasonExpired, p.token(t, key, claims{"exp": noon.Add(-time.Minute).Unix()})},
		"for ever":                  {access.ReasonExpired, p.token(t, key, claims{"exp": nil})},
		"not yet":                   {access.ReasonExpired, p.token(t, key, claims{"nbf": noon.Add(61 * time.Second).Unix()})},
		"of the future":             {access.ReasonExpired, p.token(t, key, claims{"iat": noon.Add(61 * time.Second).Unix()})},
		"not yet, as a text":        {access.ReasonUnknown, p.token(t, key, claims{"nbf": "later"})},
		"nobody":                    {access.ReasonUnknown, p.token(t, key, claims{"sub": nil})},
		"a name that shows oddly":   {access.ReasonUnknown, p.token(t, key, claims{"sub": "ada\u202e"})},
		"a name that is too long":   {access.ReasonUnknown, p.token(t, key, claims{"sub": strings.Repeat("x", 257)})},
		"a name that is no text":    {access.ReasonUnknown, p.token(t, key, claims{"sub": 7})},
		"no signature":              {access.ReasonUnknown, unsigned(p.token(t, key, nil), `{"alg":"none"}`)},
		"the public key as secret":  {access.ReasonUnknown, confused(t, p, key)},
		"a signature of other text": {access.ReasonUnknown, spliced(p.token(t, key, nil), p.token(t, key, claims{"sub": "eve"}))},
		"no JSON":                   {access.ReasonMalformed, "eyJhbGciOiJFUzI1NiJ9.bm90anNvbg.AAAA"},
		"no base64":                 {access.ReasonMalformed, "a.!.b"},
	} {
		_, err := d.enter(c.token)
		requireReason(t, c.reason, err, c.token[len(c.token)-5:], "eve")
		require.NotContains(t, d.log.String(), c.token, name)
	}
	require.Empty(t, d.log.String())
}

// unsigned puts another header before a token, and takes its signature away.
func unsigned(token, header string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + strings.Split(token, ".")[1] + "."
}

// spliced is the header and the signature of one token around what another says.
func spliced(token, other string) string {
	parts := strings.Split(token, ".")
	return parts[0] + "." + strings.Split(other, ".")[1] + "." + parts[2]
}

// confused is a token that is signed with the public key, as if it were a secret.
func confused(t testing.TB, p *idp, key signingKey) string {
	t.Helper()
	public, err := jose.JSONWebKey{Key: key.private.Public(), KeyID: key.id}.MarshalJSON()
	require.NoError(t, err)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: jose.JSONWebKey{Key: public, KeyID: key.id}}, nil)
	require.NoError(t, err)
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(p.token(t, key, nil), ".")[1])
	require.NoError(t, err)
	signed, err := signer.Sign(payload)
	require.NoError(t, err)
	compact, err := signed.CompactSerialize()
	require.NoError(t, err)
	return compact
}

func TestClocksMayDifferByTheSkew(t *testing.T) {
	t.Parallel()
	d, p, key := oidcDoor(t, nil)
	for _, c := range []claims{
		{"exp": noon.Add(-59 * time.Second).Unix()},
		{"iat": noon.Add(time.Minute).Unix()},
		{"nbf": noon.Add(time.Minute).Unix()},
		{"aud": []string{"mail", "limits"}, "azp": "limits"},
		{"aud": []string{"limits", "mail"}},
		{"iat": nil},
	} {
		_, err := d.enter(p.token(t, key, c))
		require.NoError(t, err, "%v", c)
	}
}

func TestClaimsGiveRolesAndTenants(t *testing.T) {
	t.Parallel()
	d, p, key := oidcDoor(t, func(cfg *access.OIDCConfig) {
		cfg.SubjectClaim, cfg.TenantsClaim = "email", "/org/tenants"
		cfg.Roles = []access.ClaimRole{
			{Claim: "groups", Value: "customers", Role: access.Operator},
			{Claim: "groups", Value: "customers", Role: access.Viewer},
			{Claim: "/realm_access/roles", Value: "on-call", Role: access.Operator, Everywhere: true},
			{Claim: "https://example.org/role", Value: "on-call", Role: access.Operator, Everywhere: true},
		}
	})
	base := claims{"email": "ada@example.org", "email_verified": true}
	for name, c := range map[string]struct {
		claims  claims
		roles   []access.Role
		tenants []string
		reason  access.Reason
	}{
		"a customer":                  {claims{"groups": "customers", "org": claims{"tenants": []any{"acme", 7, "globex"}}}, []access.Role{access.Operator, access.Viewer}, []string{"acme", "globex"}, ""},
		"a customer of one tenant":    {claims{"groups": []string{"customers"}, "org": claims{"tenants": "acme"}}, []access.Role{access.Operator, access.Viewer}, []string{"acme"}, ""},
		"a claim that was forgotten":  {claims{"groups": []string{"customers"}}, nil, nil, ""},
		"a claim of another kind":     {claims{"groups": []string{"customers"}, "org": "acme"}, nil, nil, ""},
		"staff":                       {claims{"realm_access": claims{"roles": []string{"x", "on-call"}}}, []access.Role{access.Operator}, nil, ""},
		"staff by a name with slash":  {claims{"https://example.org/role": "on-call"}, []access.Role{access.Operator}, nil, ""},
		"nearly a value":              {claims{"https://example.org/role": "on-call "}, nil, nil, ""},
		"staff confined":              {claims{"https://example.org/role": "on-call", "org": claims{"tenants": "acme"}}, []access.Role{access.Operator}, []string{"acme"}, ""},
		"an email of anybody":         {claims{"email_verified": false}, nil, nil, access.ReasonUnknown},
		"an email that says nothing":  {claims{"email_verified": nil}, nil, nil, access.ReasonUnknown},
		"an email verified by a text": {claims{"email_verified": "true"}, nil, nil, access.ReasonUnknown},
		"a tenant without a name":     {claims{"org": claims{"tenants": []string{""}}}, nil, nil, access.ReasonMalformed},
		"too many tenants":            {claims{"org": claims{"tenants": strings.Split(strings.Repeat("x,", 101)+"x", ",")}}, nil, nil, access.ReasonMalformed},
	} {
		all := claims{}
		for _, from := range []claims{base, {"groups": nil}, c.claims} {
			for claim, value := range from {
				all[claim] = value
			}
		}
		actor, err := d.enter(p.token(t, key, all))
		if c.reason != "" {
			requireReason(t, c.reason, err)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, "ada@example.org", actor.Subject)
		require.Equal(t, c.roles, actor.Roles, name)
		require.Equal(t, c.tenants, actor.Tenants, name)
	}
}

// Whose email was changed is who they were, and who was given the email of somebody is not that person.
func TestAPersonIsWhomTheIssuerCallsSubUnderWhateverName(t *testing.T) {
	t.Parallel()
	d, p, key := oidcDoor(t, func(cfg *access.OIDCConfig) { cfg.SubjectClaim = "email" })
	enter := func(sub any, email string) (access.Actor, error) {
		return d.enter(p.token(t, key, claims{"sub": sub, "email": email, "email_verified": true}))
	}
	ada, err := enter("248289761001", "ada@example.org")
	require.NoError(t, err)
	alias, err := enter("248289761001", "ada.lovelace@example.org")
	require.NoError(t, err)
	other, err := enter("77", "ada@example.org")
	require.NoError(t, err)
	require.Equal(t, "ada.lovelace@example.org", alias.Subject)
	require.Equal(t, ada.Person(), alias.Person())
	require.Equal(t, p.URL+" 248289761001", alias.Audit().Owner, "the log says who it is, whatever the name")
	require.NotEqual(t, ada.Person(), other.Person())
	for _, sub := range []any{nil, "", "two words", 7} {
		_, err := enter(sub, "ada@example.org")
		requireReason(t, access.ReasonUnknown, err)
	}
}
