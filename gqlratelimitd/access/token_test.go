package access_test

import (
	"crypto/sha256"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
)

// administrator is a person who may everything.
func administrator() access.Actor {
	return access.Actor{Subject: "ada", Issuer: "https://login.example.org", Method: access.MethodOIDC, Roles: []access.Role{access.Admin}}
}

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func TestATokenIsRecognisedAndStoredAsAHash(t *testing.T) {
	t.Parallel()
	ada := administrator()
	token, text, err := access.NewToken(ada, access.TokenRequest{Subject: "deploy", Roles: []access.Role{access.Viewer}, Tenants: []string{"acme"}}, noon)
	require.NoError(t, err)
	require.Regexp(t, `^grl_[a-z2-7]{13}_[a-z2-7]{59}$`, text)
	require.Contains(t, text, token.ID)
	require.Equal(t, &access.Token{
		ID: token.ID, Hash: sha256.Sum256([]byte(text)), Subject: "deploy", Owner: ada.Person(), Roles: []access.Role{access.Viewer},
		Tenants: []string{"acme"}, Root: token.ID, Apart: true, Issued: noon, Expires: noon.Add(access.DefaultTokenLife),
	}, token)
	_, other, err := access.NewToken(ada, access.TokenRequest{Subject: "deploy", Roles: []access.Role{access.Viewer}}, noon)
	require.NoError(t, err)
	require.NotEqual(t, text, other)
}

func TestATokenHasTheRootOfTheProgramThatIssuedIt(t *testing.T) {
	t.Parallel()
	d := newDoor(t, access.AuthConfig{})
	viewer := access.TokenRequest{Subject: "x", Roles: []access.Role{access.Viewer}}
	confined := viewer
	confined.Tenants = []string{"acme"}
	issue := func(by access.Actor, request access.TokenRequest) (*access.Token, access.Actor) {
		token, text := d.tokens.add(t, by, request, noon)
		bearer, err := d.enter(text)
		require.NoError(t, err)
		require.Equal(t, token.Root, bearer.Root)
		return token, bearer
	}
	program, inside := issue(administrator(), viewer)
	child, deeper := issue(inside, viewer)
	grandchild, _ := issue(deeper, viewer)
	given, customer := issue(deeper, confined)
	theirs, own := issue(customer, confined)
	below, _ := issue(own, confined)
	require.Equal(t, []string{program.ID, program.ID, program.ID}, []string{program.Root, child.Root, grandchild.Root})
	require.Equal(t, []string{given.ID, theirs.ID, theirs.ID}, []string{given.Root, theirs.Root, below.Root}, "who answers for itself is a person")
}

// TestTheAuditLogTakesNoToken holds the two packages together: what one makes the other recognises.
func TestTheAuditLogTakesNoToken(t *testing.T) {
	t.Parallel()
	_, text := access.NewBootstrapToken(noon)
	e := audit.Entry{Time: noon, Actor: audit.Actor{Subject: "ada"}, Action: "token.issue", Target: "deploy", Reason: "it is " + text + ", do not tell"}
	err := e.Check()
	require.EqualError(t, err, "audit: reason looks like a secret")
	e.Reason = ""
	e.After = []byte(`{"token":"` + text + `"}`)
	require.EqualError(t, e.Check(), "audit: after looks like a secret")
}

// TestEveryActionAndActorFitsTheAuditLog holds that the bounds of the two packages fit: a change by somebody with long names could
// not be audited, and so not be made.
func TestEveryActionAndActorFitsTheAuditLog(t *testing.T) {
	t.Parallel()
	long := access.Actor{
		Subject: strings.Repeat("s", access.MaxTenant), Issuer: strings.Repeat("i", 512), Method: access.MethodOIDC,
		Owner: strings.Repeat("o", 512+1+access.MaxTenant), Agent: strings.Repeat("a", access.MaxAgent),
	}
	for _, action := range access.Actions() {
		e := audit.Entry{Time: noon, Actor: long.Audit(), Action: string(action), Target: "x", Tenant: strings.Repeat("t", access.MaxTenant)}
		require.NoError(t, e.Check())
	}
}

func TestATokenRequestSaysAllItsMistakes(t *testing.T) {
	t.Parallel()
	viewer := []access.Role{access.Viewer}
	for _, subject := range []string{"", "a b", "a\n", "a\u202eb", "\xff", strings.Repeat("x", access.MaxSubject+1)} {
		_, _, err := access.NewToken(letters["b"], access.TokenRequest{Subject: subject, Roles: viewer}, noon)
		require.ErrorContains(t, err, "the name of a token", "%q", subject)
	}
	_, _, err := access.NewToken(letters["b"], access.TokenRequest{Roles: viewer, Tenants: []string{"\xff"}, Life: time.Second}, noon)
	for _, mistake := range []string{"name of a token", "name of a tenant", "holds for a minute to 366 days"} {
		require.ErrorContains(t, err, mistake)
	}
	_, _, err = access.NewToken(letters["v"], access.TokenRequest{Subject: "x", Roles: []access.Role{access.Operator}}, noon)
	require.ErrorIs(t, err, access.ErrDenied)
}

func TestWhoComesInByTheBootstrapTokenAnswersForThemselves(t *testing.T) {
	t.Parallel()
	token, _, err := access.NewToken(letters["b"], access.TokenRequest{Subject: "ada", Roles: access.Roles(), Tenants: []string{"acme"}}, noon)
	require.NoError(t, err)
	require.Empty(t, token.Owner)
	require.False(t, token.Bootstrap)
	bootstrap, _ := access.NewBootstrapToken(noon)
	require.True(t, bootstrap.Bootstrap)
	require.Empty(t, bootstrap.Roles)
	require.Equal(t, noon.Add(access.BootstrapLife), bootstrap.Expires)
}
