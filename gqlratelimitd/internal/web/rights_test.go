package web_test

import (
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

// good is a request to a route that does something for who may do it, and its status then.
type good struct {
	path   string
	h      header
	body   string
	status int
	// before prepares what it needs, and returns what stands for {…} in the path and for the ETag.
	before func(*scene) string
}

// placed puts what was prepared into a path.
func (g *good) placed(path, prepared string) string {
	if strings.Contains(path, "{id}") {
		return strings.Replace(path, "{id}", prepared, 1)
	}
	return path + prepared
}

func set(body string) func(*scene) string {
	return func(s *scene) string {
		s.want(http.StatusOK, s.ask(http.MethodPut, onTenant, s.admin, first, body))
		return ""
	}
}

const (
	block  = overrides + "?level=tenant"
	blocks = `{"blocked": true}`
)

// blocked blocks the tenant by an override, and blockedByRecord by its record.
func blocked(s *scene) string {
	s.want(http.StatusOK, s.ask(http.MethodPut, block, s.admin, first, blocks))
	return ""
}

func blockedByRecord(s *scene) string {
	s.want(http.StatusOK, s.ask(http.MethodPut, record, s.admin, first, blocks))
	return ""
}

// goods are such requests for each action of each route that asks who it is.
func goods() map[string]map[access.Action]good {
	all := otherGoods()
	maps.Copy(all, webhookGoods())
	return all
}

// otherGoods are all but those about endpoints.
func otherGoods() map[string]map[access.Action]good {
	return map[string]map[access.Action]good{
		"GET " + policies:                           {access.ReadPolicy: {status: 200}},
		"PUT " + policies:                           {access.PublishPolicy: {status: 200, h: on(`"1"`), body: document}},
		"POST " + policies + "/check":               {access.CheckPolicy: {status: 200, body: document}},
		"POST " + policies + "/diff":                {access.ReadPolicy: {status: 200, body: document}},
		"GET " + policies + "/{number}":             {access.ReadPolicy: {status: 200, path: policies + "/1"}},
		"POST " + policies + "/{number}/revert":     {access.RevertPolicy: {status: 200, path: policies + "/1/revert", h: on(`"1"`)}},
		"GET /v1/ratelimit/revisions":               {access.ReadPolicy: {status: 200}},
		"GET /v1/ratelimit/instances":               {access.ReadFleet: {status: 200}},
		"GET /v1/ratelimit/relay":                   {access.ReadFleet: {status: 200}},
		"GET /v1/ratelimit/overrides":               {access.ReadOverride: {status: 200}},
		"GET /v1/orgs/{org}/ratelimit/policies":     {access.ReadTenant: {status: 200, path: "/v1/orgs/acme/ratelimit/policies"}},
		"GET /v1/orgs/{org}/ratelimit/usage":        {access.ReadUsage: {status: 200, path: "/v1/orgs/acme/ratelimit/usage"}},
		"GET /v1/orgs/{org}/ratelimit/usage/series": {access.ReadUsage: {status: 200, path: "/v1/orgs/acme/ratelimit/usage/series"}},
		"GET /v1/ratelimit/usage/series":            {access.ReadUsage: {status: 200, path: "/v1/ratelimit/usage/series?window=day"}},
		"GET /v1/orgs/{org}/ratelimit/overrides":    {access.ReadOverride: {status: 200, path: overrides}},
		"PUT /v1/orgs/{org}/ratelimit/overrides": {
			access.SetOverride:   {status: 200, path: onTenant, h: first, body: raise},
			access.BlockTenant:   {status: 200, path: block, h: first, body: blocks},
			access.UnblockTenant: {status: 200, path: block, h: on(`"1"`), body: `{"unlimited": true, "expires": "` + soonOver + `"}`, before: blocked},
		},
		"DELETE /v1/orgs/{org}/ratelimit/overrides": {
			access.DeleteOverride: {status: 200, path: onTenant, h: on(`"1"`), before: set(raise)},
			access.UnblockTenant:  {status: 200, path: block, h: on(`"1"`), before: blocked},
		},
		"GET /v1/tenants":       {access.ReadTenant: {status: 200}},
		"GET /v1/tenants/{org}": {access.ReadTenant: {status: 200, path: record, before: recorded}},
		"PUT /v1/tenants/{org}": {
			access.AssignTenant:  {status: 200, path: record, h: first, body: assigned},
			access.BlockTenant:   {status: 200, path: record, h: first, body: blocks},
			access.UnblockTenant: {status: 200, path: record, h: on(`"1"`), body: assigned, before: blockedByRecord},
		},
		"DELETE /v1/tenants/{org}": {
			access.AssignTenant:  {status: 200, path: record, h: on(`"1"`), before: recorded},
			access.UnblockTenant: {status: 200, path: record, h: on(`"1"`), before: blockedByRecord},
		},
		"PUT /v1/tenants/{org}/allocations": {access.SetAllocations: {status: 200, path: allocations, h: first, body: allocated}},
		"GET " + modes:                      {access.ReadPolicy: {status: 200}},
		"PUT " + modes:                      {access.SwitchMode: {status: 200, path: ofAll, h: first, body: eased()}},
		"DELETE " + modes:                   {access.EndModeSwitch: {status: 200, path: ofAll, h: on(theSwitch), before: switched}},
		"GET /v1/tokens":                    {access.ReadToken: {status: 200}},
		"POST /v1/tokens":                   {access.IssueToken: {status: 201, h: because()}},
		"DELETE /v1/tokens/{id}": {access.RevokeToken: {status: 200, path: "/v1/tokens/", h: because(), before: func(s *scene) string {
			return s.foreign("acme")
		}}},
		"GET /v1/audit/entries": {access.ReadAudit: {status: 200}},
		"GET /v1/audit/export":  {access.ExportAudit: {status: 200}},
		"GET /metrics":          {access.ReadMetrics: {status: 200}},
	}
}

// foreign is the ID of a token that somebody else has issued, who comes in by another way than the tokens of the tests.
func (s *scene) foreign(tenant string) string {
	s.Helper()
	actor := access.Actor{Subject: "ada", Issuer: "https://login.example.org", Method: access.MethodOIDC, Roles: []access.Role{access.Viewer}}
	token, _, err := s.tokens.Key().NewToken(actor, access.TokenRequest{Subject: "theirs", Roles: actor.Roles, Tenants: []string{tenant}}, time.Now())
	require.NoError(s, err)
	require.NoError(s, s.db.Change(s.Context(), func(tx *store.Tx) error {
		return tx.AddToken(token)
	}))
	return token.ID
}

// asks makes the request of an action, of a token with a role.
func (g *good) asks(s *scene, route string, role access.Role, tenants []string, token string) answer {
	path, body := g.path, g.body
	method, pattern, _ := strings.Cut(route, " ")
	if path == "" {
		path = pattern
	}
	if g.before != nil {
		path = g.placed(path, g.before(s))
	}
	if route == "POST /v1/tokens" {
		// Everybody gives what they have.
		body = `{"subject": "program", "roles": ["` + string(role) + `"]`
		if len(tenants) > 0 {
			body += `, "tenants": ["` + strings.Join(tenants, `", "`) + `"]`
		}
		body += `}`
	}
	return s.ask(method, path, token, g.h, body)
}

// rightsOf are those of the table of docs/guide/control-plane-access.md: of each action whose tenants each role may do it to, all, yes for those that
// it is confined to, or nothing. Nothing of the code of this module has a part in it.
func rightsOf(t *testing.T) map[access.Action]map[access.Role]string {
	t.Helper()
	page, err := os.ReadFile("../../../docs/guide/control-plane-access.md")
	require.NoError(t, err)
	rights := map[access.Action]map[access.Role]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z.]+)` \\|([a-z ]*)\\|([a-z ]*)\\|([a-z ]*)\\|").FindAllStringSubmatch(string(page), -1) {
		cells := map[access.Role]string{}
		for i, role := range access.Roles() {
			cells[role] = strings.TrimSpace(row[i+2])
		}
		rights[access.Action(row[1])] = cells
	}
	require.Greater(t, len(rights), 30)
	return rights
}

func TestEachRoleMayWhatThePageSaysOnEachRoute(t *testing.T) {
	t.Parallel()
	all, rights, public := goods(), rightsOf(t), map[string]bool{"GET /healthz": true, "GET /readyz": true, "GET /openapi.yaml": true}
	for route := range described(t) {
		require.NotEqual(t, public[route], len(all[route]) > 0, "%s has no expectation: say in goods which action it is", route)
		for action, g := range all[route] {
			t.Run(route+" "+string(action), func(t *testing.T) {
				t.Parallel()
				require.Contains(t, rights, action)
				eachRole(t, route, action, &g, rights[action])
			})
		}
	}
}

// eachRole asks in each role, over all tenants, confined to the one that it is about, and to another one.
func eachRole(t *testing.T, route string, action access.Action, g *good, rights map[access.Role]string) {
	t.Helper()
	for role, right := range rights {
		for _, tenants := range [][]string{nil, {"acme"}, {"globex"}} {
			s := newScene(t, plenty).start().publish()
			_, token := s.issue(s.admin, "somebody", tenants, role)
			ofTenant := strings.Contains(route, "{org}") || action == access.RevokeToken
			inside := ofTenant && len(tenants) > 0 && tenants[0] == "acme" || action == access.IssueToken
			may := right != "" && tenants == nil || right == "yes" && inside
			a := g.asks(s, route, role, tenants, token)
			if may {
				s.want(g.status, a)
				continue
			}
			p := s.problem(http.StatusForbidden, a)
			require.False(t, slices.Contains(p.Roles, role) && tenants == nil, "%s", a.body)
		}
	}
}

func TestTheBootstrapTokenIssuesOneTokenAndNothingElse(t *testing.T) {
	t.Parallel()
	s := newScene(t, plenty)
	all := goods()
	for _, r := range s.web.Routes() {
		if r.Public || r.Pattern == "/v1/tokens" && r.Method == http.MethodPost || r.Method == http.MethodDelete {
			continue
		}
		for _, g := range all[r.Method+" "+r.Pattern] {
			g.before = nil
			s.problem(http.StatusForbidden, g.asks(s, r.Method+" "+r.Pattern, access.Viewer, nil, s.bootstrap))
		}
	}
	s.start()
	s.problem(http.StatusUnauthorized, s.ask(http.MethodPost, "/v1/tokens", s.bootstrap, because(), `{"subject": "again", "roles": ["operator"]}`))
}

func TestEveryChangeLeavesAnEntryOfTheAuditLogAndNoReadDoes(t *testing.T) {
	t.Parallel()
	all := goods()
	for _, r := range newScene(t, plenty).web.Routes() {
		for action, g := range all[r.Method+" "+r.Pattern] {
			t.Run(r.Method+" "+r.Pattern+" "+string(action), func(t *testing.T) {
				t.Parallel()
				s := newScene(t, plenty).start().publish()
				if g.before != nil {
					suffix := g.before(s)
					if g.path != "" {
						g.path = g.placed(g.path, suffix)
					}
					g.before = nil
				}
				before := s.entries()
				a := s.want(g.status, g.asks(s, r.Method+" "+r.Pattern, access.Viewer, nil, s.admin))
				after := s.entries()
				if r.Method == http.MethodGet || slices.Contains([]access.Action{access.CheckPolicy, access.ReadPolicy}, action) {
					require.Equal(t, before, after)
					return
				}
				require.Len(t, after, len(before)+1)
				e := after[0]
				require.Equal(t, string(action), e.Action)
				require.Equal(t, "why", e.Reason)
				require.Equal(t, a.Header.Get("Request-Id"), e.Request)
				require.True(t, strings.HasPrefix(e.Actor.Subject, "admin#"), e.Actor.Subject)
				require.Equal(t, "127.0.0.1", e.Actor.Address)
			})
		}
	}
}
