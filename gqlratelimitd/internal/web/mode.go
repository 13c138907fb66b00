package web

import (
	"net/http"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
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
	// Operation is the operation rule of one that is about a tenant and an operation, and was set without the control plane.
	Operation string    `json:"operation,omitempty"`
	Mode      string    `json:"mode"`
	Until     time.Time `json:"until"`
	Ended     bool      `json:"ended,omitempty"`
	// Holds says whether it holds now: neither ended nor over.
	Holds bool `json:"holds"`
	// Revision is the write that has set it, as If-Match expects it while the switch holds.
	Revision uint64    `json:"revision"`
	By       string    `json:"by"`
	Reason   string    `json:"reason"`
	At       time.Time `json:"at,omitzero"`
}

// modeRoutes are those of mode switches.
func (s *Server) modeRoutes() []route {
	const modes = "/v1/ratelimit/modes"
	return []route{
		{method: http.MethodGet, pattern: modes, handle: s.modes},
		{method: http.MethodPut, pattern: modes, body: true, urgent: true, handle: s.switchMode},
		{method: http.MethodDelete, pattern: modes, urgent: true, handle: s.endSwitch},
	}
}

func (s *Server) switchOf(m *control.ModeSwitch) switchOut {
	return switchOut{
		Scope: m.Scope, Name: m.Name, Operation: m.Operation, Mode: m.Mode.String(), Until: m.Until, Ended: m.Ended, Holds: m.Holds(s.cfg.Now()),
		Revision: m.Revision, By: m.By, Reason: m.Reason, At: m.At,
	}
}

// modes lists the mode switches that are in force, by what they are about.
func (s *Server) modes(c *call) error {
	if err := c.known(); err != nil {
		return err
	}
	found, err := s.cfg.Control.ModeSwitches(c.Context(), c.actor)
	if err != nil {
		return err
	}
	var out []switchOut
	for i := range found {
		out = append(out, s.switchOf(&found[i]))
	}
	return list(c, "modes", out, nil)
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
	answer, err := s.cfg.Control.SwitchMode(c.Context(), r, control.SwitchInput{
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
	answer, err := s.cfg.Control.EndModeSwitch(c.Context(), r, control.EndSwitchInput{
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
