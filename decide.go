package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// decide finds out who pays, what the rules are and whether the budget suffices, in one call of the
// store. The response is the stored answer of a replay, and nil otherwise.
func (e *Extension) decide(ctx context.Context, opCtx *graphql.OperationContext) (*operation, *graphql.Response) {
	op := &operation{extension: e, mutation: opCtx.Operation.Operation == ast.Mutation}
	d := &op.decision
	ctx, span := e.telemetry.start(ctx)
	answer := e.judge(ctx, opCtx, op)
	e.telemetry.end(ctx, span, d, opCtx.Operation.Operation)
	e.observe(ctx, d)
	return op, answer
}

// judge fills the decision of the operation.
func (e *Extension) judge(ctx context.Context, opCtx *graphql.OperationContext, op *operation) *graphql.Response {
	d := &op.decision
	price, _ := opCtx.Stats.GetExtension(extensionName).(*priced)
	if price == nil {
		// Another extension replaced the operation after it was priced: it was never judged.
		d.refuse(refusedUnavailable())
		return nil
	}
	d.Cost, d.Points = price.cost, price.points

	if price.plan != nil {
		d.RootFields = price.plan.RootFields()
	}
	if !e.identify(ctx, opCtx, op) {
		return nil
	}
	if price.err != nil {
		d.wouldRefuse(refusedQuery(price.err))
	} else if maxCost := op.rules.MaxCost; maxCost > 0 && d.Points > maxCost {
		d.wouldRefuse(refusedTooExpensive(d.Points, maxCost))
	}
	if d.Refusal != nil {
		return nil
	}

	claim, err := e.claim(opCtx, d.Subject)
	if err != nil {
		d.refuse(refusedKeyInvalid(err))
		return nil
	}
	op.claim = claim
	return e.takeFor(ctx, op, d.Points)
}

// decideInvalid decides about a document that failed to parse or validate. It returns nil if there is
// nothing to decide.
func (e *Extension) decideInvalid(ctx context.Context, opCtx *graphql.OperationContext) *operation {
	op := &operation{extension: e}
	d := &op.decision
	ctx, span := e.telemetry.start(ctx)
	d.Points = e.cfg.InvalidDocumentPoints
	if e.identify(ctx, opCtx, op) {
		e.takeFor(ctx, op, d.Points)
	}
	if d.Outcome == SubjectUnknown && onWebSocket(opCtx.Headers) {
		// gqlgen shows the init payload only to valid operations. Until one has been seen, the client is
		// better told what is wrong with its document than that nobody knows it.
		span.End()
		return nil
	}
	e.telemetry.end(ctx, span, d, "")
	e.observe(ctx, d)
	return op
}

// identify finds the subject and its rules. It returns false if the decision is made.
func (e *Extension) identify(ctx context.Context, opCtx *graphql.OperationContext, op *operation) bool {
	d := &op.decision
	request := Request{
		Header:      opCtx.Headers,
		InitPayload: transport.GetInitPayload(ctx),
		Operation:   opCtx.Operation,
		Variables:   opCtx.Variables,
	}
	if x := exchangeFrom(ctx); x != nil {
		request.Peer = x.peer
		request.InitPayload = x.remember(request.InitPayload)
	}
	subject, err := e.subject(ctx, &request)
	if err != nil {
		refusal := refusedSubject(err)
		if refusal.Outcome == Unavailable {
			e.cfg.Logger.Error("ratelimit: Config.Subject failed", "error", err)
		}
		d.refuse(refusal)
		return false
	}
	d.Subject = subject
	if subject.Exempt {
		// Nothing is judged, but the keys of an exempt tenant are honoured.
		op.rules, d.Mode, d.Outcome = tiers.Rules{Unlimited: true, Mode: bucket.Off}, bucket.Off, Exempt
		return subject.Tenant != ""
	}
	op.rules = e.cfg.Policy.Snapshot().Rules(subject, d.RootFields)
	d.Tier, d.Mode = op.rules.Tier, op.rules.Mode
	if op.rules.Blocked {
		d.refuse(refusedBlocked())
		return false
	}
	return true
}

// subject calls the user's function. A panic in it, in gqlgen's hook, would end a whole WebSocket.
func (e *Extension) subject(ctx context.Context, request *Request) (subject Subject, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%w: %v", errSubjectPanicked, cause)
		}
	}()
	subject, err = e.cfg.Subject(ctx, request)
	if err == nil && subject.Tenant == "" && !subject.Exempt {
		err = ErrNoSubject
	}
	return subject, err
}

var errSubjectPanicked = errors.New("ratelimit: Config.Subject panicked")

