package control_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
)

// come returns who comes in with a token.
func (s *scene) come(secret string) (access.Actor, error) {
	s.Helper()
	auth, err := access.NewAuthenticator(access.AuthConfig{Tokens: s.TokenStore(), Now: func() time.Time { return s.now }})
	require.NoError(s, err)
	defer auth.Close()
	r := httptest.NewRequestWithContext(s.ctx(), http.MethodGet, "/", nil)
	r.Header.Set("Authorization", "Bearer "+secret)
	return auth.Authenticate(r)
}

func viewerToken(tenants ...string) access.TokenRequest {
	return access.TokenRequest{Subject: "page", Roles: []access.Role{access.Viewer}, Tenants: tenants}
}

func TestATokenLetsItsBearerInUntilItIsRevoked(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	issued, err := s.IssueToken(s.ctx(), by(operator), viewerToken("acme"))
	require.NoError(t, err)
	bearer, err := s.come(issued.Secret)
	require.NoError(t, err)
	require.Equal(t, []string{"acme"}, bearer.Tenants)
	require.Equal(t, operator.Person(), bearer.Owner)
	_, err = s.Tenant(s.ctx(), bearer, "acme")
	require.ErrorIs(t, err, control.ErrNotFound, "who may read finds nothing")
	require.NotContains(t, s.dump(), issued.Secret)

	list, err := s.Tokens(s.ctx(), administrator, "", "", 10)
	require.NoError(t, err)
	used := issued.Token
	used.Used = s.now.Truncate(access.UsedEvery)
	require.Equal(t, []access.Token{used}, list)
	for tenant, want := range map[string]int{"acme": 1, "other": 0} {
		list, err = s.Tokens(s.ctx(), customer(tenant), tenant, "", 10)
		require.NoError(t, err)
		require.Len(t, list, want)
	}
	_, err = s.Tokens(s.ctx(), customer("acme"), "", "", 10)
	require.ErrorIs(t, err, access.ErrDenied)

	// Who bears a token may end it, whatever their role.
	_, err = s.RevokeToken(s.ctx(), by(bearer), control.RevokeTokenInput{ID: issued.ID})
	require.NoError(t, err)
	_, err = s.come(issued.Secret)
	require.ErrorIs(t, err, access.ErrUnauthenticated)
	_, err = s.RevokeToken(s.ctx(), by(operator), control.RevokeTokenInput{ID: issued.ID})
	require.ErrorIs(t, err, control.ErrNotFound)
}

func TestWhoEndsTheTokenOfSomebodyElseHasToDoWithAllOfItsTenants(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	both, err := s.IssueToken(s.ctx(), by(operator), viewerToken("acme", "other"))
	require.NoError(t, err)
	all, err := s.IssueToken(s.ctx(), by(operator), viewerToken())
	require.NoError(t, err)
	for _, id := range []string{both.ID, all.ID, "there is none"} {
		_, err = s.RevokeToken(s.ctx(), by(customer("acme")), control.RevokeTokenInput{ID: id})
		require.ErrorIs(t, err, access.ErrDenied, "and says nothing of whether there is one")
	}
	_, err = s.RevokeToken(s.ctx(), by(operator), control.RevokeTokenInput{ID: "there is none"})
	require.ErrorIs(t, err, control.ErrNotFound)
	of := customer("acme")
	of.Tenants = []string{"acme", "other"}
	_, err = s.RevokeToken(s.ctx(), by(of), control.RevokeTokenInput{ID: both.ID})
	require.NoError(t, err)
}

func TestNobodyIssuesRightsThatTheyDoNotHave(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	before := s.dump()
	_, err := s.IssueToken(s.ctx(), by(operator), access.TokenRequest{Subject: "ci", Roles: []access.Role{access.Admin}})
	require.ErrorIs(t, err, access.ErrDenied)
	_, err = s.IssueToken(s.ctx(), by(operator), access.TokenRequest{Subject: "two words", Roles: []access.Role{access.Viewer}, Life: time.Second})
	requireInvalid(t, err, "token", "without spaces")
	require.Equal(t, before, s.dump())
}

