package graph

import (
	"context"
	"strings"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/graph/internal/model"
)

// UsageSeries returns a page of what was counted.
func (q query) UsageSeries(
	ctx context.Context, about *string, window model.UsageWindow, by model.UsageBy, from, to *time.Time, zone *string, names []string, top *int, first int,
	after *string,
) (*model.UsageSeries, error) {
	in := control.UsageSeriesInput{
		Tenant: value(about), Window: control.UsageWindow(strings.ToLower(string(window))), By: control.UsageBy(strings.ToLower(string(by))),
		From: value(from), To: value(to), Zone: value(zone), Names: names, Top: value(top), N: first, After: value(after),
	}
	if err := allOrNamed(about); err != nil {
		return nil, err
	}
	if top != nil && *top == 0 {
		return nil, &control.InvalidError{Field: "top", Problem: "it is 0: leave it out to give each name a row of its own"}
	}
	found, err := q.control.UsageSeries(ctx, actorOf(ctx), in)
	if err != nil {
		return nil, err
	}
	series := &model.UsageSeries{
		From: found.From, To: found.To, Since: instant(found.Since), Kept: found.Kept, Collected: instant(found.Collected), Counts: given(found.Counts),
		Nodes: make([]*model.UsagePoint, len(found.Rows)), PageInfo: &model.PageInfo{HasNextPage: found.Next != ""}, Next: given(found.Next),
	}
	for i := range found.Rows {
		series.Nodes[i] = pointOf(in.By, &found.Rows[i])
	}
	return series, nil
}

func pointOf(by control.UsageBy, r *control.UsageRow) *model.UsagePoint {
	p := &model.UsagePoint{
		Begin: r.Begin, End: r.End, Open: r.Open, Known: word[model.UsageKnown](string(r.Known)), Tenant: given(r.Tenant), Name: r.Name, Grade: r.Grade.String(),
	}
	if r.Known == control.KnownNone {
		return p
	}
	if by.Charged() {
		net := r.Net()
		p.Charged, p.GivenBack, p.Net, p.Calls = &r.Charged, &r.GivenBack, &net, &r.Calls
		return p
	}
	p.Admitted, p.Refused, p.WouldRefuse, p.Points = &r.Admitted, &r.Refused, &r.WouldRefuse, &r.Points
	return p
}
