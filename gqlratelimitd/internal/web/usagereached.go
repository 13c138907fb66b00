package web

import (
	"net/http"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
)

// reachedRow says that a limit was used up to a share of it in a period.
type reachedRow struct {
	Begin time.Time `json:"begin"`
	End   time.Time `json:"end"`
	Level string    `json:"level"`
	Owner string    `json:"owner,omitempty"`
	Limit string    `json:"limit"`
	// Threshold is the share in percent.
	Threshold int    `json:"threshold"`
	Times     int64  `json:"times"`
	Grade     string `json:"grade"`
}

// reached serves which limits of a tenant were used up to a share of them.
func (s *Server) reached(c *call) error {
	if err := c.known("window", "from", "to", "threshold", "limit", "after"); err != nil {
		return err
	}
	in := control.ReachedInput{Tenant: c.PathValue("org"), Window: control.UsageWindow(c.query.Get("window")), After: c.query.Get("after")}
	var err error
	if in.From, in.To, err = c.between(); err != nil {
		return err
	}
	if in.Threshold, err = c.small("threshold"); err != nil {
		return err
	}
	if in.N, err = c.page(); err != nil {
		return err
	}
	ctx, cancel := c.bounded()
	defer cancel()
	found, err := s.cfg.Control.Reached(ctx, c.actor, in)
	if err != nil {
		return err
	}
	out := struct {
		Tenant    string       `json:"tenant"`
		From      time.Time    `json:"from"`
		To        time.Time    `json:"to"`
		Since     time.Time    `json:"since,omitzero"`
		Kept      time.Time    `json:"kept"`
		Collected time.Time    `json:"collected,omitzero"`
		Rows      []reachedRow `json:"rows"`
		Next      string       `json:"next,omitempty"`
	}{in.Tenant, found.From, found.To, found.Since, found.Kept, found.Collected, []reachedRow{}, found.Next}
	for i := range found.Rows {
		r := &found.Rows[i]
		out.Rows = append(out.Rows, reachedRow{r.Begin, r.End, r.Level, r.Owner, r.Limit, r.Threshold, r.Times, r.Grade.String()})
	}
	return c.write(http.StatusOK, out)
}

// nearRow is a limit that was nearly used up on many days.
type nearRow struct {
	Tenant string `json:"tenant"`
	Owner  string `json:"owner,omitempty"`
	Limit  string `json:"limit"`
	// Days is on how many days, Last when the last of them began, Times how often at least, and Most the largest share in percent.
	Days  int       `json:"days"`
	Last  time.Time `json:"last"`
	Times int64     `json:"times"`
	Most  int       `json:"most"`
}

// near serves whose limits were nearly used up on many days.
func (s *Server) near(c *call) error {
	if err := c.known("days", "atLeast", "threshold", "level", "limit", "after"); err != nil {
		return err
	}
	in := control.NearInput{Level: c.query.Get("level"), After: c.query.Get("after")}
	var err error
	for name, into := range map[string]*int{"days": &in.Days, "atLeast": &in.AtLeast, "threshold": &in.Threshold} {
		if *into, err = c.small(name); err != nil {
			return err
		}
	}
	if in.N, err = c.page(); err != nil {
		return err
	}
	ctx, cancel := c.bounded()
	defer cancel()
	found, err := s.cfg.Control.NearLimits(ctx, c.actor, in)
	if err != nil {
		return err
	}
	out := struct {
		From      time.Time `json:"from"`
		To        time.Time `json:"to"`
		Since     time.Time `json:"since,omitzero"`
		Collected time.Time `json:"collected,omitzero"`
		AtLeast   int       `json:"atLeast"`
		Threshold int       `json:"threshold"`
		Rows      []nearRow `json:"rows"`
		Next      string    `json:"next,omitempty"`
	}{found.From, found.To, found.Since, found.Collected, found.AtLeast, found.Threshold, []nearRow{}, found.Next}
	for i := range found.Rows {
		r := &found.Rows[i]
		out.Rows = append(out.Rows, nearRow{r.Tenant, r.Owner, r.Limit, r.Days, r.Last, r.Times, r.Most})
	}
	return c.write(http.StatusOK, out)
}

// small is a parameter that counts few things, 0 if it is not there. What is far too much is still too much.
func (c *call) small(name string) (int, error) {
	n, err := c.number(name)
	return int(min(n, 1<<30)), err
}
