package web_test

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/web"
)

// described are the statuses of the document, by method and path.
func described(t *testing.T) map[string][]int {
	t.Helper()
	var read struct {
		Paths map[string]map[string]yaml.Node
	}
	require.NoError(t, yaml.Unmarshal(web.OpenAPI(), &read))
	all := map[string][]int{}
	for path, operations := range read.Paths {
		for method, node := range operations {
			if method == "parameters" {
				continue
			}
			var operation struct {
				Summary   string
				Responses map[string]yaml.Node
			}
			require.NoError(t, node.Decode(&operation), path)
			require.NotEmpty(t, operation.Summary, path)
			var statuses []int
			for status := range operation.Responses {
				n, err := strconv.Atoi(status)
				require.NoError(t, err)
				statuses = append(statuses, n)
			}
			slices.Sort(statuses)
			all[strings.ToUpper(method)+" "+path] = statuses
		}
	}
	return all
}

func TestTheDocumentHasTheRoutesOfTheRouterAndNoOthers(t *testing.T) {
	t.Parallel()
	s := newScene(t, plenty)
	var routes []string
	for _, r := range s.web.Routes() {
		routes = append(routes, r.Method+" "+r.Pattern)
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(described(t))), routes)
}

// attempt is a request to a route, and what it is answered.
type attempt struct {
	status             int
	route, path, token string
	h                  header
	body               string
}

func TestEachStatusOfTheDocumentIsAnsweredAndNoOther(t *testing.T) {
	t.Parallel()
	s := newScene(t, plenty).start()
	seen := map[string]map[int]bool{}
	try := func(a attempt) {
		t.Helper()
		method, pattern, _ := strings.Cut(a.route, " ")
		path := a.path
		if path == "" || path[0] == '?' {
			path = pattern + path
		}
		if a.token == "" {
			a.token = s.admin
		}
		s.want(a.status, s.ask(method, path, a.token, a.h, a.body))
		if seen[a.route] == nil {
			seen[a.route] = map[int]bool{}
		}
		seen[a.route][a.status] = true
	}
	for _, a := range slices.Concat(s.attempts(), recordAttempts(), modeAttempts()) {
		try(a)
	}
	// They register an endpoint, and count from there.
	for _, a := range s.webhookAttempts() {
		try(a)
	}
	// What all routes have in common. A viewer of one tenant may do nothing to another one.
	_, stranger := s.issue(s.admin, "stranger", []string{"initech"}, access.Viewer)
	busy := newScene(t, web.LimitConfig{Address: 1})
	busy.ask(http.MethodGet, "/openapi.yaml", "", nil, "")
	id := s.foreign("acme")
	for _, r := range s.web.Routes() {
		route, path := r.Method+" "+r.Pattern, strings.NewReplacer("{org}", "acme", "{number}", "1", "{id}", id).Replace(r.Pattern)
		if !r.Public {
			try(attempt{status: 401, route: route, path: path, token: "grl_nobody"})
			denied := attempt{status: 403, route: route, path: path, token: stranger, h: on(`"1"`)}
			switch {
			case path == overrides:
				denied.path, denied.body = path+map[bool]string{true: "", false: "?level=tenant&limit=minute"}[r.Method == http.MethodGet], raise
			case path == modes:
				denied.path, denied.body = path+map[bool]string{true: "", false: "?scope=all"}[r.Method == http.MethodGet], eased()
			case route == "PUT /v1/tenants/{org}/allocations":
				denied.body = allocated
			case route == "POST /v1/tokens":
				denied.body = `{"subject": "root", "roles": ["operator"]}`
			}
			if r.Method == http.MethodGet {
				denied.h = nil
			}
			try(denied)
		}
		if path != "/healthz" && path != "/readyz" {
			a := busy.ask(r.Method, path, "", nil, "")
			busy.problem(429, a)
			require.NotEmpty(t, a.Header.Get("Retry-After"))
			seen[route][429] = true
		}
	}
	// What is not there without a Redis.
	alone := newSceneOf(t, plenty, false).start()
	for _, path := range []string{"/v1/ratelimit/instances", "/v1/ratelimit/relay"} {
		alone.problem(404, alone.ask(http.MethodGet, path, alone.admin, nil, ""))
		seen["GET "+path][404] = true
	}
	for _, a := range []attempt{
		{route: "GET " + modes, path: modes},
		{route: "PUT " + modes, path: ofAll, h: first, body: eased()},
		{route: "DELETE " + modes, path: ofAll, h: on(`"1"`)},
	} {
		method, _, _ := strings.Cut(a.route, " ")
		alone.problem(503, alone.ask(method, a.path, alone.admin, a.h, a.body))
		seen[a.route][503] = true
	}
	away := newScene(t, plenty).start().publish()
	require.NoError(t, away.redis.Close())
	const effective = "/v1/orgs/acme/ratelimit/policies"
	away.problem(503, away.ask(http.MethodGet, effective, away.admin, nil, ""))
	seen["GET /v1/orgs/{org}/ratelimit/policies"][503] = true
	s.budgets.away.Store(true)
	try(attempt{status: 503, route: "GET /v1/orgs/{org}/ratelimit/usage", path: "/v1/orgs/acme/ratelimit/usage"})
	down := newScene(t, plenty)
	require.NoError(t, down.db.Close())
	require.JSONEq(t, `{"status": "not ready", "database": "failing"}`, down.want(503, down.ask(http.MethodGet, "/readyz", "", nil, "")).body)
	seen["GET /readyz"][503] = true
	got := map[string][]int{}
	for route, statuses := range seen {
		got[route] = slices.Sorted(maps.Keys(statuses))
	}
	require.Equal(t, described(t), got)
}

