package graph

import (
	"context"
	"errors"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/graph/internal/model"
)

// gradeBudget says what figures of usage are: what budgets have at one moment, which is no count for a bill.
const gradeBudget = "budget"

// Usage returns what the budgets of a tenant have now.
func (t tenant) Usage(ctx context.Context, of *model.Tenant, team, user, operation *string) (*model.Usage, error) {
	found, err := t.control.Usage(ctx, actorOf(ctx), control.EffectiveInput{
		Tenant: of.ID, Team: value(team), User: value(user), Operation: value(operation),
	})
	if errors.Is(err, control.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	usage := &model.Usage{
		Grade: gradeBudget, Policy: found.Policy, Tier: found.Tier, TierFrom: found.TierFrom, Mode: word[model.Mode](found.Mode.String()),
		Blocked: found.Blocked, Unlimited: found.Unlimited, Misfit: given(found.Misfit), At: found.At, Budgets: []*model.Budget{},
		Backstop: []*model.Budget{},
	}
	for i := range found.Budgets {
		usage.Budgets = append(usage.Budgets, budgetOf(&found.Budgets[i]))
	}
	for i := range found.Backstop {
		usage.Backstop = append(usage.Backstop, budgetOf(&found.Backstop[i]))
	}
	return usage, nil
}

func budgetOf(b *control.Budget) *model.Budget {
	l := &b.Limit
	budget := &model.Budget{
		Owner: ownerOf(&b.Owner), Limit: l.Name, Unit: string(l.Unit), Capacity: l.Capacity, Used: b.Used, Remaining: b.Remaining,
		Overdraft: b.Overdraft, Refill: l.Refill, PeriodMs: given(l.Period.Milliseconds()), Window: windows[l.Window.Kind],
		WindowEnd: instant(b.WindowEnd), FullAt: instant(b.FullAt), Mode: word[model.Mode](l.Mode.String()), Overridden: b.Overridden,
		Held: b.Held, Holders: b.Holders, HeldBy: []*model.LeasedPart{},
	}
	for _, p := range b.HeldBy {
		budget.HeldBy = append(budget.HeldBy, &model.LeasedPart{
			Holder: p.Holder, Capacity: p.Capacity, RefillPerSecond: p.Refill, Held: p.Level, Ends: p.Ends, Ended: p.EndsIn <= 0,
		})
	}
	if budget.Unit == "" {
		budget.Unit = string(bucket.Points)
	}
	if budget.Refill == 0 {
		budget.Refill = l.Capacity
	}
	return budget
}
