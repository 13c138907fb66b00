package ratelimit

import (
	"crypto/rand"
	"maps"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// telling is how a refusal is told to its client.
type telling struct {
	hide tiers.Hide
	// owner is the name of the owner as the client may know it.
	owner string
}

// tellRefusal gives the refusal its id and settles how it is told.
func (d *Decision) tellRefusal(e *RefusedError) {
	if e.ID == "" {
		e.ID = rand.Text()
	}
	d.tell(e)
}

// tell settles how the refusal is told, which is known with the decision that it is part of.
func (d *Decision) tell(e *RefusedError) {
	e.telling = telling{hide: d.hide, owner: d.ownerTold(e.Owner)}
	if d.hide != (tiers.Hide{}) {
		e.Message = e.text(d.hide)
	}
}

// graphQL returns the error that the client sees.
func (e *RefusedError) graphQL() *gqlerror.Error {
	if e.presented != nil {
		return e.presentedWithID()
	}
	hide := e.telling.hide
	refusal := ratelimitclient.Refusal{
		Code: e.Code, ID: e.ID, RetryAfter: e.RetryAfter, Owner: e.telling.owner,
	}
	if e.Limit != nil {
		refusal.Limit, refusal.Level, refusal.Unit = e.Limit.Name, e.Owner.Level.String(), string(e.Limit.Unit)
	}
	refusal.Cost, refusal.MaxCost = e.costs()
	if e.Query != nil {
		refusal.Rule, refusal.Given, refusal.Allowed = string(e.Query.Rule), int64(e.Query.Given), int64(e.Query.Allowed)
	}
	extensions := refusal.Extensions()
	if hide.Limits {
		delete(extensions, "allowed")
	}
	return &gqlerror.Error{Err: e, Message: e.Message, Extensions: extensions}
}

// presentedWithID returns the error of the user, which may be shared, with the id of the refusal beside its own
// extensions.
func (e *RefusedError) presentedWithID() *gqlerror.Error {
	presented := *e.presented
	presented.Extensions = maps.Clone(presented.Extensions)
	if presented.Extensions == nil {
		presented.Extensions = make(map[string]any, 1)
	}
	presented.Extensions["refusalId"] = e.ID
	return &presented
}

// costs returns what the operation costs and may cost as the client may know it, zero where it may not, or
// where that is not the reason.
func (e *RefusedError) costs() (points, most int64) {
	if e.MaxCost <= 0 || e.telling.hide.Cost {
		return 0, 0
	}
	if e.telling.hide.Limits {
		return e.Cost, 0
	}
	return e.Cost, e.MaxCost
}
