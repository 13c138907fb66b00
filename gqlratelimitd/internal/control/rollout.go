package control

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/rollout"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// These are those of package rollout, which those above control do not know.
type (
	// RolloutPlan is the steps of a roll-out.
	RolloutPlan = rollout.Plan
	// RolloutStep is one of them.
	RolloutStep = rollout.Step
	// RolloutPhase says whether a roll-out goes on.
	RolloutPhase = rollout.Phase
	// Shares are the parts of tenants and users that are newly refused.
	Shares = rollout.Shares
)

// GradualPlan is [rollout.Gradual].
func GradualPlan() RolloutPlan { return rollout.Gradual() }

// ShadowThenWarnPlan is [rollout.ShadowThenWarn].
func ShadowThenWarnPlan() RolloutPlan { return rollout.ShadowThenWarn() }

// ParseRolloutPlan reads a plan: gradual, shadow-then-warn, or steps such as 0:168h,5:24h,50:24h. The error is an [*InvalidError].
func ParseRolloutPlan(text string) (RolloutPlan, error) {
	plan, err := rollout.ParsePlan(text)
	if err != nil {
		return nil, &InvalidError{Field: "plan", Err: err}
	}
	return plan, nil
}

// Rollout is how far a policy has come on its way to all tenants.
type Rollout struct {
	// ID is that of the candidate. Document is the hash of the policy that is brought, and Before that of the policy in whose place it comes.
	ID       string      `json:"id"`
	Document policy.Hash `json:"document"`
	Before   policy.Hash `json:"before"`
	// Phase says whether it goes on, and Why for what reason it does not.
	Phase RolloutPhase `json:"phase"`
	Why   string       `json:"why,omitempty"`
	// By is who has started it, and Reason why.
	By     string `json:"by"`
	Reason string `json:"reason"`
	// Plan are the steps, and Step is the one that it has reached, from 1. After the last one the policy holds for all: then Step is one more than
	// there are.
	Plan RolloutPlan `json:"plan"`
	Step int         `json:"step"`
	// Revision is the newest one that it has published: what the next change expects.
	Revision uint64 `json:"revision"`
	// Since is when the step began or went on, and Until when it ends; zero where it does not go on by itself.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// Measured are the largest shares that were measured in the step, nil if nothing was. Accepted are those above which it halts next, as somebody
	// has had it go on; nil is the bound of all roll-outs.
	Measured *Shares `json:"measured,omitempty"`
	Accepted *Shares `json:"accepted,omitempty"`
	// Remark is what is to be said about what was measured.
	Remark string `json:"remark,omitempty"`
	// Warnings and Misfits are those of [Published], and Proposal and Approver too. They are told to who starts it.
	Warnings []tiers.Warning `json:"warnings,omitempty"`
	Misfits  *Misfits        `json:"misfits,omitempty"`
	Proposal uint64          `json:"proposal,omitempty"`
	Approver string          `json:"approver,omitempty"`
}

// StartRolloutInput is a policy document that is to come to all tenants step by step.
type StartRolloutInput struct {
	// Document is the document, byte for byte as its author has written it.
	Document []byte
	// Plan are the steps: [GradualPlan], [ShadowThenWarnPlan], or one of one's own.
	Plan RolloutPlan
	// Expected is the number of the newest revision that the author has seen.
	Expected uint64
}

