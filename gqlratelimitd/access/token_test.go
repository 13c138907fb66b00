package access_test

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"hash/crc32"
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
	token, text, err := tokenKey.NewToken(ada, access.TokenRequest{Subject: "deploy", Roles: []access.Role{access.Viewer}, Tenants: []string{"acme"}}, noon)
	require.NoError(t, err)
	require.Regexp(t, `^grl_[a-z2-7]{13}_[a-z2-7]{59}$`, text)
	require.Contains(t, text, token.ID)
	require.Equal(t, &access.Token{
		ID: token.ID, Hash: sha256.Sum256([]byte(text)), Subject: "deploy", Owner: ada.Person(), Roles: []access.Role{access.Viewer},
		Tenants: []string{"acme"}, Root: token.ID, Apart: true, Issued: noon, Expires: noon.Add(access.DefaultTokenLife),
	}, token)
	_, other, err := tokenKey.NewToken(ada, access.TokenRequest{Subject: "deploy", Roles: []access.Role{access.Viewer}}, noon)
	require.NoError(t, err)
	require.NotEqual(t, text, other)
}

// family issues tokens from one to the next: one in each role, each confined to the tenants.
func (d *door) family(t *testing.T, by access.Actor, tenants []string, roles ...access.Role) (tokens []*access.Token, last access.Actor) {
	t.Helper()
	last = by
	for _, role := range roles {
		token, text := d.tokens.add(t, last, access.TokenRequest{Subject: "x", Roles: []access.Role{role}, Tenants: tenants}, noon)
		bearer, err := d.enter(text)
		require.NoError(t, err)
		require.Equal(t, token.Root, bearer.Root)
		tokens, last = append(tokens, token), bearer
	}
	return tokens, last
}

func TestATokenHasTheRootOfTheOneThatIssuedIt(t *testing.T) {
	t.Parallel()
	d := newDoor(t, access.AuthConfig{})
	programs, inside := d.family(t, administrator(), nil, access.Operator, access.Operator)
	given, _ := d.family(t, inside, []string{"acme"}, access.Operator, access.Viewer, access.Viewer)
	first, root := programs[0].ID, given[0].ID
	require.Equal(t, []string{first, first}, []string{programs[0].Root, programs[1].Root})
	require.Equal(t, []string{root, root, root}, []string{given[0].Root, given[1].Root, given[2].Root}, "what is given away answers for all below it")
}

func TestAViewerGivesNoTokenAway(t *testing.T) {
	t.Parallel()
	d := newDoor(t, access.AuthConfig{})
	ada := administrator()
	programs, viewer := d.family(t, ada, nil, access.Viewer)
	for _, tenants := range [][]string{nil, {"acme"}, {"made-up"}} {
		kids, last := d.family(t, viewer, tenants, access.Viewer, access.Viewer)
		for _, kid := range kids {
			require.False(t, kid.Apart)
			require.Equal(t, ada.Person(), kid.Owner)
			require.Equal(t, programs[0].ID, kid.Root)
		}
		require.Equal(t, ada.Person(), last.Person())
	}
	// A person who is a viewer answers for it as well.
	eve := access.Actor{Subject: "eve", Issuer: "https://login.example.org", Method: access.MethodOIDC, Roles: []access.Role{access.Viewer}}
	_, kid := d.family(t, eve, []string{"acme"}, access.Viewer)
	require.Equal(t, eve.Person(), kid.Person())
}

func TestOnlyTokensThatWereMadeHereAreAskedFor(t *testing.T) {
	t.Parallel()
	d := newDoor(t, access.AuthConfig{})
	token, text := d.tokens.add(t, administrator(), access.TokenRequest{Subject: "x", Roles: []access.Role{access.Viewer}}, noon)
	const before = len(access.TokenPrefix) + 13 + 1 + 52
	// A mark that anybody can compute, and those of other control planes.
	marks := map[string]string{"CRC-32": crcOf(text[:before])}
	for name, key := range map[string]access.TokenKey{"zero": {}, "another key": {1, 2, 4}} {
		_, other := key.NewBootstrapToken(noon)
		marks[name] = other[before:]
		_, err := d.enter(other)
		requireReason(t, access.ReasonMalformed, err, other)
		require.Empty(t, d.Lookup(request("Bearer "+other)))
	}
	for name, mark := range marks {
		_, err := d.enter(text[:before] + mark)
		requireReason(t, access.ReasonMalformed, err)
		require.Empty(t, d.Lookup(request("Bearer "+text[:before]+mark)), name)
	}
	require.Zero(t, d.tokens.asked)
	require.Equal(t, token.ID, d.Lookup(request("Bearer "+text)))
	require.Empty(t, d.Lookup(request()))
	require.Empty(t, d.Lookup(request("Bearer "+text, "Bearer "+text)))
	_, err := d.enter(text)
	require.NoError(t, err)
	require.Equal(t, 1, d.tokens.asked)
}

// crcOf is CRC-32 of a text, in the letters of a token.
func crcOf(text string) string {
	sum := binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(text)))
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum))
}

// TestTheAuditLogTakesNoToken holds the two packages together: what one makes the other recognises.
func TestTheAuditLogTakesNoToken(t *testing.T) {
	t.Parallel()
	_, text := tokenKey.NewBootstrapToken(noon)
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
		_, _, err := tokenKey.NewToken(letters["b"], access.TokenRequest{Subject: subject, Roles: viewer}, noon)
		require.ErrorContains(t, err, "the name of a token", "%q", subject)
	}
	_, _, err := tokenKey.NewToken(letters["b"], access.TokenRequest{Roles: viewer, Tenants: []string{"\xff"}, Life: time.Second}, noon)
	for _, mistake := range []string{"name of a token", "name of a tenant", "holds for a minute to 366 days"} {
		require.ErrorContains(t, err, mistake)
	}
	_, _, err = tokenKey.NewToken(letters["v"], access.TokenRequest{Subject: "x", Roles: []access.Role{access.Operator}}, noon)
	require.ErrorIs(t, err, access.ErrDenied)
}

func TestWhoComesInByTheBootstrapTokenAnswersForThemselves(t *testing.T) {
	t.Parallel()
	token, _, err := tokenKey.NewToken(letters["b"], access.TokenRequest{Subject: "ada", Roles: access.Roles(), Tenants: []string{"acme"}}, noon)
	require.NoError(t, err)
	require.Empty(t, token.Owner)
	require.False(t, token.Bootstrap)
	bootstrap, _ := tokenKey.NewBootstrapToken(noon)
	require.True(t, bootstrap.Bootstrap)
	require.Empty(t, bootstrap.Roles)
	require.Equal(t, noon.Add(access.BootstrapLife), bootstrap.Expires)
}
