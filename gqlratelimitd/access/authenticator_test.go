package access_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
)

// tokens is a store of tokens in memory.
type tokens struct {
	mu    sync.Mutex
	known map[string]*access.Token
	asked int
	used  []time.Time
	err   error
}

// tokenKey is that of the control plane of the tests.
var tokenKey = access.TokenKey{1, 2, 3}

func (s *tokens) Key() access.TokenKey { return tokenKey }

func (s *tokens) Token(_ context.Context, id string) (*access.Token, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if token := s.known[id]; token != nil && s.err == nil {
		found := *token
		return &found, nil
	}
	return nil, s.err
}

func (s *tokens) UseToken(_ context.Context, id string, at time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = append(s.used, at)
	if s.known[id].Used = at; s.known[id].Subject == "broken" {
		return errors.New("no room on the disk")
	}
	return nil
}

// add issues a token and stores it.
func (s *tokens) add(t testing.TB, issuer access.Actor, request access.TokenRequest, now time.Time) (*access.Token, string) {
	t.Helper()
	token, text, err := tokenKey.NewToken(issuer, request, now)
	require.NoError(t, err)
	s.known[token.ID] = token
	return token, text
}

// door is an authenticator, its clock and its log.
type door struct {
	*access.Authenticator
	tokens *tokens
	now    time.Time
	log    bytes.Buffer
}

func newDoor(t testing.TB, cfg access.AuthConfig) *door {
	t.Helper()
	d := &door{tokens: &tokens{known: map[string]*access.Token{}}, now: noon}
	cfg.Tokens = d.tokens
	cfg.Now = func() time.Time { return d.now }
	cfg.Logger = slog.New(slog.NewTextHandler(&d.log, nil))
	var err error
	d.Authenticator, err = access.NewAuthenticator(cfg)
	require.NoError(t, err)
	t.Cleanup(d.Close)
	return d
}

// request is a request with Authorization headers.
func request(headers ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = "192.0.2.1:1234"
	r.Header["Authorization"] = headers
	r.Header.Set("User-Agent", "test/1")
	if len(headers) == 0 {
		r.Header.Del("Authorization")
	}
	return r
}

// enter authenticates with a bearer token.
func (d *door) enter(credential string) (access.Actor, error) {
	return d.Authenticate(request("Bearer " + credential))
}

// requireReason holds that somebody was refused for a reason, and that nothing of what they showed is repeated.
func requireReason(t testing.TB, reason access.Reason, err error, secrets ...string) {
	t.Helper()
	var refused *access.UnauthenticatedError
	require.ErrorAs(t, err, &refused)
	require.ErrorIs(t, err, access.ErrUnauthenticated)
	require.Equal(t, reason, refused.Reason)
	for _, secret := range secrets {
		require.NotContains(t, err.Error(), secret)
		require.NotContains(t, fmt.Sprintf("%+v", err), secret)
	}
}

func TestATokenIsAnActor(t *testing.T) {
	t.Parallel()
	d := newDoor(t, access.AuthConfig{})
	ada := administrator()
	token, text := d.tokens.add(t, ada, access.TokenRequest{Subject: "deploy", Roles: []access.Role{access.Admin}, Tenants: []string{"acme"}}, noon)
	actor, err := d.enter(text)
	require.NoError(t, err)
	require.Equal(t, access.Actor{
		Subject: "deploy#" + token.ID, Issuer: access.LocalIssuer, Method: access.MethodToken, Owner: ada.Person(), Token: token.ID, Root: token.ID, Apart: true, Until: token.Expires,
		Roles: []access.Role{access.Admin}, Tenants: []string{"acme"}, Address: netip.MustParseAddr("192.0.2.1"), Agent: "test/1",
	}, actor)
	_, err = d.Authenticate(request("bearer   " + text + " "))
	require.NoError(t, err, "the scheme has no case")
}

