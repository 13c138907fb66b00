package control_test

import (
	"fmt"
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

	list, err := s.Tokens(s.ctx(), administrator, control.TokenFilter{N: 10})
	require.NoError(t, err)
	used := issued.Token
	used.Used = s.now.Truncate(access.UsedEvery)
	require.Equal(t, []access.Token{used}, list)
	for tenant, want := range map[string]int{"acme": 1, "other": 0} {
		list, err = s.Tokens(s.ctx(), customer(tenant), control.TokenFilter{Tenant: tenant, N: 10})
		require.NoError(t, err)
		require.Len(t, list, want)
	}
	_, err = s.Tokens(s.ctx(), customer("acme"), control.TokenFilter{N: 10})
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
		found, err := s.Tokens(s.ctx(), told.actor, control.TokenFilter{Tenant: "acme", N: 10})
		require.NoError(t, err)
		require.Len(t, found, 1)
		require.Equal(t, told.tenants, found[0].Tenants)
	}
}

// issued is a token that an actor issues, and who comes in with it.
func (s *scene) issued(issuer access.Actor, request access.TokenRequest) (*control.IssuedToken, access.Actor) {
	s.Helper()
	token, err := s.IssueToken(s.ctx(), by(issuer), request)
	require.NoError(s, err)
	bearer, err := s.come(token.Secret)
	require.NoError(s, err)
	return token, bearer
}

func TestATokenEndsWithItsParent(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	short, life := viewerToken(), viewerToken()
	short.Life, life.Life = time.Minute, access.MaxTokenLife
	parent, bearer := s.issued(operator, short)
	child, kid := s.issued(bearer, life)
	grandchild, _ := s.issued(kid, viewerToken())
	for _, token := range []*control.IssuedToken{child, grandchild} {
		require.Equal(t, s.now.Add(time.Minute), token.Expires, "not a year")
	}
	require.Equal(t, []string{"", parent.ID, child.ID}, []string{parent.Parent, child.Parent, grandchild.Parent})
	other, _ := s.issued(operator, viewerToken())

	// A viewer lists what was issued with its own token, and nothing else.
	list, err := s.Tokens(s.ctx(), bearer, control.TokenFilter{Parent: parent.ID, N: 10})
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, child.ID, list[0].ID)
	for _, f := range []control.TokenFilter{{N: 10}, {Parent: child.ID, N: 10}} {
		_, err = s.Tokens(s.ctx(), bearer, f)
		require.ErrorIs(t, err, access.ErrDenied)
	}
	list, err = s.Tokens(s.ctx(), operator, control.TokenFilter{Parent: child.ID, N: 10})
	require.NoError(t, err)
	require.Len(t, list, 1)

	ended, err := s.RevokeToken(s.ctx(), by(operator), control.RevokeTokenInput{ID: parent.ID})
	require.NoError(t, err)
	require.EqualValues(t, 2, ended.Children)
	for _, token := range []*control.IssuedToken{parent, child, grandchild} {
		_, err = s.come(token.Secret)
		require.ErrorIs(t, err, access.ErrUnauthenticated)
	}
	_, err = s.come(other.Secret)
	require.NoError(t, err)
	before := s.dump()
	// They came in just before their token ended.
	for _, gone := range []access.Actor{bearer, kid} {
		_, err = s.IssueToken(s.ctx(), by(gone), viewerToken())
		require.ErrorIs(t, err, access.ErrUnauthenticated)
	}
	require.Equal(t, before, s.dump())
}

