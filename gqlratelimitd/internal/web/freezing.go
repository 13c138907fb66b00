package web

import (
	"net/http"
	"time"
)

// freezing says which billing periods are frozen by themselves.
type freezing struct {
	// Every is off, daily or monthly, and DelaySeconds how long after its end a period is frozen.
	Every        string `json:"every"`
	DelaySeconds int64  `json:"delaySeconds"`
	// Frozen is the day before which everything is frozen. Before the beginning it and all that follows are missing.
	Frozen string `json:"frozen,omitempty"`
	// From and To are the period that is next, and Due is when.
	From string    `json:"from,omitempty"`
	To   string    `json:"to,omitempty"`
	Due  time.Time `json:"due,omitzero"`
	// Reason and Problem are why it is not frozen although it is due.
	Reason  string `json:"reason,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// freezing serves how far freezing has come.
func (s *Server) freezing(c *call) error {
	if err := c.known(); err != nil {
		return err
	}
	ctx, cancel := c.bounded()
	defer cancel()
	status, err := s.cfg.Control.FreezeStatus(ctx, c.actor)
	if err != nil {
		return err
	}
	out := freezing{Every: string(status.Schedule.Every), DelaySeconds: int64(status.Schedule.Delay / time.Second), Due: status.Due}
	if !status.Frozen.IsZero() {
		out.Frozen, out.From, out.To = status.Frozen.Format(time.DateOnly), status.Next.From.Format(time.DateOnly), status.Next.To.Format(time.DateOnly)
	}
	if status.Wait != nil {
		out.Reason, out.Problem = string(status.Wait.Reason), status.Wait.Problem
	}
	return c.write(http.StatusOK, out)
}