// takeFor asks the store and turns its verdict into the decision.
func (e *Extension) takeFor(ctx context.Context, op *operation, points int64) *graphql.Response {
	d := &op.decision
	take := bucket.Take{Tenant: d.Subject.Tenant, Buckets: judged(&op.rules), Claim: op.claim}
	if take.Buckets == nil && take.Claim == nil {
		d.admit()
		return nil
	}
	take.Amounts = bucket.Amounts{{Unit: bucket.Points, N: points}, {Unit: bucket.Requests, N: 1}}

	result, took, err := e.take(ctx, take)
	d.StoreDuration = took
	if err != nil {
		e.storeAway(op, err)
		return nil
	}
	d.Limits = result.Limits
	switch result.Verdict {
	case bucket.Admitted:
		op.receipt = result.Receipt
		if d.WouldRefuse == nil {
			d.WouldRefuse = refusedByLimits(result.Limits, shadowed)
		}
		d.admit()
		if result.Repeat {
			d.Outcome = Repeated
		}
		d.Charged = chargedPoints(result.Limits, points)
		return nil
	case bucket.Limited, bucket.Never:
		d.refuse(refusedByLimits(result.Limits, enforced))
	case bucket.Replayed:
		return e.replay(op, result.Answer)
	default:
		d.refuse(refusedByClaim(&result))
	}
	op.claim = nil
	return nil
}

// take calls the store and measures it. The store has a deadline of its own; a client that leaves does
// not end the call, or it could spend without paying.
func (e *Extension) take(ctx context.Context, take bucket.Take) (bucket.Result, time.Duration, error) {
	ctx = context.WithoutCancel(ctx)
	start := time.Now()
	result, err := e.cfg.Store.Take(ctx, take)
	took := time.Since(start)
	e.stored(ctx, "take", took, err)
	return result, took, err
}

// storeAway decides by the fail mode. A keyed mutation is refused whatever the mode, because it may
// be a repeat of one that ran.
func (e *Extension) storeAway(op *operation, err error) {
	d := &op.decision
	d.StoreErr = err
	unclaimed := op.claim != nil && op.mutation && !e.cfg.Idempotency.AdmitUnclaimed
	op.claim = nil
	if unclaimed || failsClosed(&op.rules, err) {
		d.refuse(refusedUnavailable())
		return
	}
	d.Outcome = Unjudged
}

// judged returns the buckets to ask the store about, nil if no limit in them is judged.
func judged(rules *tiers.Rules) []bucket.Bucket {
	if rules.Unlimited {
		return nil
	}
	for i := range rules.Buckets {
		if rules.Buckets[i].Limits.Len() > 0 {
			return rules.Buckets
		}
	}
	return nil
}

// failsClosed says whether an error of the store refuses what it was asked about. A call that was wrong
// in itself is a mistake of this library, which must not open the gate.
func failsClosed(rules *tiers.Rules, err error) bool {
	return errors.Is(err, bucket.ErrInvalid) || failMode(rules) == bucket.FailClosed
}

// failMode is closed if any limit that could refuse is closed. Without limits it is that of the tier.
func failMode(rules *tiers.Rules) bucket.FailMode {
	buckets := judged(rules)
	if buckets == nil && rules.Mode == bucket.Enforce {
		return rules.FailMode
	}
	for i := range buckets {
		for _, limit := range buckets[i].Limits.All() {
			if limit.Mode == bucket.Enforce && limit.FailMode == bucket.FailClosed {
				return bucket.FailClosed
			}
		}
	}
	return bucket.FailOpen
}

// chargedPoints is the price if any limit that counts points was charged, else 0.
func chargedPoints(limits []bucket.LimitState, points int64) int64 {
	for i := range limits {
		if limits[i].Limit.Unit == bucket.Points && limits[i].Charged > 0 {
			return points
		}
	}
	return 0
}

// observe tells the user's function.
func (e *Extension) observe(ctx context.Context, d *Decision) {
	if e.cfg.OnDecision == nil {
		return
	}
	defer func() {
		if cause := recover(); cause != nil {
			e.cfg.Logger.ErrorContext(ctx, "ratelimit: Config.OnDecision panicked", slog.String("cause", fmt.Sprint(cause)))
		}
	}()
	e.cfg.OnDecision(ctx, *d)
}

func (d *Decision) refuse(refusal *RefusedError) {
	d.Outcome, d.Refusal = refusal.Outcome, refusal
}

// wouldRefuse refuses, or notes in shadow mode that it would have. In mode off it does neither.
func (d *Decision) wouldRefuse(refusal *RefusedError) {
	switch d.Mode {
	case bucket.Off:
	case bucket.Shadow:
		d.WouldRefuse = refusal
	default:
		d.refuse(refusal)
	}
}

func (d *Decision) admit() {
	switch {
	case d.Subject.Exempt:
		d.Outcome = Exempt
	case d.WouldRefuse != nil:
		d.Outcome = Shadowed
	default:
		d.Outcome = Admitted
	}
}

// onWebSocket says whether the headers are those of an upgrade.
func onWebSocket(header http.Header) bool {
	return strings.EqualFold(header.Get("Upgrade"), "websocket")
}