// StartRollout begins a roll-out: [access.StartRollout]. The first step is published with it, and the others follow by themselves, by the actor of
// package rollout. So the document takes the same second person as [Control.Publish] would want: an approved proposal of exactly these bytes on this
// revision. What is wrong with the document or the plan, and that another roll-out has not ended, is an [*InvalidError]. It is relayed as a
// [MessagePolicy].
func (c *Control) StartRollout(ctx context.Context, r Request, in StartRolloutInput) (*Rollout, error) {
	return judged(ctx, c, func(newest *compiled) (*Rollout, error) {
		var b *beginning
		check := func() (err error) {
			b, err = c.begin(ctx, &r, &in, newest)
			return err
		}
		var moved *rollout.State
		started, err := mutate(ctx, c, r, action{Action: access.StartRollout}, in, check, func(tx *store.Tx) (*Rollout, done, error) {
			if err := tx.ExpectPolicy(in.Expected); err != nil {
				return nil, done{}, err
			}
			there, err := tx.Rollout()
			if err != nil {
				return nil, done{}, err
			}
			if newest.holds(tx) != nil || version(there)+1 != b.state.Version {
				return nil, done{}, ErrPolicyChanged
			}
			approved, err := c.approved(tx, b.next.Revision, in.Expected, b.reach)
			if err != nil {
				return nil, done{}, err
			}
			proposal := uint64(0)
			if b.state.Starter, b.state.Approver = r.Actor.Person(), ""; approved != nil {
				proposal, b.state.Approver = approved.ID, approved.Approver
			}
			if err := c.putRollout(tx, b.state, b.publication); err != nil {
				return nil, done{}, err
			}
			is := rolloutOf(b.state)
			is.Proposal, is.Approver = proposal, b.state.Approver
			answer := *is
			answer.Warnings, answer.Misfits = b.next.snapshot.Warnings(), b.misfits
			moved = b.state
			return &answer, rolloutDone(nil, is, in.Expected, b.publication), nil
		})
		c.rolloutMoved(moved, err)
		return started, err
	})
}

// rolloutMoved tells of a state, nil if the request was a repeat, unless it was not saved.
func (c *Control) rolloutMoved(next *rollout.State, err error) {
	if next != nil && err == nil && c.cfg.RolloutMoved != nil {
		c.cfg.RolloutMoved(next)
	}
}

// beginning is a roll-out that may begin.
type beginning struct {
	next        *compiled
	reach       *Reach
	misfits     *Misfits
	state       *rollout.State
	publication *rollout.Publication
}

// begin says what is wrong with a roll-out, and what it begins with. It takes time, for which nobody else waits.
func (c *Control) begin(ctx context.Context, r *Request, in *StartRolloutInput, newest *compiled) (*beginning, error) {
	switch {
	case !c.cfg.Rollouts:
		return nil, invalid("roll-out", "this daemon has no Redis, so that nobody would measure whom the policy refuses: start it with -redis")
	case len(c.cfg.Keys) > 0:
		return nil, invalid("roll-out", "a revision takes a signature here, which no step has that is published by itself: publish the document")
	case in.Expected == 0:
		return nil, invalid("expected revision", "there is no policy in whose place this one could come step by step: publish it")
	}
	unsigned, err := c.unsigned(r, in.Document, in.Expected)
	if err != nil {
		return nil, err
	}
	b := &beginning{}
	if b.next, err = c.compile(ctx, unsigned); err != nil {
		return nil, err
	}
	if _, staged := b.next.snapshot.Stage(); staged {
		return nil, invalid("document", "it has two policies, of a roll-out: give the one that is to hold for all")
	}
	var there rollout.Situation
	err = c.cfg.Store.Read(ctx, func(v *store.View) (err error) {
		there, err = situation(v)
		return err
	})
	if err != nil {
		return nil, err
	}
	if there.Newest != in.Expected || newest.number() != in.Expected {
		// It is a conflict, or judged again.
		b.state = &rollout.State{}
		return b, nil
	}
	if newest.rules() != nil && !there.State.Active() {
		if _, staged := newest.snapshot.Stage(); staged {
			return nil, invalid("roll-out", "the newest revision is a step of a roll-out that has ended: publish a document with one policy first")
		}
	}
	b.state, b.publication, err = there.Start(rollout.StartInput{
		ID: fmt.Sprint("rollout-", in.Expected+1), Seed: rand.Text(), Document: in.Document, Before: newest.Document, Plan: in.Plan, By: r.by(maxBy), Reason: r.Reason, Expected: in.Expected,
	}, c.cfg.Parse, c.now())
	if err != nil {
		return nil, rolloutProblem(err)
	}
	if c.cfg.SecondPerson.MaxShare != access.None {
		if b.reach, err = c.reach(ctx, b.next); err != nil {
			return nil, err
		}
	}
	b.misfits, err = c.misfits(ctx, b.next)
	return b, err
}

