package web

import (
	"net/http"
	"strconv"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/relay"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
)

// fleet is what instances say of themselves.
type fleet struct {
	*control.Fleet

	Instances []instance `json:"instances"`
	// Next is the parameter after of the next page. It is empty at the end.
	Next string `json:"next,omitempty"`
}

// instance is what one says of itself.
type instance struct {
	Name     string           `json:"name"`
	Seen     time.Time        `json:"seen"`
	State    policy.State     `json:"state"`
	Revision uint64           `json:"revision"`
	Hash     policy.Hash      `json:"hash"`
	Since    time.Time        `json:"since,omitzero"`
	Asked    time.Time        `json:"asked,omitzero"`
	Refused  *refusedRevision `json:"refused,omitempty"`
	Failure  string           `json:"failure,omitempty"`
	Unsaved  string           `json:"unsaved,omitempty"`
}

type refusedRevision struct {
	Revision uint64        `json:"revision"`
	Hash     policy.Hash   `json:"hash"`
	Cause    policy.Reason `json:"cause"`
	Error    string        `json:"error"`
	Since    time.Time     `json:"since,omitzero"`
}

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
	found.Revisions = append([]control.FleetRevision{}, found.Revisions...)
	out := fleet{Fleet: found, Instances: []instance{}}
	for i := range found.Page[:min(len(found.Page), in.N)] {
		out.Instances = append(out.Instances, instanceOf(&found.Page[i]))
	}
	if len(found.Page) > in.N {
		out.Next = found.Page[in.N-1].Name
	}
	return c.write(http.StatusOK, out)
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
	if text := c.query.Get("state"); text != "" {
		for _, known := range [...]policy.State{policy.Never, policy.Current, policy.Stale} {
			if known.String() == text {
				in.State = &known
			}
		}
		if in.State == nil {
			return in, badRequest("the parameter state is current, stale or never")
		}
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

func instanceOf(i *policy.Instance) instance {
	s := &i.Status
	out := instance{
		Name: i.Name, Seen: i.Seen, State: s.State, Revision: s.Number, Hash: s.Hash, Since: s.Changed, Asked: s.Asked,
		Failure: s.Failure, Unsaved: s.Unsaved,
	}
	if r := s.Refused; r != nil {
		out.Refused = &refusedRevision{r.Number, r.Hash, r.Cause, r.Error, r.At}
	}
	return out
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
