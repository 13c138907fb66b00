package web

import (
	"net/http"
	"strconv"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/internal/policydiff"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// previewed is what a document would newly refuse.
type previewed struct {
	Against uint64 `json:"against"`
	Staged  bool   `json:"staged,omitempty"`
	// Missing says why nothing was judged, and what to do.
	Missing string `json:"missing,omitempty"`
	// Halts says that more than 5 % of tenants or users are newly refused, and Remark what is to be said about the shares.
	Halts    bool             `json:"halts"`
	Remark   string           `json:"remark,omitempty"`
	Report   any              `json:"report"`
	Misfits  *control.Misfits `json:"misfits,omitempty"`
	Warnings []mistake        `json:"warnings,omitempty"`
}

// preview says who would newly be refused by the body.
func (s *Server) preview(c *call) error {
	document, err := c.document(access.PreviewPolicy, "enforced", "rows")
	if err != nil {
		return err
	}
	in := control.PreviewInput{Document: document}
	if text := c.query.Get("enforced"); text != "" {
		if in.Enforced, err = strconv.ParseBool(text); err != nil {
			return badRequest("the parameter enforced is true or false")
		}
	}
	rows, err := c.number("rows")
	if err != nil {
		return err
	}
	in.Rows = int(min(rows, control.MaxPreviewRows+1))
	ctx, cancel := c.bounded()
	defer cancel()
	p, err := s.cfg.Control.Preview(ctx, c.actor, in)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, previewed{
		Against: p.Against, Staged: p.Staged, Missing: p.Missing, Halts: p.Report.Halts(), Remark: p.Report.Remark(),
		Report: &p.Report, Misfits: p.Misfits, Warnings: warningsOf(p.Warnings),
	})
}

// diff says what the body changes.
func (s *Server) diff(c *call) error {
	document, err := c.document(access.ReadPolicy, "against")
	if err != nil {
		return err
	}
	against, err := c.number("against")
	if err != nil {
		return err
	}
	ctx, cancel := c.bounded()
	defer cancel()
	d, err := s.cfg.Control.Diff(ctx, c.actor, control.DiffInput{Document: document, Against: against})
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, struct {
		Against   uint64              `json:"against"`
		Staged    bool                `json:"staged,omitempty"`
		Changes   []policydiff.Change `json:"changes"`
		Unlisted  int                 `json:"unlisted,omitempty"`
		Following int                 `json:"following,omitempty"`
		Warnings  []mistake           `json:"warnings,omitempty"`
	}{d.Against, d.Staged, append([]policydiff.Change{}, d.Changes...), d.Unlisted, d.Following, warningsOf(d.Warnings)})
}

// document reads a policy document from the body, of somebody who may do this, with these parameters.
func (c *call) document(a access.Action, parameters ...string) ([]byte, error) {
	// Who may not is told so before megabytes are read.
	if err := access.Authorize(c.actor, a, ""); err != nil {
		return nil, err
	}
	if err := c.known(parameters...); err != nil {
		return nil, err
	}
	return c.body(tiers.DefaultMaxDocument)
}