// rolloutProblem says why something cannot be done with a roll-out.
func rolloutProblem(err error) error {
	var document *tiers.PolicyError
	switch {
	case errors.Is(err, access.ErrApproval):
		return err
	case errors.As(err, &document):
		return &InvalidError{Field: "document", Err: err}
	case errors.Is(err, rollout.ErrNotNow), errors.Is(err, rollout.ErrConflict):
		return &InvalidError{Field: "roll-out", Err: err}
	default:
		return &InvalidError{Field: "plan", Err: err}
	}
}

// HaltRolloutInput says which roll-out is halted.
type HaltRolloutInput struct {
	// Expected is the number of the newest revision that the author has seen: the one of the step.
	Expected uint64
}

// HaltRollout stops a roll-out where it is: [access.HaltRollout]. What is live stays. That there is none which goes on is an [*InvalidError].
func (c *Control) HaltRollout(ctx context.Context, r Request, in HaltRolloutInput) (*Rollout, error) {
	why := "halted by " + r.by(maxBy) + ": " + r.Reason
	return c.changeRollout(ctx, r, access.HaltRollout, in, in.Expected, nil, func(s rollout.Situation, now time.Time) (*rollout.State, *rollout.Publication, error) {
		return s.Halt(now, why)
	})
}

// ResumeRolloutInput says which roll-out goes on.
type ResumeRolloutInput struct {
	// Expected is that of [HaltRolloutInput].
	Expected uint64
}

// ResumeRollout has a halted roll-out go on: [access.ResumeRollout]. What was measured is accepted by it. That there is none which is halted is an
// [*InvalidError]. Where more than its bound was measured of a roll-out that no second person has approved, and the rule for that is on, who has
// started it cannot: it is an [*access.ApprovalError].
func (c *Control) ResumeRollout(ctx context.Context, r Request, in ResumeRolloutInput) (*Rollout, error) {
	check := func() error {
		if !c.cfg.Rollouts {
			return invalid("roll-out", "this daemon has no Redis, so that nobody would measure whom the policy refuses: start it with -redis")
		}
		return nil
	}
	return c.changeRollout(ctx, r, access.ResumeRollout, in, in.Expected, check, func(s rollout.Situation, now time.Time) (*rollout.State, *rollout.Publication, error) {
		next, publication, err := s.Resume(now)
		if err == nil {
			err = c.mayResume(r.Actor, s.State)
		}
		return next, publication, err
	})
}

// mayResume returns why an actor cannot accept what a roll-out refuses. What was not approved was published by one person because it reaches not
// far; what was measured says that it does.
func (c *Control) mayResume(actor access.Actor, s *rollout.State) error {
	rule := &c.cfg.SecondPerson
	if rule.MaxShare == access.None || !s.Above() || s.Approver != "" {
		return nil
	}
	if s.Starter == actor.Person() {
		return &access.ApprovalError{Problem: "more is newly refused than at what a roll-out halts, and nobody has approved it but who has started it: somebody else has it go on, or abort it"}
	}
	return cmp.Or(rule.Known(s.Starter), rule.Comes(actor))
}

// AbortRolloutInput says which roll-out is taken back.
type AbortRolloutInput struct {
	// Expected is that of [HaltRolloutInput].
	Expected uint64
}

