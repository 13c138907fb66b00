package web_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
)

// scopes are what tokens of the tests are confined to. The first one is nothing.
var scopes = [][]string{nil, {"acme"}, {"globex"}, {"acme", "globex"}}

// TestATokenEndsNoOtherOfItsIssuerWithoutTheRight has one issuer give each role in each scope two tokens, of which one tries to end the other.
func TestATokenEndsNoOtherOfItsIssuerWithoutTheRight(t *testing.T) {
	t.Parallel()
	s := newScene(t, plenty).start()
	rights := rightsOf(t)[access.RevokeToken]
	end := func(id, token string) answer { return s.ask(http.MethodDelete, "/v1/tokens/"+id, token, because(), "") }
	for _, role := range access.Roles() {
		for _, scope := range scopes {
			_, actor := s.issue(s.admin, "actor", scope, role)
			inside := func(tenant string) bool { return slices.Contains(scope, tenant) }
			for _, victimRole := range access.Roles() {
				for _, victimScope := range scopes {
					outside := slices.ContainsFunc(victimScope, func(tenant string) bool { return !inside(tenant) })
					// An operator of all tenants has each right of an administrator of some.
					more := slices.Index(access.Roles(), victimRole) > slices.Index(access.Roles(), role) && (victimScope == nil || scope != nil)
					may := rights[role] != "" && !more && (scope == nil || len(victimScope) > 0 && !outside)
					id, victim := s.issue(s.admin, "victim", victimScope, victimRole)
					name := fmt.Sprint(role, scope, " ends ", victimRole, victimScope)
					status := http.StatusForbidden
					if may {
						status = http.StatusOK
					}
					require.Equal(t, status, end(id, actor).StatusCode, name)
					require.Equal(t, may, s.ended(victim), name)
					if !may {
						s.want(http.StatusOK, end(id, s.admin))
					}
				}
			}
		}
	}
}

// ended says whether a token lets nobody in any more.
func (s *scene) ended(token string) bool {
	s.Helper()
	return s.ask(http.MethodGet, "/v1/ratelimit/revisions", token, nil, "").StatusCode == http.StatusUnauthorized
}

func TestACustomerIsToldNoIDOfATokenOfOthers(t *testing.T) {
	t.Parallel()
	s := newScene(t, plenty).start().publish()
	id, oncall := s.issue(s.admin, "oncall", nil, access.Operator)
	_, customer := s.issue(s.admin, "customer", []string{"acme"}, access.Admin)
	until := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	s.want(http.StatusOK, s.ask(http.MethodPut, onTenant, oncall, first, `{"capacity": 5000, "expires": "`+until+`"}`))
	s.want(http.StatusOK, s.ask(http.MethodPut, record, oncall, first, `{"tier": "free"}`))
	s.want(http.StatusOK, s.ask(http.MethodPut, modes+"?scope=tenant&name=acme", oncall, first, `{"mode": "shadow", "until": "`+until+`"}`))
	s.want(http.StatusCreated, s.ask(http.MethodPost, hooks, oncall, because(), hookHere))
	asks := []struct {
		method, path string
		h            header
		body         string
	}{
		{http.MethodGet, overrides, nil, ""},
		{http.MethodGet, "/v1/orgs/acme/ratelimit/policies", nil, ""},
		{http.MethodGet, record, nil, ""},
		{http.MethodGet, hooks, nil, ""},
		{http.MethodGet, "/v1/tokens?tenant=acme", nil, ""},
		{http.MethodPut, onTenant, first, `{"capacity": 5000, "expires": "` + until + `"}`},
		{http.MethodPut, record, first, `{"tier": "free"}`},
		{http.MethodPut, modes + "?scope=tenant&name=acme", first, `{"mode": "shadow", "until": "` + until + `"}`},
		{http.MethodDelete, modes + "?scope=tenant&name=acme", on(theSwitch), ""},
	}
	for _, ask := range asks {
		a := s.ask(ask.method, ask.path, customer, ask.h, ask.body)
		require.NotContains(t, a.body, id, ask.path)
		require.NotContains(t, a.body, "admin#", ask.path)
		if !strings.Contains(ask.path, "/tokens") {
			require.Contains(t, a.body, `"by":"oncall"`, "%s %s: %s", ask.method, ask.path, a.body)
		}
	}
	require.Contains(t, s.ask(http.MethodGet, overrides, s.admin, nil, "").body, `"by":"oncall#`+id)
}

// given is the ID of a token of acme that an operator has issued.
func given(s *scene) string {
	s.Helper()
	id, _ := s.issue(s.admin, "given", []string{"acme"}, access.Viewer)
	return id
}

// TestNoRouteTellsACustomerTheIDOfATokenOfOthers asks on each route as an admin of a tenant, of what an operator has made.
func TestNoRouteTellsACustomerTheIDOfATokenOfOthers(t *testing.T) {
	t.Parallel()
	all := goods()
	revoke := all["DELETE /v1/tokens/{id}"][access.RevokeToken]
	revoke.before = given
	all["DELETE /v1/tokens/{id}"][access.RevokeToken] = revoke
	for route := range described(t) {
		for action, g := range all[route] {
			t.Run(route+" "+string(action), func(t *testing.T) {
				t.Parallel()
				s := newScene(t, plenty).start().publish()
				_, customer := s.issue(s.admin, "customer", []string{"acme"}, access.Admin)
				if strings.HasPrefix(route, "GET ") && g.before == nil {
					set(raise)(s)
					recorded(s)
					switched(s)
					hooked(s)
					given(s)
				}
				a := g.asks(s, route, access.Admin, []string{"acme"}, customer)
				require.Contains(t, []int{g.status, http.StatusForbidden}, a.StatusCode, a.body)
				for _, others := range []string{s.admin, s.bootstrap} {
					id, _, _ := strings.Cut(strings.TrimPrefix(others, access.TokenPrefix), "_")
					require.NotContains(t, a.body, id)
				}
			})
		}
	}
}

func TestTheAuditLogHasAllOfATokenThatACustomerEnded(t *testing.T) {
	t.Parallel()
	s := newScene(t, plenty).start()
	_, customer := s.issue(s.admin, "customer", []string{"acme"}, access.Admin)
	a := s.want(http.StatusOK, s.ask(http.MethodDelete, "/v1/tokens/"+given(s), customer, because(), ""))
	require.NotContains(t, a.body, "admin#")
	logged := s.ask(http.MethodGet, "/v1/audit/entries?action=token.revoke", s.admin, nil, "").body
	require.Equal(t, 2, strings.Count(logged, `"parent":"`), "before and after: %s", logged)
}
