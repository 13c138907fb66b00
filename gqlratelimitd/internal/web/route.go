package web

import "net/http"

// route is one thing that can be asked for.
type route struct {
	method, pattern string
	// public says that nobody is asked who they are.
	public bool
	// unbounded says that it takes nothing from any limit: probes come all the time, and cost nothing.
	unbounded bool
	// long says that it may take longer than a request that waits for nothing: it bounds itself.
	long bool
	// body says that it reads a body, and urgent that it ends an incident: see [party].
	body, urgent bool
	handle       func(*call) error
}

// table lists all routes.
func (s *Server) table() []route {
	const (
		policies  = "/v1/ratelimit/policies"
		org       = "/v1/orgs/{org}/ratelimit"
		overrides = org + "/overrides"
	)
	routes := []route{
		{method: http.MethodGet, pattern: "/healthz", public: true, unbounded: true, handle: s.health},
		{method: http.MethodGet, pattern: "/readyz", public: true, unbounded: true, handle: s.readiness},
		{method: http.MethodGet, pattern: "/openapi.yaml", public: true, handle: s.description},

		{method: http.MethodGet, pattern: policies, long: true, handle: s.newestPolicy},
		{method: http.MethodPut, pattern: policies, body: true, handle: s.publish},
		{method: http.MethodPost, pattern: policies + "/check", body: true, handle: s.lint},
		{method: http.MethodPost, pattern: policies + "/diff", body: true, handle: s.diff},
		{method: http.MethodGet, pattern: policies + "/{number}", handle: s.policy},
		{method: http.MethodPost, pattern: policies + "/{number}/revert", urgent: true, handle: s.revert},
		{method: http.MethodGet, pattern: "/v1/ratelimit/revisions", handle: s.revisions},
		{method: http.MethodGet, pattern: "/v1/ratelimit/instances", handle: s.instances},
		{method: http.MethodGet, pattern: "/v1/ratelimit/relay", handle: s.relay},
		{method: http.MethodGet, pattern: "/v1/ratelimit/overrides", handle: s.overrides},

		{method: http.MethodGet, pattern: org + "/policies", handle: s.effective},
		{method: http.MethodGet, pattern: org + "/usage", handle: s.usage},
		{method: http.MethodGet, pattern: overrides, handle: s.overrides},
		{method: http.MethodPut, pattern: overrides, body: true, urgent: true, handle: s.setOverride},
		{method: http.MethodDelete, pattern: overrides, urgent: true, handle: s.clearOverride},

		{method: http.MethodGet, pattern: "/v1/tokens", handle: s.tokens},
		{method: http.MethodPost, pattern: "/v1/tokens", body: true, handle: s.issueToken},
		{method: http.MethodDelete, pattern: "/v1/tokens/{id}", urgent: true, handle: s.revokeToken},

		{method: http.MethodGet, pattern: "/v1/audit/entries", handle: s.auditEntries},
		{method: http.MethodGet, pattern: "/v1/audit/export", long: true, handle: s.auditExport},
	}
	routes = append(routes, s.usageRoutes()...)
	routes = append(append(routes, s.recordRoutes()...), s.modeRoutes()...)
	routes = append(routes, s.webhookRoutes(org)...)
	if s.cfg.Metrics != nil {
		routes = append(routes, route{method: http.MethodGet, pattern: "/metrics", handle: s.metrics})
	}
	return routes
}

// changes says that it may change something.
func (r *route) changes() bool { return r.method != http.MethodGet }
