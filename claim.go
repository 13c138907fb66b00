package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/internal/claims"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
)

// claims finds the claim that the operation asks for, if it has a key that is honoured.
func (op *operation) claims(opCtx *graphql.OperationContext) error {
	d := &op.decision
	if op.extension.cfg.Idempotency.Keys == KeysIgnored {
		return nil
	}
	claim, err := op.extension.claims.Claim(opCtx, d.Subject, op.exchange.Socket(opCtx.Headers))
	if err != nil {
		return err
	}
	if op.claimable(d.Points) {
		op.claim, d.Keyed = claim, claim != nil
	}
	d.KeyIgnored = !d.Keyed && d.Kind != ast.Subscription && op.extension.claims.Carries(opCtx.Headers, opCtx.Extensions, false)
	return nil
}

// claimable says whether a key is honoured. What costs nothing is admitted without end under limits that
// count points alone, and so would be its records.
func (op *operation) claimable(points int64) bool {
	return points > 0 || !enforces(op.decision.Rules) || enforces(op.decision.Rules, bucket.Requests, bucket.Records)
}

// run runs an operation that was admitted, under its claim if it has one.
func (e *Extension) run(ctx context.Context, op *operation, next graphql.OperationHandler) graphql.ResponseHandler {
	if op.exchange != nil {
		op.exchange.Watch(op)
	}
	if op.claim == nil {
		return e.begin(ctx, op, next)
	}
	held := &claims.Held{
		Claim: op.claim, Tenant: op.decision.Subject.Tenant, Mutation: op.mutation(), Store: op.store, Operation: op,
	}
	op.withBeside().held = held
	return e.claims.Hold(ctx, held, func(ctx context.Context) graphql.ResponseHandler { return e.begin(ctx, op, next) })
}

var _ claims.Operation = (*operation)(nil)

// Ran says whether anything of the operation may have happened. A query always counts as run: if it
// could be released, a key would make what has no resolver, such as introspection, free.
func (op *operation) Ran(response *graphql.Response) bool {
	return !op.mutation() || op.started.Load() || response != nil && hasData(response)
}

// Account implements claims.Operation.
func (op *operation) Account(ran bool) bucket.Settlement {
	op.mu.Lock()
	defer op.mu.Unlock()
	op.claimEnded = true
	var settlement bucket.Settlement
	if op.correction != nil {
		settlement = op.worth(*op.correction)
	}
	if !ran {
		// The record goes. The rest stays charged as that of any operation that fails: what fails under ever new keys has to end somewhere.
		settlement.Receipt = op.charged.receipt()
		settlement.Actual = append(settlement.Actual, bucket.Amount{Unit: bucket.Records})
	}
	return settlement
}

// KeepAnswer charges the room that an answer takes, and reports whether it may take it. Most policies
// have no limit of it, and then this instance counts and the store is not asked.
func (op *operation) KeepAnswer(ctx context.Context, bytes int64) bool {
	buckets := judged(op.decision.Rules)
	if !enforces(op.decision.Rules, bucket.AnswerBytes) && !op.fits(ctx, int(bytes)) {
		return false
	}
	if !counts(buckets, bucket.AnswerBytes) {
		return true
	}
	after := op.chargeFrom(ctx, buckets, bucket.AnswerBytes, bytes)
	if after.Refusal != nil {
		// The limit is used up, and its client was refused nothing.
		after.Outcome = decision.Admitted
	}
	op.extension.reporter.Stored(ctx, &after)
	return after.Refusal == nil
}

// fits reports whether an answer stays within what this instance stores of the tenant's.
func (op *operation) fits(ctx context.Context, bytes int) bool {
	e, tenant := op.extension, op.decision.Subject.Tenant
	most := e.cfg.Idempotency.MaxAnswers
	if most < 0 {
		return true
	}
	share := most / max(1, op.store.Instances())
	if e.answers.Fits(storedAnswers{tenant, op.mutation()}, bytes, share, time.Now(), op.claim.TTL) {
		return true
	}
	e.warnOnce(ctx, oddity{what: "answers", tenant: tenant}, "a tenant has used up Idempotency.MaxAnswers: its answers are not stored for now. "+
		"A limit in answer_bytes says how much it may have", slog.String("tenant", shortened(tenant)), slog.Int("bytes", share))
	return false
}

// Settled counts the correction that was to be made with the end of the claim.
func (op *operation) Settled(ctx context.Context, settled *bucket.Settled, tries int, err error) {
	if op.correction == nil {
		return
	}
	told := decision.Settlement{Tier: op.decision.Rules.Tier, Reason: op.correction.reason}
	if told.Answered(settled, tries > 1); err != nil {
		told.Result = decision.DroppedAway
	}
	op.extension.reporter.Settled(ctx, &told)
}

// replay returns the stored answer. It returns nil if the replay is refused, which the decision says, or if it is of a
// query whose answer cannot be had: that runs at its price, without the claim.
func (e *Extension) replay(ctx context.Context, op *operation, points int64, kept []byte) *graphql.Response {
	d, name := &op.decision, op.claim.RecordName()
	op.claim = nil
	if refusal := e.capReplays(ctx, op); refusal != nil {
		d.Refuse(refusal)
		return nil
	}
	answer, err := e.claims.Answer(context.WithoutCancel(ctx), name, kept)
	switch {
	case err != nil && !op.mutation():
		e.warnOnce(ctx, oddity{what: "answer", tenant: d.Subject.Tenant}, "a stored answer cannot be had: its query runs again",
			slog.String("tenant", shortened(d.Subject.Tenant)), slog.String("error", err.Error()))
		// Of budgets that all tenants share the operation has been charged already.
		q := e.newQuestion(ctx, op, points)
		answer := e.takeOwn(ctx, op, q)
		q.done()
		return answer
	case errors.Is(err, claims.ErrUnreadable):
		d.Refuse(&decision.Refusal{Outcome: decision.AnswerUnavailable, Cause: err})
		return nil
	case err != nil:
		refusal := refusedUnavailable()
		refusal.Cause = fmt.Errorf("Idempotency.Answers failed, a replay is put off: %w", err)
		d.Refuse(refusal)
		return nil
	}
	d.Outcome = decision.Replayed
	return answer
}

// capReplays returns why a tenant gets no stored answer for now, nil if it gets one: the limits of its policy
// say so, or where none counts replays this server.
func (e *Extension) capReplays(ctx context.Context, op *operation) *decision.Refusal {
	if buckets := judged(op.decision.Rules); counts(buckets, bucket.Replays) {
		return op.chargeFrom(ctx, buckets, bucket.Replays, 1).Refusal
	}
	if !enforces(op.decision.Rules) {
		return nil
	}
	n, left := e.replays.Count(op.decision.Subject.Tenant, time.Now(), time.Minute)
	if n <= idempotency.MaxReplays {
		return nil
	}
	return &decision.Refusal{Outcome: decision.Limited, RetryAfter: left}
}

// worth is what the operation was worth after a correction.
func (op *operation) worth(c correction) bucket.Settlement {
	worth := bucket.Settlement{Receipt: op.charged.receipt(), Actual: bucket.Amounts{{Unit: bucket.Points, N: op.charged.points - c.points}}}
	if c.bytes > 0 {
		worth.Actual = append(worth.Actual, bucket.Amount{Unit: bucket.ResponseBytes, N: c.bytes})
	}
	return worth
}
