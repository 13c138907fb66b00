package ratelimit

import (
	"context"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
	"github.com/gqlgen-ratelimit/ratelimit/internal/show"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

// Decision is what was decided about one operation.
type Decision struct {
	// Outcome is the verdict.
	Outcome Outcome
	// Subject is who pays.
	Subject Subject
	// Tier is the tier whose rules applied. It is empty if none was looked up.
	Tier string
	// Mode is the mode of these rules.
	Mode bucket.Mode
	// RootFields are the coordinates of the root fields that the operation selects, sorted, such as
	// Mutation.createOrder. The slice is shared: do not change it.
	RootFields []string
	// Cost is the static cost of the operation. It is zero for a document that did not validate.
	Cost cost.Cost
	// Breakdown explains Cost. It is nil unless the client has asked for it and may.
	Breakdown *cost.Breakdown
	// Points is the price of the operation in points. A subscription pays it once, when it begins: its base
	// and one event.
	Points int64
	// Charged is how many points the subject pays: 0 for a refusal, a replay, and where no limit
	// counts points.
	Charged int64
	// Refunded is how many of the points charged are being given back, because the operation came to less. It
	// is zero until the operation has run.
	Refunded int64
	// Actual is what the first response came to in points, by the lists that it really has. It is nil before
	// that, where it is not known, and where nobody reads it: no metrics, no settlement, and no client that asks.
	Actual *int64
	// Limits is the state of every limit that was judged, as of the decision or of the last [Charge]. An operation that
	// was judged locally has those limits that fail local, with what remains of the share of this instance.
	Limits []bucket.LimitState
	// Overridden says that an override record, and not the policy alone, has decided: it blocked the
	// operation, or changed one of the Limits. bucket.OverrideStore tells which, why, and by whom.
	Overridden bool
	// Candidate is what the candidate policy would have decided. It is nil if there is none, or if the
	// operation was decided without asking what is left: it is too expensive or malformed, its tenant is
	// blocked, its key was used before, or the store is away.
	Candidate *CandidateDecision
	// Refusal is why the operation does not run. It is nil if the operation runs or was replayed.
	Refusal *RefusedError
	// WouldRefuse is why the operation would not have run if everything were enforced; its Mode says
	// whether that is in mode warn or shadow. It is nil if the operation would have run. Where the
	// Outcome is Validated, it is why the operation can never run.
	WouldRefuse *RefusedError
	// StoreErr is the error of the store. It matches bucket.ErrUnavailable or bucket.ErrAmbiguous.
	StoreErr error
	// StoreDuration is how long the store took. It is zero if the store was not asked, or if the memory of its refusals
	// answered instead.
	StoreDuration time.Duration
}

// CandidateDecision is what the candidate of a tiers.CandidateSource would have decided. No client is told
// of it.
type CandidateDecision struct {
	// ID is that of the candidate.
	ID string
	// Outcome is OutcomeAdmitted, OutcomeLimited, OutcomeTooExpensive or OutcomeBlocked.
	Outcome Outcome
	// Limits is the state of every limit of the candidate that was judged.
	Limits []bucket.LimitState
}

// FromContext returns the decision about the operation that ctx belongs to, for resolvers and for
// other extensions. It returns false if the extension has not decided. The limits are shared: do not
// change them.
func FromContext(ctx context.Context) (Decision, bool) {
	op := operationFrom(ctx)
	if op == nil {
		return Decision{}, false
	}
	d := op.snapshot()
	return public(&d), true
}

// public returns a decision as users know it.
func public(d *decision.Decision) Decision {
	p := Decision{
		Outcome: Outcome(d.Outcome), Subject: d.Subject, Tier: d.Tier, Mode: d.Mode, RootFields: d.RootFields,
		Cost: d.Cost, Breakdown: d.Breakdown,
		Points: d.Points, Charged: d.Charged, Refunded: d.Refunded, Actual: d.Actual,
		Limits: d.Limits, Overridden: d.Overridden, StoreErr: d.StoreErr, StoreDuration: d.StoreDuration,
	}
	if would := d.Candidate; would != nil {
		p.Candidate = &CandidateDecision{ID: would.ID, Outcome: Outcome(would.Outcome), Limits: would.Limits}
	}
	if d.Refusal != nil {
		p.Refusal = refusedError(d, d.Refusal, show.Message(d, d.Refusal))
	}
	if d.WouldRefuse != nil {
		p.WouldRefuse = refusedError(d, d.WouldRefuse, show.Message(d, d.WouldRefuse))
	}
	return p
}

// BudgetFromContext answers the field rateLimit of ratelimit-field.graphqls, with which clients read their
// budget by a query. A resolver of that field has one line:
//
//	func (r *queryResolver) RateLimit(ctx context.Context) (*ratelimitclient.Budget, error) {
//		return ratelimit.BudgetFromContext(ctx), nil
//	}
//
// The limit in it is, of those that clients pace themselves by, the one in points with the smallest share
// left, as of the decision or of the last [Charge]; where none counts points, the one of any unit. Where a number is
// hidden that decides which one that is, it is another. Nothing is asked of the store.
//
// What is hidden from the client is nil. It returns nil, which is null, for subjects that are exempt, and if
// the extension has not decided about the operation.
func BudgetFromContext(ctx context.Context) *ratelimitclient.Budget {
	op := operationFrom(ctx)
	if op == nil {
		return nil
	}
	d := op.snapshot()
	return show.Budget(&d, time.Now())
}
