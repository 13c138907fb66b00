package web

import (
	"net/http"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
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
	ctx, cancel := c.bounded()
	defer cancel()
	filter := control.AuditFilter{
		Subject: c.query.Get("subject"), Action: c.query.Get("action"), Target: c.query.Get("target"), Tenant: c.query.Get("tenant"),
	}
	found, err := s.cfg.Control.FindAudit(ctx, c.actor, filter, int64(below), n)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, struct {
		Entries []audit.Entry `json:"entries"`
	}{append([]audit.Entry{}, found...)})
}

// auditExport writes the audit log as `gqlratelimitd audit verify` reads it, up to a checkpoint that is made for it.
func (s *Server) auditExport(c *call) error {
	if err := access.Authorize(c.actor, access.ExportAudit, ""); err != nil {
		return err
	}
	if err := c.known(); err != nil {
		return err
	}
	signing, cancel := c.bounded()
	defer cancel()
	if _, err := s.cfg.Signer.Sign(signing, s.cfg.Now()); err != nil {
		return err
	}
	w := &exportWriter{c: c, deadline: http.NewResponseController(c.w)}
	if err := s.cfg.Control.ExportAudit(c.Context(), c.actor, w); err != nil {
		if w.begun {
			// Half an export must not look like a whole one.
			panic(http.ErrAbortHandler)
		}
		return err
	}
	return nil
}

// exportPatience is how long a client may take for each piece of an export, of some kilobytes.
const exportPatience = 30 * time.Second

// exportWriter answers with an export, however large, while its client reads it.
type exportWriter struct {
	c        *call
	deadline *http.ResponseController
	begun    bool
}

// Write implements io.Writer.
func (w *exportWriter) Write(p []byte) (int, error) {
	if !w.begun {
		w.begun = true
		header := w.c.w.Header()
		header.Set("Content-Type", "application/jsonl")
		header.Set("Content-Disposition", `attachment; filename="audit.jsonl"`)
		w.c.status = http.StatusOK
		w.c.w.WriteHeader(http.StatusOK)
	}
	// What cannot be given more time has a deadline of its own.
	_ = w.deadline.SetWriteDeadline(time.Now().Add(exportPatience))
	return w.c.w.Write(p)
}
