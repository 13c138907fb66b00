package web

import (
	"net/http"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
)

// misfits lists tenants whose records do not fit the newest policy.
func (s *Server) misfits(c *call) error {
	if err := c.known("after", "limit"); err != nil {
		return err
	}
	n, err := c.page()
	if err != nil {
		return err
	}
	ctx, cancel := c.bounded()
	defer cancel()
	found, err := s.cfg.Control.Misfitting(ctx, c.actor, c.query.Get("after"), n)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, struct {
		Revision uint64    `json:"revision"`
		At       time.Time `json:"at"`
		// Total is how many there are. The first ten thousand are listed.
		Total   int              `json:"total"`
		Unseen  bool             `json:"unseen,omitempty"`
		Tenants []control.Misfit `json:"tenants"`
		Next    string           `json:"next,omitempty"`
	}{found.Policy, found.At, found.Total, found.Unseen, append([]control.Misfit{}, found.Tenants...), found.Next})
}