func TestATokenThatIsNotWholeIsRefusedWithoutAsking(t *testing.T) {
	t.Parallel()
	d := newDoor(t, access.AuthConfig{})
	_, text := d.tokens.add(t, administrator(), access.TokenRequest{Subject: "deploy", Roles: []access.Role{access.Viewer}}, noon)
	for i := range text {
		changed := []byte(text)
		if changed[i]++; changed[i] > '~' {
			changed[i] = 'a'
		}
		_, err := d.enter(string(changed))
		requireReason(t, access.ReasonMalformed, err, string(changed[20:]))
	}
	for _, wrong := range []string{text[:len(text)-1], text + "a", strings.ToUpper(text), "grl_", "grl_x", "x", "a.b", "....", ""} {
		_, err := d.enter(wrong)
		requireReason(t, access.ReasonMalformed, err)
	}
	require.Zero(t, d.tokens.asked)
	for name, headers := range map[string][]string{
		"two headers": {"Bearer " + text, "Bearer " + text}, "another scheme": {"Basic " + text}, "no scheme": {text}, "a space within": {"Bearer " + text + " x"},
		"too long": {"Bearer " + strings.Repeat("x", 17<<10)}, "a control character": {"Bearer \x00"}, "an empty header": {""},
	} {
		_, err := d.Authenticate(request(headers...))
		requireReason(t, access.ReasonMalformed, err, text)
		require.Zero(t, d.tokens.asked, name)
	}
	_, err := d.Authenticate(request())
	requireReason(t, access.ReasonMissing, err)
	require.NotContains(t, d.log.String(), text)
}

func TestATokenHoldsUntilItExpiresOrIsRevoked(t *testing.T) {
	t.Parallel()
	d := newDoor(t, access.AuthConfig{})
	viewer := access.TokenRequest{Subject: "deploy", Roles: []access.Role{access.Viewer}, Life: time.Hour}
	token, text := d.tokens.add(t, administrator(), viewer, noon)
	other, _ := d.tokens.add(t, administrator(), viewer, noon)
	d.now = noon.Add(time.Hour - 1)
	_, err := d.enter(text)
	require.NoError(t, err)
	d.now = noon.Add(time.Hour)
	_, err = d.enter(text)
	requireReason(t, access.ReasonExpired, err, text)
	d.now = noon
	token.Revoked = noon
	_, err = d.enter(text)
	requireReason(t, access.ReasonRevoked, err, text)
	// Who does not have the token does not learn that it is revoked or has expired, and the token of another ID is not this one.
	token.Hash = other.Hash
	_, err = d.enter(text)
	requireReason(t, access.ReasonUnknown, err, text)
	delete(d.tokens.known, token.ID)
	_, err = d.enter(text)
	requireReason(t, access.ReasonUnknown, err, text)
	// A row that lost its hash lets nobody in.
	d.tokens.known[token.ID] = &access.Token{ID: token.ID, Expires: noon.Add(time.Hour)}
	_, err = d.enter(text)
	requireReason(t, access.ReasonUnknown, err, text)
}

func TestTheBootstrapTokenIssuesOneTokenAndNothingElse(t *testing.T) {
	t.Parallel()
	d := newDoor(t, access.AuthConfig{})
	token, text := tokenKey.NewBootstrapToken(noon)
	d.tokens.known[token.ID] = token
	actor, err := d.enter(text)
	require.NoError(t, err)
	require.NoError(t, access.Authorize(actor, access.IssueToken, ""))
	require.ErrorIs(t, access.Authorize(actor, access.ReadPolicy, ""), access.ErrDenied)
	require.Empty(t, d.tokens.used, "to come in does not spend it: the exchange does")
	token.Used = noon
	_, err = d.enter(text)
	requireReason(t, access.ReasonSpent, err, text)
	token.Used = time.Time{}
	d.now = noon.Add(access.BootstrapLife)
	_, err = d.enter(text)
	requireReason(t, access.ReasonExpired, err, text)
}

