package show

import (
	"maps"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// Error returns the error that the client of a refusal sees, with the page that explains limits, empty if there is none.
func Error(d *decision.Decision, r *decision.Refusal, helpURL string) *gqlerror.Error {
	d = seen(d)
	if r.Presented != nil {
		return presentedWithID(r)
	}
	refusal := ratelimitclient.Refusal{
		Code: r.Outcome.Code(), ID: r.ID, HelpURL: helpURL, RetryAfter: RetryAfter(d, r), Owner: owner(d, r.Owner),
	}
	if r.Limit != nil {
		refusal.Limit, refusal.Level, refusal.Unit = r.Limit.Name, r.Owner.Level.String(), string(r.Limit.Unit)
	}
	refusal.Cost, refusal.MaxCost = costs(r, d.Hide)
	if r.Dearest != nil && !d.Hide.Cost {
		refusal.Dearest, refusal.DearestList = r.Dearest.Coordinate, int64(min(r.Dearest.ListSize, cost.MaxPoints))
	}
	if r.Shape != nil {
		refusal.Rule, refusal.Given, refusal.Allowed = string(r.Shape.Rule), int64(r.Shape.Given), int64(r.Shape.Allowed)
	}
	extensions := refusal.Extensions()
	if d.Hide.Limits {
		delete(extensions, "allowed")
	}
	return &gqlerror.Error{Message: Message(d, r), Extensions: extensions}
}

// presentedWithID returns the error of the server's own code, which may be shared, with the id of the refusal, if
// it has one, beside its own extensions.
func presentedWithID(r *decision.Refusal) *gqlerror.Error {
	presented := *r.Presented
	presented.Extensions = map[string]any{}
	maps.Copy(presented.Extensions, r.Presented.Extensions)
	if r.ID != "" {
		presented.Extensions["refusalId"] = r.ID
	}
	return &presented
}

// costs returns what the operation costs and may cost as the client may know it, zero where it may not, or
// where that is not the reason.
func costs(r *decision.Refusal, hide tiers.Hide) (points, most int64) {
	if r.MaxCost <= 0 || hide.Cost {
		return 0, 0
	}
	if hide.Limits {
		return r.Cost, 0
	}
	return r.Cost, r.MaxCost
}
