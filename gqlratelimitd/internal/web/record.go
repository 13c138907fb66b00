package web

import (
	"net/http"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// recordRoutes are those of what is known of tenants beside the policy.
func (s *Server) recordRoutes() []route {
	const list, one = "/v1/tenants", "/v1/tenants/{org}"
	return []route{
		{method: http.MethodGet, pattern: list, handle: s.records},
		{method: http.MethodGet, pattern: one, handle: s.record},
		{method: http.MethodPut, pattern: one, body: true, handle: s.putRecord},
		{method: http.MethodDelete, pattern: one, handle: s.removeRecord},
		{method: http.MethodPut, pattern: one + "/allocations", body: true, handle: s.allocate},
	}
}

// records lists the records of tenants, by name.
func (s *Server) records(c *call) error {
	n, err := c.paged("after")
	if err != nil {
		return err
	}
	found, err := s.cfg.Control.Tenants(c.Context(), c.actor, c.query.Get("after"), n)
	return list(c, "tenants", found, err)
}

// record serves the record of a tenant.
func (s *Server) record(c *call) error {
	if err := c.known(); err != nil {
		return err
	}
	found, err := s.cfg.Control.Tenant(c.Context(), c.actor, c.PathValue("org"))
	return c.writeRecord(found, err)
}

// replacing reads what comes with a change of a record: the request, and the revision that it replaces.
func (c *call) replacing(parameters ...string) (r control.Request, expected uint64, err error) {
	if err = c.known(append(parameters, "reason", "ticket")...); err != nil {
		return r, 0, err
	}
	if expected, err = c.expected(); err != nil {
		return r, 0, err
	}
	r, err = c.request()
	return r, expected, err
}

// putRecord writes the record of a tenant. Its allocations stay.
func (s *Server) putRecord(c *call) error {
	r, expected, err := c.replacing("oversubscribe")
	if err != nil {
		return err
	}
	oversubscribe, err := c.flag("oversubscribe")
	if err != nil {
		return err
	}
	document, err := c.body(maxJSON)
	if err != nil {
		return err
	}
	answer, err := s.cfg.Control.PutTenant(c.Context(), r, control.TenantInput{
		Tenant: c.PathValue("org"), Document: document, Oversubscribe: oversubscribe != nil && *oversubscribe, Expected: expected,
	})
	return c.writeRecord(answer, err)
}

// removeRecord removes the record of a tenant with its allocations.
func (s *Server) removeRecord(c *call) error {
	r, expected, err := c.replacing()
	if err != nil {
		return err
	}
	answer, err := s.cfg.Control.RemoveTenant(c.Context(), r, control.RemoveTenantInput{Tenant: c.PathValue("org"), Expected: expected})
	return c.writeRecord(answer, err)
}

// allocate divides limits of a tenant among its teams and users. The rest of its record stays.
func (s *Server) allocate(c *call) error {
	r, expected, err := c.replacing()
	if err != nil {
		return err
	}
	var in tiers.Allocations
	if err := c.read(&in); err != nil {
		return err
	}
	answer, err := s.cfg.Control.Allocate(c.Context(), r, control.AllocateInput{Tenant: c.PathValue("org"), Allocations: &in, Expected: expected})
	return c.writeRecord(answer, err)
}

func (c *call) writeRecord(answer *control.Tenant, err error) error {
	if err != nil {
		return err
	}
	c.w.Header().Set("ETag", tag(answer.Revision))
	return c.write(http.StatusOK, answer)
}