func TestTheBootstrapTokenIsExchangedOnce(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	first, err := s.Bootstrap(s.ctx(), false)
	require.NoError(t, err)
	// A second daemon starts at the same time.
	second, err := s.Bootstrap(s.ctx(), false)
	require.NoError(t, err)
	late, err := s.come(second)
	require.NoError(t, err)
	actor, err := s.come(first)
	require.NoError(t, err)
	_, err = s.RevokeToken(s.ctx(), by(actor), control.RevokeTokenInput{ID: "x"})
	require.ErrorIs(t, err, access.ErrDenied)
	request := access.TokenRequest{Subject: "root", Roles: access.Roles()}
	r := by(actor)
	r.Key = "key"
	issued, err := s.IssueToken(s.ctx(), r, request)
	require.NoError(t, err)
	require.Empty(t, issued.Owner)
	// A repeat is answered without the token, which was shown once.
	again, err := s.IssueToken(s.ctx(), r, request)
	require.NoError(t, err)
	require.Equal(t, &control.IssuedToken{Token: issued.Token}, again)
	before := s.dump()
	for _, spent := range []access.Actor{actor, late} {
		_, err = s.IssueToken(s.ctx(), by(spent), request)
		require.ErrorIs(t, err, access.ErrUnauthenticated)
	}
	for _, secret := range []string{first, second} {
		_, err = s.come(secret)
		require.ErrorIs(t, err, access.ErrUnauthenticated)
	}
	none, err := s.Bootstrap(s.ctx(), false)
	require.NoError(t, err)
	require.Empty(t, none)
	require.Equal(t, before, s.dump())
	// All tokens are lost.
	lost, err := s.Bootstrap(s.ctx(), true)
	require.NoError(t, err)
	_, err = s.come(lost)
	require.NoError(t, err)
	entries := s.entries()
	require.Equal(t, string(access.MethodSystem), entries[len(entries)-1].Actor.Method)
	require.Len(t, entries, 4)
	s.now = s.now.Add(access.BootstrapLife)
	_, err = s.come(lost)
	require.ErrorIs(t, err, access.ErrUnauthenticated)
}

func TestTheAuditLogIsReadByAdmins(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	s.publish(document, 0)
	_, err := s.put(`{"tier":"pro"}`, 0)
	require.NoError(t, err)
	for filter, want := range map[control.AuditFilter]int{{}: 2, {Tenant: "acme"}: 1, {Subject: "ada"}: 1, {Action: "token.issue"}: 0} {
		found, err := s.FindAudit(s.ctx(), administrator, filter, 0, 10)
		require.NoError(t, err)
		require.Len(t, found, want)
	}
	report, err := audit.VerifyLog(s.ctx(), control.NewAuditLog(s.db), nil)
	require.NoError(t, err)
	require.EqualValues(t, 2, report.Rows)
	_, err = s.FindAudit(s.ctx(), operator, control.AuditFilter{}, 0, 10)
	require.ErrorIs(t, err, access.ErrDenied)
	require.ErrorIs(t, s.ExportAudit(s.ctx(), operator, nil), access.ErrDenied)
}

func TestWhoIsConfinedIsNotToldOfOtherTenants(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	_, err := s.IssueToken(s.ctx(), by(operator), access.TokenRequest{Subject: "both", Roles: []access.Role{access.Operator}, Tenants: []string{"acme", "secret"}})
	require.NoError(t, err)
	for _, told := range []struct {
		actor   access.Actor
		tenants []string
	}{{customer("acme"), []string{"acme"}}, {operator, []string{"acme", "secret"}}} {
		found, err := s.Tokens(s.ctx(), told.actor, "acme", "", 10)
		require.NoError(t, err)
		require.Len(t, found, 1)
		require.Equal(t, told.tenants, found[0].Tenants)
	}
}
