package ratelimit

import (
	"crypto/rand"
	"maps"
	"net/http"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// telling is how a refusal is told to its client.
type telling struct {
	hide tiers.Hide
	// owner is the name of the owner as the client may know it.
	owner string
	// problem is nil unless problem details are asked for.
	problem *ratelimitclient.Problem
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
	if d.signals != nil && d.signals.ProblemDetails {
		e.telling.problem = d.problem(e)
	}
}

// graphQL returns the error that the client sees.
func (e *RefusedError) graphQL() *gqlerror.Error {
	if e.presented != nil {
		return e.presentedWithID()
	}
	hide := e.telling.hide
	refusal := ratelimitclient.Refusal{
		Code: e.Code, ID: e.ID, RetryAfter: e.RetryAfter, Owner: e.telling.owner, Problem: e.telling.problem,
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

// The problem types that the draft of the RateLimit headers registers, with their titles.
const (
	problemQuota         = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	problemQuotaTitle    = "Request cannot be satisfied as assigned quota has been exceeded"
	problemCapacity      = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
	problemCapacityTitle = "Request cannot be satisfied due to temporary server capacity constraints"
	// problemBlank says that there is no more to say than the status (RFC 9457, section 4.2.1).
	problemBlank = "about:blank"
)

// problem returns the problem details of a refusal.
func (d *Decision) problem(e *RefusedError) *ratelimitclient.Problem {
	p := &ratelimitclient.Problem{
		Type: problemBlank, Title: http.StatusText(e.Status), Status: d.signals.statusOf(e), Detail: e.Message,
	}
	switch e.Code {
	case CodeRateLimited:
		p.Type, p.Title = problemQuota, problemQuotaTitle
		for i := range d.Limits {
			if l := &d.Limits[i]; enforced(l) {
				p.ViolatedPolicies = append(p.ViolatedPolicies, policyName(l.Owner.Level, d.ownerTold(l.Owner), l.Limit.Name))
			}
		}
	case CodeUnavailable:
		p.Type, p.Title = problemCapacity, problemCapacityTitle
	}
	return p
}

// policyName is the name of a limit in headers and problem details, before it is quoted: unique among the
// limits of a decision. Limits of the tenant have their bare name.
func policyName(level bucket.Level, owner, limit string) string {
	switch {
	case level == bucket.Tenant:
		return limit
	case owner == "":
		return level.String() + ":" + limit
	default:
		return level.String() + ":" + owner[:min(len(owner), maxHeaderName)] + ":" + limit
	}
}