// AbortRollout takes a roll-out back: [access.AbortRollout]. The policy before it is published again, as a revision of its own. That there is none
// which has not ended is an [*InvalidError]. It is relayed as a [MessagePolicy].
func (c *Control) AbortRollout(ctx context.Context, r Request, in AbortRolloutInput) (*Rollout, error) {
	why := "aborted by " + r.by(maxBy) + ": " + r.Reason
	return c.changeRollout(ctx, r, access.AbortRollout, in, in.Expected, nil, func(s rollout.Situation, _ time.Time) (*rollout.State, *rollout.Publication, error) {
		return s.Abort(why)
	})
}

// changeRollout makes a change of a roll-out that is there. Check may be nil.
func (c *Control) changeRollout(
	ctx context.Context, r Request, a access.Action, in any, expected uint64, check func() error,
	by func(rollout.Situation, time.Time) (*rollout.State, *rollout.Publication, error),
) (*Rollout, error) {
	if check == nil {
		check = func() error { return nil }
	}
	var moved *rollout.State
	changed, err := mutate(ctx, c, r, action{Action: a}, in, check, func(tx *store.Tx) (*Rollout, done, error) {
		if err := tx.ExpectPolicy(expected); err != nil {
			return nil, done{}, err
		}
		there, err := situation(&tx.View)
		if err != nil {
			return nil, done{}, err
		}
		next, publication, err := by(there, tx.Now())
		if err != nil {
			return nil, done{}, rolloutProblem(err)
		}
		if err := c.putRollout(tx, next, publication); err != nil {
			return nil, done{}, err
		}
		moved = next
		is := rolloutOf(next)
		return is, rolloutDone(rolloutOf(there.State), is, expected, publication), nil
	})
	c.rolloutMoved(moved, err)
	return changed, err
}

// Rollout returns the newest roll-out, also one that has ended: [access.ReadRollout]. There is [ErrNotFound] if there never was one.
func (c *Control) Rollout(ctx context.Context, actor access.Actor) (*Rollout, error) {
	if err := access.Authorize(actor, access.ReadRollout, ""); err != nil {
		return nil, err
	}
	var there rollout.Situation
	err := c.cfg.Store.Read(ctx, func(v *store.View) (err error) {
		there, err = situation(v)
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case there.State == nil:
		return nil, ErrNotFound
	}
	if there.State.Active() && there.State.Revision != there.Newest {
		// Somebody has published, and no driver has looked since.
		if next, _, err := there.Advance(c.now(), nil); err == nil && next != nil {
			there.State = next
		}
	}
	return rolloutOf(there.State), nil
}

// rolloutOf tells a roll-out.
func rolloutOf(s *rollout.State) *Rollout {
	is := &Rollout{
		ID: s.ID, Document: hashOf(s.New, s.NewHash), Before: hashOf(s.Old, s.OldHash), Phase: s.Phase, Why: s.Why, By: s.By, Reason: s.Reason,
		Plan: s.Plan, Step: s.Step + 1, Revision: s.Revision, Since: s.Since.UTC(), Remark: s.Remark(),
	}
	if s.Phase == rollout.Running {
		is.Until = s.Until.UTC()
	}
	if s.Measured {
		is.Measured = &s.Highest
	}
	if s.Accepted != (Shares{}) {
		is.Accepted = &s.Accepted
	}
	return is
}

// hashOf is the hash of a document, or the one that is kept in its place.
func hashOf(document, kept []byte) policy.Hash {
	if len(kept) == len(policy.Hash{}) {
		return policy.Hash(kept)
	}
	return policy.HashOf(document)
}

// rolloutDone is what a change of a roll-out has done. Before is nil where one begins.
func rolloutDone(before, after *Rollout, expected uint64, publication *rollout.Publication) done {
	d := done{target: "roll-out " + after.ID, after: after, revisionBefore: expected, revisionAfter: expected}
	if before != nil {
		d.before = before
	}
	if publication != nil {
		d.kind, d.revisionAfter = MessagePolicy, after.Revision
	}
	return d
}
