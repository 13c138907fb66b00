package graph

import (
	"context"
	"fmt"
	"strings"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/graph/internal/model"
)

// checkFirst returns what is wrong with the size of a page.
func checkFirst(first int) error {
	if first < 1 || first > maxPage {
		return &control.InvalidError{Field: "first", Problem: fmt.Sprintf("1 to %d fits", maxPage)}
	}
	return nil
}

// Overrides returns a page of overrides.
func (q query) Overrides(
	ctx context.Context, about *string, filter *model.OverrideFilter, order model.OverrideOrder, first int, after *string,
) (*model.OverridePage, error) {
	if err := checkFirst(first); err != nil {
		return nil, err
	}
	f := control.OverrideFilter{Tenant: value(about), Order: control.OverrideOrder(strings.ToLower(string(order))), After: value(after), N: first}
	if filter != nil {
		f.Ended, f.Blocked, f.Managed, f.By, f.Until = filter.Ended, filter.Blocked, filter.Managed, value(filter.By), value(filter.Until)
	}
	found, err := q.control.FindOverrides(ctx, actorOf(ctx), f)
	if err != nil {
		return nil, err
	}
	page := &model.OverridePage{
		Nodes: make([]*model.Override, len(found.Overrides)), PageInfo: &model.PageInfo{HasNextPage: found.Next != ""}, Next: given(found.Next),
	}
	for i := range found.Overrides {
		page.Nodes[i] = overrideOf(&found.Overrides[i])
	}
	return page, nil
}

// Overrides returns a page of the overrides of a tenant.
func (t tenant) Overrides(
	ctx context.Context, of *model.Tenant, filter *model.OverrideFilter, order model.OverrideOrder, first int, after *string,
) (*model.OverridePage, error) {
	return query(t).Overrides(ctx, &of.ID, filter, order, first, after)
}