func TestWhoIssuesHasAHundredTokensThatHold(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	short := viewerToken()
	short.Life = time.Minute
	first, program := s.issued(operator, viewerToken())
	_, customer := s.issued(operator, viewerToken("acme"))
	issuers := []access.Actor{program}
	for i := range access.MaxTokens {
		// What is issued with a token counts for the one that it comes from.
		_, bearer := s.issued(issuers[i/2], short)
		issuers = append(issuers, bearer)
	}
	full := func(same ...access.Actor) {
		before := s.dump()
		for _, actor := range same {
			_, err := s.IssueToken(s.ctx(), by(actor), short)
			require.ErrorIs(t, err, control.ErrTooManyTokens)
			requireInvalid(t, err, "token", "100 tokens hold that were issued with this token, or with those that come from it, and no more may: revoke one")
		}
		require.Equal(t, before, s.dump())
	}
	full(issuers...)
	for range access.MaxTokens - 2 {
		_, err := s.IssueToken(s.ctx(), by(operator), short)
		require.NoError(t, err, "a program takes no place of its person")
	}
	full(operator, program)
	// A customer has as many, and none of its issuer's.
	for range access.MaxTokens {
		_, err := s.IssueToken(s.ctx(), by(customer), viewerToken("acme"))
		require.NoError(t, err)
	}
	_, err := s.IssueToken(s.ctx(), by(customer), viewerToken("acme"))
	require.ErrorIs(t, err, control.ErrTooManyTokens)
	_, err = s.IssueToken(s.ctx(), by(administrator), short)
	require.NoError(t, err, "somebody else")

	_, err = s.RevokeToken(s.ctx(), by(operator), control.RevokeTokenInput{ID: first.ID})
	require.NoError(t, err)
	_, err = s.IssueToken(s.ctx(), by(operator), short)
	require.NoError(t, err, "one has ended")
	full(operator)
	// Those that have ended by their time do not count either.
	s.now = s.now.Add(time.Minute)
	_, _ = s.issued(operator, short)
}

// fill issues tokens by an actor until no more may hold, and returns how many it has issued.
func (s *scene) fill(issuer access.Actor, request access.TokenRequest) (n int) {
	s.Helper()
	for {
		_, err := s.IssueToken(s.ctx(), by(issuer), request)
		if err != nil {
			require.ErrorIs(s, err, control.ErrTooManyTokens)
			return n
		}
		n++
	}
}

func TestWhatAViewerIssuesCountsForOneToken(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	_, viewer := s.issued(operator, viewerToken())
	kids := make(map[string]access.Actor)
	for i := range 30 {
		tenant := fmt.Sprintf("made-up-%d", i)
		token, kid := s.issued(viewer, viewerToken(tenant))
		require.False(t, token.Apart)
		kids[tenant] = kid
	}
	issued := 0
	for tenant, kid := range kids {
		issued += s.fill(kid, viewerToken(tenant))
	}
	require.Equal(t, access.MaxTokens-30, issued, "30 programs of it had 3000")
	require.Zero(t, s.fill(viewer, viewerToken()))
	require.Zero(t, s.fill(viewer, viewerToken("made-up-30")))
}

func TestWhoGivesTokensAwayHasAHundred(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	_, program := s.issued(operator, access.TokenRequest{Subject: "portal", Roles: []access.Role{access.Operator}})
	given, customer := s.issued(program, viewerToken("acme"))
	require.True(t, given.Apart)
	_, child := s.issued(customer, viewerToken("acme"))
	require.Equal(t, access.MaxTokens-1, s.fill(child, viewerToken("acme")), "all below a customer is the customer's")
	require.Zero(t, s.fill(customer, viewerToken("acme")))
	require.Equal(t, access.MaxTokens-1, s.fill(program, viewerToken("globex")))
	require.Zero(t, s.fill(program, viewerToken()))
	_, err := s.IssueToken(s.ctx(), by(operator), viewerToken())
	require.NoError(t, err)
}

func TestACustomerIsToldNothingOfTheViewerBehindAToken(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	program, viewer := s.issued(operator, viewerToken())
	kid, confined := s.issued(viewer, viewerToken("acme"))
	below, err := s.IssueToken(s.ctx(), by(confined), viewerToken("acme"))
	require.NoError(t, err)
	require.Equal(t, []string{"", kid.ID, ""}, []string{below.Owner, below.Parent, below.Root}, "of a token that it has just issued")
	own, err := s.Tokens(s.ctx(), confined, control.TokenFilter{Parent: kid.ID, N: 10})
	require.NoError(t, err)
	require.Equal(t, []access.Token{below.Token}, own)
	all, err := s.Tokens(s.ctx(), customer("acme"), control.TokenFilter{Tenant: "acme", N: 10})
	require.NoError(t, err)
	require.Len(t, all, 2)
	for _, token := range all {
		require.Empty(t, token.Owner+token.Parent+token.Root)
	}
	known, err := s.Tokens(s.ctx(), operator, control.TokenFilter{Parent: kid.ID, N: 10})
	require.NoError(t, err)
	require.Equal(t, []string{operator.Person(), kid.ID, program.ID}, []string{known[0].Owner, known[0].Parent, known[0].Root})
}
