package graph_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
)

var (
	everybody = access.Roles()
	// staff are those who are of no tenant.
	staff = []access.Role{access.Viewer, access.Operator, access.Publisher, access.Auditor}
	// own are those who do what a tenant does for itself.
	own = []access.Role{access.TenantAdmin, access.Operator}
)

// questions are one for each query, with the roles that may ask it.
var questions = map[string]struct {
	query string
	roles []access.Role
}{
	"me":          {`{ me { subject roles tenants actions } }`, everybody},
	"policy":      {`{ policy { revision document } }`, staff},
	"policies":    {`{ policies { nodes { revision reason } pageInfo { hasNextPage } } }`, staff},
	"checkPolicy": {`{ checkPolicy(document: "{version: 1, default: a, tiers: {a: {unlimited: true}}}") { warnings { problem } } }`, staff},
	"diffPolicy": {`{ diffPolicy(document: "{version: 1, default: a, tiers: {a: {unlimited: true}}}") {
		against changes { tier tenant what old new } unlisted following warnings { problem } } }`, staff},
	"previewPolicy": {`{ previewPolicy(document: "{version: 1, default: a, tiers: {a: {unlimited: true}}}") {
		against missing halts remark lowers reach secondPerson recorded total { newlyRefused } tenants { share low high } users { share low high }
		rows { tenant tier operations refusedNow refusedThen newlyRefused by { level limit n } } notJudged misfits } }`, staff},
	"proposal":     {`{ proposal(id: 1) { document state } }`, staff},
	"proposals":    {`{ proposals { nodes { id proposer } } }`, staff},
	"tenant":       {`{ tenant(id: "acme") { id effective { tier } record { document } overrides { nodes { limit } } } }`, everybody},
	"tenants":      {`{ tenants { nodes { tenant } } }`, staff},
	"overrides":    {`{ overrides(tenant: "acme") { nodes { capacity } } }`, everybody},
	"fleet":        {`{ fleet { newest total behind revisions { revision instances } nodes { name revision seen refused { cause error } } pageInfo { hasNextPage } } }`, staff},
	"relay":        {`{ relay { leads waiting lagMs refused { kind name error } unmanaged } }`, staff},
	"misfits":      {`{ misfits { policy total nodes { tenant problem } pageInfo { hasNextPage } } }`, staff},
	"modeSwitches": {`{ modeSwitches { nodes { scope mode until } } }`, staff},
	"tokens":       {`{ tokens(tenant: "acme") { nodes { id subject } } }`, []access.Role{access.TenantAdmin, access.Operator, access.Auditor}},
	"usageSeries": {`{ usageSeries(tenant: "acme", by: UNIT) {
		from to since kept collected counts nodes { begin end open known tenant name grade charged givenBack net calls admitted refused wouldRefuse points } pageInfo { hasNextPage } next } }`, everybody},
	"webhooks":         {`{ webhooks(tenant: "acme") { nodes { id url publicKey } pageInfo { hasNextPage } } }`, own},
	"failedDeliveries": {`{ failedDeliveries(tenant: "acme", id: "HOOK") { message type attempts failed reason status } }`, own},
	"audit":            {`{ audit { nodes { action proof { size } } checkpoint } }`, []access.Role{access.Auditor}},
}

// requireForbidden checks that the refusal says who may.
func requireForbidden(t *testing.T, a *answer, roles []access.Role) {
	t.Helper()
	require.Equal(t, "FORBIDDEN", a.code(), a.Body)
	told := []string{}
	for _, role := range a.Errors[0].Extensions["roles"].([]any) {
		told = append(told, role.(string))
	}
	for _, role := range roles {
		require.Contains(t, told, strings.ToUpper(strings.ReplaceAll(string(role), "-", "_")))
	}
}

func TestEachRoleMayAskWhatTheMatrixSays(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	asked := 0
	for _, field := range schema().Query.Fields {
		if strings.HasPrefix(field.Name, "__") {
			continue
		}
		asked++
		q, ok := questions[field.Name]
		require.True(t, ok, "the schema has the query %s, which this test does not ask", field.Name)
		for _, role := range everybody {
			a := s.ask(string(role), s.of(q.query), nil)
			if slices.Contains(q.roles, role) {
				require.Empty(t, a.Errors, "%s as %s: %s", field.Name, role, a.Body)
				require.NotNil(t, a.Data[field.Name], a.Body)
				continue
			}
			requireForbidden(t, a, q.roles)
		}
		if field.Name != "me" {
			require.Equal(t, "FORBIDDEN", s.ask("nobody", s.of(q.query), nil).code(), field.Name)
			a := s.ask("another-admin", s.of(q.query), nil)
			require.Equal(t, "FORBIDDEN", a.code(), a.Body)
			if slices.Contains(q.roles, access.TenantAdmin) {
				require.Equal(t, true, a.Errors[0].Extensions["confined"], a.Body)
			}
		}
	}
	require.Equal(t, len(questions), asked)
}

func TestEachRoleMayChangeWhatTheMatrixSays(t *testing.T) {
	t.Parallel()
	for _, field := range mutations() {
		t.Run(field.Name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			c, before := changes[field.Name], s.entries()
			for _, actor := range append([]access.Role{"nobody", "another-admin"}, everybody...) {
				if slices.Contains(c.roles, actor) {
					allowed := newScene(t)
					a := allowed.call(string(actor), field.Name, nil)
					require.Empty(t, a.Errors, "%s: %s", actor, a.Body)
					continue
				}
				a := s.call(string(actor), field.Name, nil)
				require.Equal(t, "FORBIDDEN", a.code(), "%s: %s", actor, a.Body)
				require.NotEmpty(t, a.Errors[0].Extensions["action"])
			}
			require.Equal(t, before, s.entries(), "what is denied changes nothing")
		})
	}
}

func TestWhoIsNotKnownIsAskedForAToken(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	a := s.ask("stranger", `{ me { subject } }`, nil)
	require.Equal(t, http.StatusUnauthorized, a.Status)
	require.Equal(t, "UNAUTHENTICATED", a.code())
	require.Contains(t, a.Header.Get("WWW-Authenticate"), "Bearer")
	require.Nil(t, a.Data)
}

func TestTheBootstrapTokenIsExchangedOnce(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	who, err := access.NewAuthenticator(access.AuthConfig{Tokens: s.control.TokenStore()})
	require.NoError(t, err)
	t.Cleanup(who.Close)
	s.serve(who)
	secret, err := s.control.Bootstrap(t.Context(), true)
	require.NoError(t, err)
	ask := func(token, query string) *answer {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "/graphql", strings.NewReader(`{"query":`+query+`}`))
		require.NoError(t, err)
		r.RemoteAddr = "192.0.2.1:1234"
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+token)
		return s.send(r)
	}
	const exchange = `"mutation { issueToken(input: {subject: \"ada\", roles: [OPERATOR], reason: \"first\"}) { secret } }"`
	require.Equal(t, "FORBIDDEN", ask(secret, `"{ policy { revision } }"`).code())
	a := ask(secret, exchange)
	require.Empty(t, a.Errors, a.Body)
	require.Equal(t, http.StatusUnauthorized, ask(secret, exchange).Status)
	token := a.Data["issueToken"].(map[string]any)["secret"].(string)
	me := ask(token, `"{ me { roles method } }"`)
	require.Equal(t, map[string]any{"roles": []any{"OPERATOR"}, "method": "token"}, me.Data["me"], me.Body)
}
