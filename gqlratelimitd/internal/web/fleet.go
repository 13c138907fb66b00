package web

import (
	"net/http"
	"strconv"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
)

// fleet is what instances say of themselves.
type fleet struct {
	Newest    uint64          `json:"newest"`
	At        time.Time       `json:"at"`
	Total     int             `json:"total"`
	Current   int             `json:"current"`
	Stale     int             `json:"stale"`
	Never     int             `json:"never"`
	Refusing  int             `json:"refusing"`
	Behind    int             `json:"behind"`
	Unread    int             `json:"unread"`
	Revisions []fleetRevision `json:"revisions"`
	// Others is how many instances serve a revision that is not listed.
	Others    int        `json:"others"`
	Instances []instance `json:"instances"`
	// Next is the parameter after of the next page. It is empty at the end.
	Next string `json:"next,omitempty"`
}

type fleetRevision struct {
	Revision  uint64      `json:"revision"`
	Hash      policy.Hash `json:"hash"`
	Instances int         `json:"instances"`
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
	ctx, cancel := c.bounded()
	defer cancel()
	found, err := s.cfg.Control.Fleet(ctx, c.actor, in)
	if err != nil {
		return err
	}
	out := fleet{
		Newest: found.Newest, At: found.At, Total: found.Total, Current: found.Current, Stale: found.Stale, Never: found.Never,
		Refusing: found.Refusing, Behind: found.Behind, Unread: found.Unread, Others: found.Others,
		Revisions: []fleetRevision{}, Instances: []instance{},
	}
	for _, r := range found.Revisions {
		out.Revisions = append(out.Revisions, fleetRevision{r.Revision, r.Hash, r.Instances})
	}
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

// relaying is how far changes have come on their way to Redis.
type relaying struct {
	Leads   bool    `json:"leads"`
	Holder  string  `json:"holder,omitempty"`
	Waiting int64   `json:"waiting"`
	Lag     float64 `json:"lag"`

	Failure      string    `json:"failure,omitempty"`
	FailingSince time.Time `json:"failingSince,omitzero"`
	Swept        time.Time `json:"swept,omitzero"`

	Refused   []relayRefusal `json:"refused"`
	Unmanaged int64          `json:"unmanaged"`
	Unnamed   int            `json:"unnamed"`
}

type relayRefusal struct {
	Kind  string    `json:"kind"`
	Name  string    `json:"name,omitempty"`
	Error string    `json:"error"`
	Since time.Time `json:"since"`
}

// relay says how far changes have come on their way to Redis.
func (s *Server) relay(c *call) error {
	if err := c.known(); err != nil {
		return err
	}
	ctx, cancel := c.bounded()
	defer cancel()
	found, err := s.cfg.Control.Relaying(ctx, c.actor)
	if err != nil {
		return err
	}
	out := relaying{
		Leads: found.Leads, Holder: found.Holder, Waiting: found.Waiting, Lag: found.Lag.Seconds(), Failure: found.Failure,
		FailingSince: found.FailingSince, Swept: found.Swept, Refused: []relayRefusal{}, Unmanaged: found.Unmanaged,
		Unnamed: found.Unnamed,
	}
	for _, r := range found.Refused {
		out.Refused = append(out.Refused, relayRefusal{r.Kind, r.Name, r.Error, r.Since})
	}
	return c.write(http.StatusOK, out)
}