// attempts are requests for the statuses that belong to a route, in an order in which each can be answered.
func (s *scene) attempts() []attempt {
	const (
		get, put, check = "GET " + policies, "PUT " + policies, "POST " + policies + "/check"
		diff            = "POST " + policies + "/diff"
		one, revert     = "GET " + policies + "/{number}", "POST " + policies + "/{number}/revert"
		org             = "/v1/orgs/{org}/ratelimit"
		effective       = "GET " + org + "/policies"
		acme            = "/v1/orgs/acme/ratelimit/policies"
		left, usage     = "GET " + org + "/usage", "/v1/orgs/acme/ratelimit/usage"
		list, set, end  = "GET " + org + "/overrides", "PUT " + org + "/overrides", "DELETE " + org + "/overrides"
		other           = "?nothing=1"
	)
	tooLarge, hugeJSON := strings.Repeat("#", 17<<20), `"`+strings.Repeat("x", web.MaxJSON)+`"`
	id, _ := s.issue(s.admin, "revoked", nil, access.Viewer)
	return []attempt{
		{status: 200, route: "GET /healthz"},
		{status: 400, route: "GET /healthz", path: "?a=1&a=2"},
		{status: 200, route: "GET /readyz"},
		{status: 400, route: "GET /readyz", path: "?a=%zz"},
		{status: 200, route: "GET /openapi.yaml"},
		{status: 400, route: "GET /openapi.yaml", path: other},
		{status: 200, route: "GET /metrics"},
		{status: 400, route: "GET /metrics", path: "?a=1&a=2"},

		{status: 404, route: get},
		{status: 404, route: effective, path: acme},
		{status: 404, route: diff, body: document},
		{status: 404, route: left, path: usage},
		{status: 428, route: put, h: because(), body: document},
		{status: 400, route: put, h: on("x"), body: document},
		{status: 413, route: put, h: first, body: tooLarge},
		{status: 422, route: put, h: first, body: "version: 2"},
		{status: 200, route: put, h: first, body: document},
		{status: 412, route: put, h: first, body: document},
		{status: 200, route: get},
		{status: 304, route: get, h: header{"If-None-Match": `"1"`}},
		{status: 400, route: get, path: "?form=other"},
		{status: 200, route: check, body: document},
		{status: 400, route: check, path: other, body: document},
		{status: 413, route: check, body: tooLarge},
		{status: 422, route: check, body: "version: 2"},
		{status: 200, route: diff, body: document},
		{status: 400, route: diff, path: other, body: document},
		{status: 413, route: diff, body: tooLarge},
		{status: 422, route: diff, body: "version: 2"},
		{status: 200, route: one, path: policies + "/1"},
		{status: 400, route: one, path: policies + "/1" + other},
		{status: 404, route: one, path: policies + "/7"},
		{status: 200, route: revert, path: policies + "/1/revert", h: on(`"1"`)},
		{status: 400, route: revert, path: policies + "/1/revert", h: on("x")},
		{status: 404, route: revert, path: policies + "/7/revert", h: on(`"2"`)},
		{status: 412, route: revert, path: policies + "/1/revert", h: on(`"1"`)},
		{status: 422, route: revert, path: policies + "/1/revert", h: header{"If-Match": `"2"`}},
		{status: 428, route: revert, path: policies + "/1/revert", h: because()},
		{status: 200, route: "GET /v1/ratelimit/revisions"},
		{status: 400, route: "GET /v1/ratelimit/revisions", path: "?limit=1001"},

		{status: 200, route: "GET /v1/ratelimit/instances"},
		{status: 400, route: "GET /v1/ratelimit/instances", path: "?state=lost"},
		{status: 200, route: "GET /v1/ratelimit/relay"},
		{status: 400, route: "GET /v1/ratelimit/relay", path: other},
		{status: 200, route: "GET /v1/ratelimit/overrides"},
		{status: 400, route: "GET /v1/ratelimit/overrides", path: "?ended=soon"},
		{status: 422, route: "GET /v1/ratelimit/overrides", path: "?after=x"},

		{status: 200, route: effective, path: acme},
		{status: 400, route: effective, path: acme + other},
		{status: 422, route: effective, path: acme + "?user=%00"},
		{status: 200, route: left, path: usage},
		{status: 400, route: left, path: usage + other},
		{status: 422, route: left, path: usage + "?user=%00"},
		{status: 200, route: left + "/series", path: usage + "/series?by=unit"},
		{status: 400, route: left + "/series", path: usage + "/series?from=soon"},
		{status: 422, route: left + "/series", path: usage + "/series?window=week"},
		{status: 200, route: "GET /v1/ratelimit/usage/series", path: "/v1/ratelimit/usage/series?window=month&by=unit&format=csv"},
		{status: 400, route: "GET /v1/ratelimit/usage/series", path: "/v1/ratelimit/usage/series?window=day&format=xls"},
		{status: 422, route: "GET /v1/ratelimit/usage/series"},
		{status: 200, route: list, path: overrides},
		{status: 400, route: list, path: overrides + "?ended=x"},
		{status: 422, route: list, path: overrides + "?after=x"},
		{status: 200, route: set, path: onTenant, h: first, body: raise},
		{status: 400, route: set, path: overrides, h: first, body: raise},
		{status: 412, route: set, path: onTenant, h: first, body: raise},
		{status: 413, route: set, path: onTenant, h: on(`"1"`), body: hugeJSON},
		{status: 422, route: set, path: onTenant, h: on(`"1"`), body: `{"capacity": 5000}`},
		{status: 428, route: set, path: onTenant, h: because(), body: raise},
		{status: 400, route: end, path: overrides, h: on(`"1"`)},
		{status: 412, route: end, path: onTenant, h: on(`"7"`)},
		{status: 422, route: end, path: onTenant, h: header{"If-Match": `"1"`}},
		{status: 428, route: end, path: onTenant, h: because()},
		{status: 200, route: end, path: onTenant, h: on(`"1"`)},
		{status: 404, route: end, path: onTenant, h: on(`"2"`)},

		{status: 200, route: "GET /v1/tokens"},
		{status: 400, route: "GET /v1/tokens", path: other},
		{status: 201, route: "POST /v1/tokens", h: because(), body: `{"subject": "s", "roles": ["viewer"]}`},
		{status: 400, route: "POST /v1/tokens", h: because(), body: `{"subjekt": "s"}`},
		{status: 413, route: "POST /v1/tokens", h: because(), body: hugeJSON},
		{status: 422, route: "POST /v1/tokens", h: because(), body: `{"subject": "a b", "roles": ["viewer"]}`},
		{status: 422, route: "DELETE /v1/tokens/{id}", path: "/v1/tokens/" + id},
		{status: 400, route: "DELETE /v1/tokens/{id}", path: "/v1/tokens/" + id + other, h: because()},
		{status: 200, route: "DELETE /v1/tokens/{id}", path: "/v1/tokens/" + id, h: because()},
		{status: 404, route: "DELETE /v1/tokens/{id}", path: "/v1/tokens/" + id, h: because()},

		{status: 200, route: "GET /v1/audit/entries"},
		{status: 400, route: "GET /v1/audit/entries", path: other},
		{status: 200, route: "GET /v1/audit/export"},
		{status: 400, route: "GET /v1/audit/export", path: other},
	}
}
