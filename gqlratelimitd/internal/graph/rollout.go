package graph

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/graph/internal/model"
)

// Rollout returns the newest roll-out.
func (q query) Rollout(ctx context.Context) (*model.Rollout, error) {
	found, err := q.control.Rollout(ctx, actorOf(ctx))
	if errors.Is(err, control.ErrNotFound) {
		return nil, nil
	}
	return shown(found, err, rolloutOf)
}

// StartRollout begins a roll-out.
func (m mutation) StartRollout(ctx context.Context, in model.StartRolloutInput) (*model.Rollout, error) {
	plan, err := planIn(&in)
	if err != nil {
		return nil, err
	}
	answer, err := m.control.StartRollout(ctx, request(ctx, in.Reason, in.Ticket, in.IdempotencyKey), control.StartRolloutInput{
		Document: []byte(in.Document), Plan: plan, Expected: in.ExpectedRevision,
	})
	return shown(answer, err, rolloutOf)
}

// HaltRollout stops a roll-out.
func (m mutation) HaltRollout(ctx context.Context, in model.HaltRolloutInput) (*model.Rollout, error) {
	answer, err := m.control.HaltRollout(ctx, request(ctx, in.Reason, in.Ticket, in.IdempotencyKey), control.HaltRolloutInput{Expected: in.ExpectedRevision})
	return shown(answer, err, rolloutOf)
}

// ResumeRollout has a roll-out go on.
func (m mutation) ResumeRollout(ctx context.Context, in model.ResumeRolloutInput) (*model.Rollout, error) {
	answer, err := m.control.ResumeRollout(ctx, request(ctx, in.Reason, in.Ticket, in.IdempotencyKey), control.ResumeRolloutInput{Expected: in.ExpectedRevision})
	return shown(answer, err, rolloutOf)
}

// AbortRollout takes a roll-out back.
func (m mutation) AbortRollout(ctx context.Context, in model.AbortRolloutInput) (*model.Rollout, error) {
	answer, err := m.control.AbortRollout(ctx, request(ctx, in.Reason, in.Ticket, in.IdempotencyKey), control.AbortRolloutInput{Expected: in.ExpectedRevision})
	return shown(answer, err, rolloutOf)
}

// planIn reads a plan.
func planIn(in *model.StartRolloutInput) (plan control.RolloutPlan, _ error) {
	if in.Plan != nil == (len(in.Steps) > 0) {
		return nil, invalid("plan", "either a ready-made plan or steps are needed")
	}
	if in.Plan != nil {
		if *in.Plan == model.RolloutPlanGradual {
			return control.GradualPlan(), nil
		}
		return control.ShadowThenWarnPlan(), nil
	}
	for _, step := range in.Steps {
		s := control.RolloutStep{Percent: step.Percent, Warn: step.Warn, For: time.Duration(math.MaxInt64)}
		if step.Warn && step.Percent == 0 {
			s.Percent = 100
		}
		if step.Seconds < int64(s.For/time.Second) {
			s.For = time.Duration(step.Seconds) * time.Second
		}
		plan = append(plan, s)
	}
	return plan, nil
}

func rolloutOf(r *control.Rollout) *model.Rollout {
	out := &model.Rollout{
		ID: r.ID, Phase: word[model.RolloutPhase](string(r.Phase)), Why: given(r.Why), By: r.By, Reason: r.Reason,
		Hash: r.Document.String(), Before: r.Before.String(), Plan: []*model.RolloutStep{}, Step: r.Step, Revision: r.Revision,
		Since: instant(r.Since), Until: instant(r.Until), Measured: sharesOf(r.Measured), Accepted: sharesOf(r.Accepted),
		Remark: given(r.Remark), Warnings: mistakesOf(r.Warnings),
	}
	for _, step := range r.Plan {
		out.Plan = append(out.Plan, &model.RolloutStep{Percent: step.Percent, Warn: step.Warn, Seconds: int64(step.For / time.Second)})
	}
	return out
}

func sharesOf(s *control.Shares) *model.RolloutShares {
	if s == nil {
		return nil
	}
	return &model.RolloutShares{Tenants: s.Tenants, Users: s.Users}
}
