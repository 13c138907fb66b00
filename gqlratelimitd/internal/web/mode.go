package web

import (
	"net/http"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
)

// switchIn is the strictest mode for a time. The query says of what.
type switchIn struct {
	Mode  string    `json:"mode"`
	Until time.Time `json:"until"`
}

// switchOut is a mode switch in an answer.
type switchOut struct {
	Scope control.Scope `json:"scope"`
	Name  string        `json:"name,omitempty"`
	// Operation is the operation rule of a switch in Redis that is about a tenant and an operation.
	Operation string `json:"operation,omitempty"`
	// Mode and Until are missing once the switch was ended by hand.
	Mode  string    `json:"mode,omitempty"`
	Until time.Time `json:"until,omitzero"`
	Ended bool      `json:"ended,omitempty"`
	// Holds says whether it holds now: neither ended nor over.
	Holds bool `json:"holds"`
	// Revision is the change that has written it, as If-Match expects it while the switch holds. An unmanaged switch has none.
	Revision uint64 `json:"revision,omitempty"`
	// Found is when an unmanaged switch was seen first, and Replaced says that such a switch holds in the place of this one.
	Found    time.Time `json:"found,omitzero"`
	Replaced bool      `json:"replaced,omitempty"`
	By       string    `json:"by"`
	Reason   string    `json:"reason"`
	At       time.Time `json:"at,omitzero"`
}

// modeRoutes are those of mode switches.
func (s *Server) modeRoutes() []route {
	const modes = "/v1/ratelimit/modes"
	type actions = []access.Action
	return []route{
		{method: http.MethodGet, pattern: modes, does: actions{access.ReadPolicy}, handle: s.modes},
		{method: http.MethodPut, pattern: modes, does: actions{access.SwitchMode}, handle: s.switchMode},
		{method: http.MethodDelete, pattern: modes, does: actions{access.EndModeSwitch}, handle: s.endSwitch},
	}
}

func (s *Server) switchOf(m *control.ModeSwitch) switchOut {
	out := switchOut{
		Scope: m.Scope, Name: m.Name, Operation: m.Operation, Until: m.Until, Ended: m.Ended, Holds: m.Holds(s.cfg.Now()), Revision: m.Revision,
		Found: m.Found, Replaced: m.Replaced, By: m.By, Reason: m.Reason, At: m.At,
	}
	if !m.Ended {
		out.Mode = m.Mode.String()
	}
	return out
}

func (s *Server) switchesOf(switches []control.ModeSwitch) []switchOut {
	out := []switchOut{}
	for i := range switches {
		out = append(out, s.switchOf(&switches[i]))
	}
	return out
}

// modes lists mode switches in the order of their revisions, and the unmanaged ones that hold.
func (s *Server) modes(c *call) error {
	if err := c.known("after", "limit"); err != nil {
		return err
	}
	after, err := c.number("after")
	if err != nil {
		return err
	}
	n, err := c.page()
	if err != nil {
		return err
	}
	ctx, cancel := c.bounded()
	defer cancel()
	found, err := s.cfg.Control.ModeSwitches(ctx, c.actor, after, n)
	if err != nil {
		return err
	}
	unmanaged, err := s.cfg.Control.UnmanagedSwitches(ctx, c.actor)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, struct {
		Modes     []switchOut `json:"modes"`
		Unmanaged []switchOut `json:"unmanaged"`
	}{s.switchesOf(found), s.switchesOf(unmanaged)})
}

// switchMode eases modes for a time.
func (s *Server) switchMode(c *call) error {
	r, expected, err := c.replacing("scope", "name")
	if err != nil {
		return err
	}
	var in switchIn
	if err := c.read(&in); err != nil {
		return err
	}
	// Enforce is the zero value, which control refuses with what to do instead.
	var mode bucket.Mode
	for _, known := range [...]bucket.Mode{bucket.Warn, bucket.Shadow, bucket.Off} {
		if in.Mode == known.String() {
			mode = known
		}
	}
	ctx, cancel := c.bounded()
	defer cancel()
	answer, err := s.cfg.Control.SwitchMode(ctx, r, control.SwitchInput{
		Scope: control.Scope(c.query.Get("scope")), Name: c.query.Get("name"), Mode: mode, Until: in.Until, Expected: expected,
	})
	return s.writeSwitch(c, answer, err)
}

// endSwitch ends a switch before its time.
func (s *Server) endSwitch(c *call) error {
	r, expected, err := c.replacing("scope", "name")
	if err != nil {
		return err
	}
	ctx, cancel := c.bounded()
	defer cancel()
	answer, err := s.cfg.Control.EndModeSwitch(ctx, r, control.EndSwitchInput{
		Scope: control.Scope(c.query.Get("scope")), Name: c.query.Get("name"), Expected: expected,
	})
	return s.writeSwitch(c, answer, err)
}

func (s *Server) writeSwitch(c *call, answer *control.ModeSwitch, err error) error {
	if err != nil {
		return err
	}
	c.w.Header().Set("ETag", tag(answer.Revision))
	return c.write(http.StatusOK, s.switchOf(answer))
}
