package web

import (
	"errors"
	"net/http"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// rolloutOut is how far a policy has come on its way to all tenants.
type rolloutOut struct {
	ID     string               `json:"id"`
	Phase  control.RolloutPhase `json:"phase"`
	Why    string               `json:"why,omitempty"`
	By     string               `json:"by"`
	Reason string               `json:"reason"`
	// Document is the hash of the policy that is brought, and Before that of the policy in whose place it comes.
	Document policy.Hash   `json:"document"`
	Before   policy.Hash   `json:"before"`
	Plan     []rolloutStep `json:"plan"`
	// Step is the one that it has reached, from 1. It is one more than the plan has where the policy holds for all.
	Step int `json:"step"`
	// Revision is what If-Match of the next change expects.
	Revision uint64    `json:"revision"`
	Since    time.Time `json:"since,omitzero"`
	Until    time.Time `json:"until,omitzero"`
	// Measured is the largest share that is newly refused, and Accepted is above what it halts if somebody has had it go on.
	Measured *control.Shares `json:"measured,omitempty"`
	Accepted *control.Shares `json:"accepted,omitempty"`
	Remark   string          `json:"remark,omitempty"`
	// Warnings, Misfits, Proposal and Approver are told to who starts it.
	Warnings []mistake        `json:"warnings,omitempty"`
	Misfits  *control.Misfits `json:"misfits,omitempty"`
	Proposal uint64           `json:"proposal,omitempty"`
	Approver string           `json:"approver,omitempty"`
}

// rolloutStep is a step of a plan.
type rolloutStep struct {
	Percent int  `json:"percent"`
	Warn    bool `json:"warn,omitempty"`
	// For is a duration, such as 24h0m0s.
	For string `json:"for"`
}

// writeRollout answers with a roll-out.
func (c *call) writeRollout(r *control.Rollout, err error) error {
	if err != nil {
		return err
	}
	out := rolloutOut{
		ID: r.ID, Phase: r.Phase, Why: r.Why, By: r.By, Reason: r.Reason, Document: r.Document, Before: r.Before, Plan: []rolloutStep{},
		Step: r.Step, Revision: r.Revision, Since: r.Since, Until: r.Until, Measured: r.Measured, Accepted: r.Accepted, Remark: r.Remark,
		Warnings: warningsOf(r.Warnings), Misfits: r.Misfits, Proposal: r.Proposal, Approver: r.Approver,
	}
	for _, step := range r.Plan {
		out.Plan = append(out.Plan, rolloutStep{step.Percent, step.Warn, step.For.String()})
	}
	c.w.Header().Set("ETag", tag(r.Revision))
	return c.write(http.StatusOK, out)
}

// rollout serves the newest roll-out, also one that has ended.
func (s *Server) rollout(c *call) error {
	if err := c.known(); err != nil {
		return err
	}
	ctx, cancel := c.bounded()
	defer cancel()
	found, err := s.cfg.Control.Rollout(ctx, c.actor)
	if errors.Is(err, control.ErrNotFound) {
		return &problem{Status: http.StatusNotFound, Title: "There was no roll-out yet", Detail: "Start one: POST with the document and the parameter plan."}
	}
	return c.writeRollout(found, err)
}

// startRollout begins to bring the body to all tenants.
func (s *Server) startRollout(c *call) error {
	// Who may not is told so before megabytes are read.
	if err := access.Authorize(c.actor, access.StartRollout, ""); err != nil {
		return err
	}
	if err := c.known("plan", "reason", "ticket"); err != nil {
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
	plan, err := control.ParseRolloutPlan(c.query.Get("plan"))
	if err != nil {
		return err
	}
	document, err := c.body(tiers.DefaultMaxDocument)
	if err != nil {
		return err
	}
	ctx, cancel := c.bounded()
	defer cancel()
	return c.writeRollout(s.cfg.Control.StartRollout(ctx, r, control.StartRolloutInput{Document: document, Plan: plan, Expected: expected}))
}

// rolloutChange reads what comes with a change of the roll-out that is there.
func (c *call) rolloutChange() (r control.Request, expected uint64, err error) {
	if err = c.known("reason", "ticket"); err != nil {
		return r, 0, err
	}
	if expected, err = c.expected(); err != nil {
		return r, 0, err
	}
	r, err = c.request()
	return r, expected, err
}

// haltRollout stops the roll-out where it is.
func (s *Server) haltRollout(c *call) error {
	r, expected, err := c.rolloutChange()
	if err != nil {
		return err
	}
	ctx, cancel := c.bounded()
	defer cancel()
	return c.writeRollout(s.cfg.Control.HaltRollout(ctx, r, control.HaltRolloutInput{Expected: expected}))
}

// resumeRollout has a halted roll-out go on.
func (s *Server) resumeRollout(c *call) error {
	r, expected, err := c.rolloutChange()
	if err != nil {
		return err
	}
	ctx, cancel := c.bounded()
	defer cancel()
	return c.writeRollout(s.cfg.Control.ResumeRollout(ctx, r, control.ResumeRolloutInput{Expected: expected}))
}

// abortRollout takes the roll-out back.
func (s *Server) abortRollout(c *call) error {
	r, expected, err := c.rolloutChange()
	if err != nil {
		return err
	}
	ctx, cancel := c.bounded()
	defer cancel()
	return c.writeRollout(s.cfg.Control.AbortRollout(ctx, r, control.AbortRolloutInput{Expected: expected}))
}

// rolloutRoutes are those of the roll-out.
func (s *Server) rolloutRoutes() []route {
	const path = "/v1/ratelimit/rollout"
	type actions = []access.Action
	return []route{
		{method: http.MethodGet, pattern: path, does: actions{access.ReadRollout}, handle: s.rollout},
		{method: http.MethodPost, pattern: path, does: actions{access.StartRollout}, handle: s.startRollout},
		{method: http.MethodPost, pattern: path + "/halt", does: actions{access.HaltRollout}, handle: s.haltRollout},
		{method: http.MethodPost, pattern: path + "/resume", does: actions{access.ResumeRollout}, handle: s.resumeRollout},
		{method: http.MethodPost, pattern: path + "/abort", does: actions{access.AbortRollout}, handle: s.abortRollout},
	}
}
