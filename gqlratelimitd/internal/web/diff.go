package web

import (
	"net/http"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/internal/policydiff"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

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
	d, err := s.cfg.Control.Diff(c.Context(), c.actor, control.DiffInput{Document: document, Against: against})
	if err != nil {
		return err
	}
	d.Changes = append([]policydiff.Change{}, d.Changes...)
	return c.write(http.StatusOK, d)
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