func TestTheUseOfATokenIsNotedCoarsely(t *testing.T) {
	t.Parallel()
	d := newDoor(t, access.AuthConfig{})
	_, text := d.tokens.add(t, administrator(), access.TokenRequest{Subject: "broken", Roles: []access.Role{access.Viewer}}, noon)
	for range 25 {
		_, err := d.enter(text)
		require.NoError(t, err, "a use that cannot be noted keeps nobody out")
		d.now = d.now.Add(time.Minute)
	}
	require.Equal(t, []time.Time{noon, noon.Add(10 * time.Minute), noon.Add(20 * time.Minute)}, d.tokens.used)
	require.Contains(t, d.log.String(), "no room on the disk")
	require.NotContains(t, d.log.String(), text)
}

func TestAStoreThatIsAwayIsNotTheFaultOfWhoAsks(t *testing.T) {
	t.Parallel()
	d := newDoor(t, access.AuthConfig{})
	_, text := d.tokens.add(t, administrator(), access.TokenRequest{Subject: "deploy", Roles: []access.Role{access.Viewer}}, noon)
	d.tokens.err = errors.New("the database is away")
	for range 5 {
		_, err := d.enter(text)
		requireReason(t, access.ReasonUnavailable, err, text)
		require.NotContains(t, err.Error(), "database")
	}
	require.Equal(t, 1, strings.Count(d.log.String(), "the database is away"), "who asks fills no log")
	d.tokens.err = nil
	_, err := d.enter(text)
	require.NoError(t, err)
}

func TestATokenThatWasLetInIsJudgedEachTime(t *testing.T) {
	t.Parallel()
	d := newDoor(t, access.AuthConfig{})
	token, text := d.tokens.add(t, administrator(), access.TokenRequest{Subject: "deploy", Roles: []access.Role{access.Viewer}}, noon)
	_, err := d.enter(text)
	require.NoError(t, err)
	token.Revoked = noon
	_, err = d.enter(text)
	requireReason(t, access.ReasonRevoked, err)
}

func TestWhatAClientCallsItselfIsBounded(t *testing.T) {
	t.Parallel()
	d := newDoor(t, access.AuthConfig{})
	_, text := d.tokens.add(t, administrator(), access.TokenRequest{Subject: "deploy", Roles: []access.Role{access.Viewer}}, noon)
	r := request("Bearer " + text)
	r.Header.Set("User-Agent", "a\x1b[2J\u202e\xff"+strings.Repeat("é", 1000))
	actor, err := d.Authenticate(r)
	require.NoError(t, err)
	require.Equal(t, "a[2J"+strings.Repeat("é", 126), actor.Agent)
}

func TestAnAuthenticatorWithoutConfigurationLetsNobodyIn(t *testing.T) {
	t.Parallel()
	a, err := access.NewAuthenticator(access.AuthConfig{})
	require.NoError(t, err)
	defer a.Close()
	_, text := tokenKey.NewBootstrapToken(noon)
	_, err = a.Authenticate(request("Bearer " + text))
	requireReason(t, access.ReasonUnknown, err, text)
	_, err = a.Authenticate(request())
	requireReason(t, access.ReasonMissing, err)
}

func TestAnAuthenticatorSaysAllMistakesOfItsConfiguration(t *testing.T) {
	t.Parallel()
	_, err := access.NewAuthenticator(access.AuthConfig{
		OIDC: []access.OIDCConfig{
			{Issuer: "http://login.example.org", Skew: time.Hour, Roles: []access.ClaimRole{{Role: access.Viewer}, {Claim: "groups", Value: "x", Role: "root"}}},
			{Issuer: "https://login.example.org", Audience: "limits"},
			{Issuer: "https://login.example.org", Audience: "limits"},
		},
	})
	for _, mistake := range []string{
		"not a URL with https", "Audience is missing", "Skew is 1h0m0s", "Roles[0] has no Claim", "Roles[1] has no role that there is",
		"two OIDCConfig have one Issuer",
	} {
		require.ErrorContains(t, err, mistake)
	}
}
