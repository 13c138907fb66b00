package web

import (
	"net/http"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// effective is what holds for a tenant.
type effective struct {
	Tenant string `json:"tenant"`
	// Revision is that of the policy.
	Revision  uint64 `json:"revision"`
	Tier      string `json:"tier"`
	TierFrom  string `json:"tierFrom"`
	Mode      string `json:"mode"`
	Blocked   bool   `json:"blocked"`
	Unlimited bool   `json:"unlimited"`
	// Misfit says why the record of the tenant does not hold.
	Misfit string `json:"misfit,omitempty"`
	// Counts is what is counted in the step that charges: none, totals or fields.
	Counts string  `json:"counts"`
	Limits []limit `json:"limits"`
}

// limit is a limit of an owner.
type limit struct {
	Level    string      `json:"level"`
	Name     string      `json:"name,omitempty"`
	Part     string      `json:"part,omitempty"`
	Limit    string      `json:"limit"`
	Unit     bucket.Unit `json:"unit"`
	Capacity int64       `json:"capacity"`
	Refill   int64       `json:"refill,omitempty"`
	// Period is a word or a duration, as in a policy. It is empty where the calendar gives the length.
	Period   string `json:"period,omitempty"`
	Window   string `json:"window,omitempty"`
	Mode     string `json:"mode"`
	FailMode string `json:"failMode"`
	// EnforcedFrom is when a limit that warns begins to refuse.
	EnforcedFrom time.Time `json:"enforcedFrom,omitzero"`
	From         places    `json:"from"`
	// Override is the one that has made it what it is, if one has.
	Override *overrideOut `json:"override,omitempty"`
}

// places are where in the policy something stands.
type places struct {
	Tier     string   `json:"tier,omitempty"`
	Rule     []string `json:"rule,omitempty"`
	Line     int      `json:"line,omitempty"`
	Mode     string   `json:"mode,omitempty"`
	FailMode string   `json:"failMode,omitempty"`
}

func placesOf(p tiers.Provenance) places { return places{p.Tier, p.Rule, p.Line, p.Mode, p.FailMode} }

// effectiveInput reads who is asked about.
func (c *call) effectiveInput() (in control.EffectiveInput, _ error) {
	if err := c.known("team", "user", "operation"); err != nil {
		return in, err
	}
	return control.EffectiveInput{
		Tenant: c.PathValue("org"), Team: c.query.Get("team"), User: c.query.Get("user"), Operation: c.query.Get("operation"),
	}, nil
}

// effective serves what holds for a tenant at this moment, and where that comes from.
func (s *Server) effective(c *call) error {
	in, err := c.effectiveInput()
	if err != nil {
		return err
	}
	found, err := s.cfg.Control.Effective(c.Context(), c.actor, in)
	if err != nil {
		return err
	}
	out := effective{
		Tenant: in.Tenant, Revision: found.Policy, Tier: found.Tier, TierFrom: found.TierFrom, Mode: found.Mode.String(),
		Blocked: found.Blocked, Unlimited: found.Unlimited, Misfit: found.Misfit, Counts: found.Counts,
		Limits: []limit{},
	}
	for i := range found.Limits {
		out.Limits = append(out.Limits, s.limitOf(&found.Limits[i]))
	}
	return c.write(http.StatusOK, out)
}

func (s *Server) limitOf(l *control.EffectiveLimit) limit {
	out := limit{
		Level: l.Owner.Level.String(), Name: l.Owner.Name, Part: l.Owner.Part, Limit: l.Limit.Name, Unit: l.Limit.Unit,
		Capacity: l.Limit.Capacity, Mode: l.Limit.Mode.String(), FailMode: l.Limit.FailMode.String(),
		EnforcedFrom: l.EnforcedFrom, From: placesOf(l.Provenance),
	}
	if l.Override != nil {
		override := s.overrideOf(l.Override)
		out.Override = &override
	}
	out.Refill, out.Period, out.Window = termsOf(&l.Limit)
	return out
}
