package graph

import (
	"context"
	"errors"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/graph/internal/model"
)

func misfitOf(m *control.Misfit) *model.PolicyMisfit {
	return &model.PolicyMisfit{Tenant: m.Tenant, Problem: m.Problem}
}

// misfitsOf returns how many records stop fitting, and the first of them.
func misfitsOf(m *control.Misfits) (total int, tenants []*model.PolicyMisfit) {
	if m == nil {
		return 0, []*model.PolicyMisfit{}
	}
	return m.Total, each(m.Tenants, misfitOf)
}

// Misfits returns a page of tenants whose records do not fit the policy.
func (q query) Misfits(ctx context.Context, first int, after *string) (*model.MisfitPage, error) {
	if err := checkFirst(first); err != nil {
		return nil, err
	}
	found, err := q.control.Misfitting(ctx, actorOf(ctx), value(after), first)
	if errors.Is(err, control.ErrNotFound) {
		return nil, nil
	}
	return shown(found, err, func(p *control.MisfitPage) *model.MisfitPage {
		return &model.MisfitPage{
			Policy: p.Policy, At: p.At, Total: p.Total, Unseen: p.Unseen, Nodes: each(p.Tenants, misfitOf), PageInfo: &model.PageInfo{HasNextPage: p.Next != ""},
		}
	})
}
