package web

import (
	"net/http"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
)

// route is one thing that can be asked for.
type route struct {
	method, pattern string
	// public says that nobody is asked who they are.
	public bool
	// unbounded says that it takes nothing from any limit: probes come all the time, and cost nothing.
	unbounded bool
	// long says that it may take longer than a request that waits for nothing: it bounds itself.
	long bool
	// does are the actions that it may take to serve it, for the test that holds rights to the matrix. Public routes have none.
	does   []access.Action
	handle func(*call) error
}

// table lists all routes.
func (s *Server) table() []route {
	const (
		policies  = "/v1/ratelimit/policies"
		org       = "/v1/orgs/{org}/ratelimit"
		overrides = org + "/overrides"
	)
	type actions = []access.Action
	routes := []route{
		{method: http.MethodGet, pattern: "/healthz", public: true, unbounded: true, handle: s.health},
		{method: http.MethodGet, pattern: "/readyz", public: true, unbounded: true, handle: s.readiness},
		{method: http.MethodGet, pattern: "/openapi.yaml", public: true, handle: s.description},

		{method: http.MethodGet, pattern: policies, long: true, does: actions{access.ReadPolicy}, handle: s.newestPolicy},
		{method: http.MethodPut, pattern: policies, does: actions{access.PublishPolicy}, handle: s.publish},
		{method: http.MethodPost, pattern: policies + "/check", does: actions{access.CheckPolicy}, handle: s.lint},
		{method: http.MethodPost, pattern: policies + "/diff", does: actions{access.ReadPolicy}, handle: s.diff},
		{method: http.MethodGet, pattern: policies + "/{number}", does: actions{access.ReadPolicy}, handle: s.policy},
		{method: http.MethodPost, pattern: policies + "/{number}/revert", does: actions{access.RevertPolicy}, handle: s.revert},
		{method: http.MethodGet, pattern: "/v1/ratelimit/revisions", does: actions{access.ReadPolicy}, handle: s.revisions},
		{method: http.MethodGet, pattern: "/v1/ratelimit/instances", does: actions{access.ReadFleet}, handle: s.instances},
		{method: http.MethodGet, pattern: "/v1/ratelimit/relay", does: actions{access.ReadFleet}, handle: s.relay},
		{method: http.MethodGet, pattern: "/v1/ratelimit/overrides", does: actions{access.ReadOverride}, handle: s.overrides},

		{method: http.MethodGet, pattern: org + "/policies", does: actions{access.ReadTenant}, handle: s.effective},
		{method: http.MethodGet, pattern: org + "/usage", does: actions{access.ReadUsage}, handle: s.usage},
		{method: http.MethodGet, pattern: overrides, does: actions{access.ReadOverride}, handle: s.overrides},
		{method: http.MethodPut, pattern: overrides, does: actions{access.SetOverride, access.BlockTenant}, handle: s.setOverride},
		{method: http.MethodDelete, pattern: overrides, does: actions{access.DeleteOverride, access.UnblockTenant}, handle: s.clearOverride},

		{method: http.MethodGet, pattern: "/v1/tokens", does: actions{access.ReadToken}, handle: s.tokens},
		{method: http.MethodPost, pattern: "/v1/tokens", does: actions{access.IssueToken}, handle: s.issueToken},
		{method: http.MethodDelete, pattern: "/v1/tokens/{id}", does: actions{access.RevokeToken}, handle: s.revokeToken},

		{method: http.MethodGet, pattern: "/v1/audit/entries", does: actions{access.ReadAudit}, handle: s.auditEntries},
		{method: http.MethodGet, pattern: "/v1/audit/export", long: true, does: actions{access.ExportAudit}, handle: s.auditExport},
	}
	routes = append(routes, s.usageRoutes()...)
	routes = append(append(routes, s.recordRoutes()...), s.modeRoutes()...)
	routes = append(routes, s.webhookRoutes(org)...)
	if s.cfg.Metrics != nil {
		routes = append(routes, route{method: http.MethodGet, pattern: "/metrics", does: actions{access.ReadMetrics}, handle: s.metrics})
	}
	return routes
}
