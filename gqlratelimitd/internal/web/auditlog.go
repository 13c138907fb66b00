package web

import (
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
)

// auditEntries lists entries of the audit log, the newest first.
func (s *Server) auditEntries(c *call) error {
	if err := c.known("subject", "action", "target", "tenant", "below", "limit"); err != nil {
		return err
	}
	below, err := c.number("below")
	if err != nil {
		return err
	}
	n, err := c.page()
	if err != nil {
		return err
	}
	filter := control.AuditFilter{
		Subject: c.query.Get("subject"), Action: c.query.Get("action"), Target: c.query.Get("target"), Tenant: c.query.Get("tenant"),
	}
	found, err := s.cfg.Control.FindAudit(c.Context(), c.actor, filter, int64(below), n)
	return list(c, "entries", found, err)
}

// auditExport writes the audit log as `gqlratelimitd audit verify` reads it.
func (s *Server) auditExport(c *call) error {
	if err := access.Authorize(c.actor, access.ExportAudit, ""); err != nil {
		return err
	}
	if err := c.known(); err != nil {
		return err
	}
	w := newExport(c, "application/jsonl", "audit.jsonl")
	return w.end(s.cfg.Control.ExportAudit(c.Context(), c.actor, w))
}
