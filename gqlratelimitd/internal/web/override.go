package web

import (
	"net/http"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// overrideIn is what is to hold for an owner for a time. What it is about stands in the query.
type overrideIn struct {
	Capacity  int64     `json:"capacity"`
	Refill    int64     `json:"refill"`
	Period    string    `json:"period"`
	Mode      string    `json:"mode"`
	Unlimited bool      `json:"unlimited"`
	Blocked   bool      `json:"blocked"`
	Expires   time.Time `json:"expires"`
}

// overrideOut is an override in an answer.
type overrideOut struct {
	Tenant string `json:"tenant"`
	Level  string `json:"level"`
	Name   string `json:"name,omitempty"`
	Part   string `json:"part,omitempty"`
	Limit  string `json:"limit,omitempty"`
	// Revision is the change that has written it, as If-Match expects it. It is 0 for a record that was set without the control plane.
	Revision uint64 `json:"revision"`
	// Managed says that it was set here. Otherwise By and Reason are what the record says itself.
	Managed bool `json:"managed"`
	// Replaced says that such a record holds in the place of this one.
	Replaced bool `json:"replaced,omitempty"`
	// Holds says whether it holds now: neither removed nor expired.
	Holds     bool      `json:"holds"`
	Removed   bool      `json:"removed,omitempty"`
	Capacity  int64     `json:"capacity,omitempty"`
	Refill    int64     `json:"refill,omitempty"`
	Period    string    `json:"period,omitempty"`
	Mode      string    `json:"mode,omitempty"`
	Unlimited bool      `json:"unlimited,omitempty"`
	Blocked   bool      `json:"blocked,omitempty"`
	Expires   time.Time `json:"expires,omitzero"`
	Reason    string    `json:"reason"`
	By        string    `json:"by"`
	At        time.Time `json:"at"`
}

func (s *Server) overrideOf(o *control.Override) overrideOut {
	v := &o.Override
	out := overrideOut{
		Tenant: o.Tenant, Level: v.Owner.Level.String(), Name: v.Owner.Name, Part: v.Owner.Part, Limit: v.Limit, Revision: o.Revision,
		Managed: !o.Unmanaged, Replaced: o.Replaced, Removed: o.Removed,
		Holds:    !o.Removed && (v.Expires.IsZero() || s.cfg.Now().Before(v.Expires)),
		Capacity: v.Capacity, Refill: v.Refill, Unlimited: v.Unlimited, Blocked: v.Blocked, Expires: v.Expires, Reason: v.Reason, By: v.Actor, At: v.SetAt,
	}
	if v.Period > 0 {
		out.Period = tiers.Period(v.Period).String()
	}
	if v.Mode != nil {
		out.Mode = v.Mode.String()
	}
	return out
}

// overrides lists overrides, of a tenant or of all.
func (s *Server) overrides(c *call) error {
	f, err := c.overrideFilter()
	if err != nil {
		return err
	}
	found, err := s.cfg.Control.FindOverrides(c.Context(), c.actor, f)
	if err != nil {
		return err
	}
	out := struct {
		Overrides []overrideOut `json:"overrides"`
		// Next is the parameter after of the next page. It is empty at the end.
		Next string `json:"next,omitempty"`
	}{[]overrideOut{}, found.Next}
	for i := range found.Overrides {
		out.Overrides = append(out.Overrides, s.overrideOf(&found.Overrides[i]))
	}
	return c.write(http.StatusOK, out)
}

// overrideFilter reads which overrides are asked for.
func (c *call) overrideFilter() (f control.OverrideFilter, err error) {
	if err = c.known("ended", "after", "limit"); err != nil {
		return f, err
	}
	f = control.OverrideFilter{Tenant: c.PathValue("org"), After: c.query.Get("after")}
	ended, err := c.flag("ended")
	if err != nil {
		return f, err
	}
	f.Ended = ended != nil && *ended
	f.N, err = c.page()
	return f, err
}

// overrideKey reads from the query which override is meant.
func (c *call) overrideKey() (key control.OverrideKey, _ error) {
	if err := c.known("level", "name", "part", "limit", "reason", "ticket"); err != nil {
		return key, err
	}
	key = control.OverrideKey{Tenant: c.PathValue("org"), Limit: c.query.Get("limit")}
	key.Owner.Name, key.Owner.Part = c.query.Get("name"), c.query.Get("part")
	level := c.query.Get("level")
	for _, known := range [...]bucket.Level{bucket.Tenant, bucket.Team, bucket.User, bucket.Operation} {
		if level == known.String() {
			key.Owner.Level = known
			return key, nil
		}
	}
	return key, badRequest("the parameter level is tenant, team, user or operation")
}

// override reads what is to hold.
func (in *overrideIn) override(key control.OverrideKey) (o bucket.Override, _ error) {
	o = bucket.Override{
		Owner: key.Owner, Limit: key.Limit, Capacity: in.Capacity, Refill: in.Refill, Unlimited: in.Unlimited, Blocked: in.Blocked, Expires: in.Expires,
	}
	if in.Period != "" {
		var period tiers.Period
		if err := period.UnmarshalText([]byte(in.Period)); err != nil {
			return o, badRequest("period is a word or a duration of a policy, such as minute or 90s")
		}
		o.Period = time.Duration(period)
	}
	if in.Mode == "" {
		return o, nil
	}
	for _, known := range [...]bucket.Mode{bucket.Enforce, bucket.Warn, bucket.Shadow, bucket.Off} {
		if in.Mode == known.String() {
			o.Mode = &known
			return o, nil
		}
	}
	return o, badRequest("mode is enforce, warn, shadow or off")
}

// setOverride sets what is to hold for an owner for a time.
func (s *Server) setOverride(c *call) error {
	key, err := c.overrideKey()
	if err != nil {
		return err
	}
	expected, err := c.expected()
	if err != nil {
		return err
	}
	r, err := c.request()
	if err != nil {
		return err
	}
	var in overrideIn
	if err := c.read(&in); err != nil {
		return err
	}
	override, err := in.override(key)
	if err != nil {
		return err
	}
	answer, err := s.cfg.Control.SetOverride(c.Context(), r, control.OverrideInput{Tenant: key.Tenant, Override: override, Expected: expected})
	return s.writeOverride(c, answer, err)
}

// clearOverride ends an override.
func (s *Server) clearOverride(c *call) error {
	key, err := c.overrideKey()
	if err != nil {
		return err
	}
	expected, err := c.expected()
	if err != nil {
		return err
	}
	r, err := c.request()
	if err != nil {
		return err
	}
	answer, err := s.cfg.Control.ClearOverride(c.Context(), r, control.ClearOverrideInput{OverrideKey: key, Expected: expected})
	return s.writeOverride(c, answer, err)
}

func (s *Server) writeOverride(c *call, answer *control.Override, err error) error {
	if err != nil {
		return err
	}
	c.w.Header().Set("ETag", tag(answer.Revision))
	return c.write(http.StatusOK, s.overrideOf(answer))
}
