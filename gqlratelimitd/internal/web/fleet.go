package web

import (
	"net/http"
	"strconv"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/relay"
)

// instances lists what instances say of themselves, by name.
func (s *Server) instances(c *call) error {
	in, err := c.fleetInput()
	if err != nil {
		return err
	}
	found, err := s.cfg.Control.Fleet(c.Context(), c.actor, in)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, found)
}

// fleetInput reads which instances are asked for.
func (c *call) fleetInput() (in control.FleetInput, err error) {
	if err = c.known("revision", "state", "refusing", "after", "limit"); err != nil {
		return in, err
	}
	in.After = c.query.Get("after")
	if in.N, err = c.page(); err != nil {
		return in, err
	}
	if c.query.Has("revision") {
		revision, err := c.number("revision")
		if err != nil {
			return in, err
		}
		in.Revision = &revision
	}
	switch in.State = c.query.Get("state"); in.State {
	case "", control.Current, control.Stale, control.Never:
	default:
		return in, badRequest("the parameter state is current, stale or never")
	}
	in.Refusing, err = c.flag("refusing")
	return in, err
}

// flag is a parameter that is true or false, nil if it is not there.
func (c *call) flag(name string) (*bool, error) {
	text := c.query.Get(name)
	if text == "" {
		return nil, nil
	}
	is, err := strconv.ParseBool(text)
	if err != nil {
		return nil, badRequest("the parameter %s is true or false", name)
	}
	return &is, nil
}

// relay says how far changes have come on their way to Redis.
func (s *Server) relay(c *call) error {
	if err := c.known(); err != nil {
		return err
	}
	found, err := s.cfg.Control.Relaying(c.Context(), c.actor)
	if err != nil {
		return err
	}
	found.Refused = append([]relay.Refusal{}, found.Refused...)
	return c.write(http.StatusOK, struct {
		*relay.Status

		Lag float64 `json:"lag"`
	}{found, found.Lag.Seconds()})
}
