package ratelimit

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/backend"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// question is what a store is asked for an operation, and what it has answered. It is room that operations have one after the
// other: nothing that it points to is in it, so that who keeps a slice of a take or of a result keeps nothing of another one's.
type question struct {
	take  bucket.Take
	reply bucket.Result
	// would is what is known of the candidate already, and points what the operation asks for.
	would  *decision.Candidate
	points int64
	// beyond is what the backstop would have refused, nil if nothing.
	beyond *decision.Refusal
}

var questions = sync.Pool{New: func() any { return new(question) }}

// done gives the room back, with nothing in it.
func (q *question) done() {
	*q = question{}
	questions.Put(q)
}

// takeFor asks the store and turns its verdict into the decision.
func (e *Extension) takeFor(ctx context.Context, op *operation, points int64) *graphql.Response {
	q := e.newQuestion(ctx, op, points)
	// Not where something panics: nobody knows then who still has it.
	answer := e.ask(ctx, op, q)
	q.done()
	return answer
}

func (e *Extension) ask(ctx context.Context, op *operation, q *question) *graphql.Response {
	if op.decision.Rules.Across == nil && op.decision.Rules.Backstop == nil {
		return e.takeOwn(ctx, op, q)
	}
	op.decision.Asked = q.take.Amounts
	if known, ok := op.store.Foresee(ctx, &q.take); ok {
		// The shared budgets are not asked for an operation that would get them back at once.
		q.reply = known
		return e.judgedBy(ctx, op, q)
	}
	defer e.keepShared(ctx, op)
	if !e.takeShared(ctx, op, q) {
		return nil
	}
	answer := e.takeOwn(ctx, op, q)
	q.noteBeyond(&op.decision)
	return answer
}

// newQuestion returns what the store is asked for the operation.
func (e *Extension) newQuestion(ctx context.Context, op *operation, points int64) *question {
	q, _ := questions.Get().(*question)
	take := &q.take
	take.Tenant, take.Buckets, take.Claim = op.decision.Subject.Tenant, judged(op.decision.Rules), op.claim
	take.Lease = op.decision.Rules.Lease
	take.States, take.Owners = op.states[:], op.members(op.owners[:])
	q.points, q.would = points, e.try(op, take, points)
	take.Amounts, take.Usage = append(op.asked(points), op.decision.Rules.Amounts...), op.usage(ctx)
	return q
}

// asked returns what an operation takes, besides what operation rules compute. What leaves is asked for only where a limit
// counts it: a byte of the answer, which is charged on, and the first event.
func (op *operation) asked(points int64) bucket.Amounts {
	asked := append(op.amounts[:0], bucket.Amount{Unit: bucket.Points, N: points}, bucket.Amount{Unit: bucket.Requests, N: 1})
	if op.claim != nil {
		asked = append(asked, bucket.Amount{Unit: bucket.Records, N: 1})
	}
	if op.price.plan == nil {
		return asked
	}
	buckets, subscribes := judged(op.decision.Rules), op.decision.Kind == ast.Subscription
	bytes, events := counts(buckets, bucket.ResponseBytes), subscribes && counts(buckets, bucket.Events)
	if bytes {
		asked = append(asked, bucket.Amount{Unit: bucket.ResponseBytes, N: 1})
	}
	if events {
		asked = append(asked, bucket.Amount{Unit: bucket.Events, N: 1})
	}
	if op.stream = nil; subscribes && (bytes || events) {
		op.stream = &stream{}
		if events {
			op.stream.paid = 1
		}
	}
	return slices.Clip(asked)
}

// takeOwn asks the store for what is the tenant's own.
func (e *Extension) takeOwn(ctx context.Context, op *operation, q *question) *graphql.Response {
	d, take := &op.decision, &q.take
	if take.Buckets == nil && take.Claim == nil && take.Candidate == nil && take.Usage == nil {
		d.Admit()
		d.Candidate = q.would
		return nil
	}
	d.Asked = take.Amounts
	took, err := op.store.Take(ctx, take, &q.reply, backend.Caller{})
	d.StoreDuration += took
	switch {
	case errors.Is(err, backend.ErrTenantBusy):
		e.tenantBusy(op, take)
		return nil
	case err != nil && take.Buckets == nil && take.Claim == nil:
		e.candidateUnknown(op, take, err)
		return nil
	case err != nil:
		e.storeAway(ctx, op, take, q.points, err)
		return nil
	}
	return e.judgedBy(ctx, op, q)
}

// judgedBy decides by the verdict of the store.
func (e *Extension) judgedBy(ctx context.Context, op *operation, q *question) *graphql.Response {
	d, take, result := &op.decision, &q.take, &q.reply
	d.Limits, d.Overridden = result.Limits, overridden(result)
	e.warnOfOverrides(ctx, d.Subject.Tenant, result)
	d.Candidate = tried(q.would, take, result)
	if d.Candidate != nil && d.Candidate.Outcome == decision.Admitted && take.Candidate != nil {
		op.withBeside().trial = &bucket.Candidate{ID: take.Candidate.ID, Buckets: unasked(take.Candidate.Buckets)}
	}
	switch result.Verdict {
	case bucket.Replayed:
		return e.replay(ctx, op, q.points, result.Answer)
	case bucket.Admitted:
		op.keep(result, q.points)
		d.Note(d.WouldRefuseBy(result.Limits))
		d.Admit()
		if result.Repeat {
			d.Outcome = decision.Repeated
		}
		d.Pay(result.Limits, q.points)
	default:
		d.Refuse(refusedBy(result))
		op.claim = nil
	}
	return nil
}

// mayTry says whether the source is made for candidates, or has one. A mode switch is a source of candidates
// whatever it is around.
func mayTry(policy tiers.Source) bool {
	if _, rollout := policy.(*tiers.Rollout); rollout {
		return true
	}
	_, candidate := tiers.CandidateOf(policy)
	return candidate != nil
}

// try asks in the take what the candidate would do, if there is one. What needs no store is decided here.
func (e *Extension) try(op *operation, take *bucket.Take, points int64) *decision.Candidate {
	id, snapshot := tiers.CandidateOf(e.cfg.Policy)
	if snapshot == nil || op.decision.Subject.Exempt || (&bucket.Candidate{ID: id}).Check() != nil {
		return nil
	}
	var record *tiers.Record
	if live := op.decision.Selected; live != nil {
		record = live.Record
	}
	rules := snapshot.Rules(op.decision.Subject, op.selected(snapshot, record).selected)
	would := &decision.Candidate{ID: id, Outcome: decision.Admitted}
	_, mode := rules.MaxCost.Exceeded(points)
	switch {
	case rules.Blocked:
		would.Outcome = decision.Blocked
	case mode == bucket.Enforce:
		would.Outcome = decision.TooExpensive
	case rules.TooMany != nil && rules.TooMany.Mode == bucket.Enforce:
		would.Outcome = decision.QueryLimited
	default:
		if buckets := judged(&rules); buckets != nil {
			take.Candidate = &bucket.Candidate{ID: id, Buckets: asking(buckets, rules.Amounts, op.decision.Rules.Amounts)}
		}
	}
	return would
}

// tried returns what the candidate came to, nil if the answer of the store was none of a policy's.
func tried(would *decision.Candidate, take *bucket.Take, result *bucket.Result) *decision.Candidate {
	fresh := result.Verdict == bucket.Admitted && !result.Repeat || result.Verdict == bucket.Limited || result.Verdict == bucket.Never
	if would == nil || !fresh {
		return nil
	}
	if take.Candidate == nil {
		return would
	}
	if result.Candidate == nil {
		return nil
	}
	would.Limits = result.Candidate.Limits
	switch result.Candidate.Verdict {
	case bucket.Limited:
		would.Outcome = decision.Limited
	case bucket.Never:
		would.Outcome = decision.TooExpensive
	default:
	}
	return would
}

// keep notes what the take has charged.
func (op *operation) keep(result *bucket.Result, points int64) {
	c := &op.charged
	c.points, c.count, c.counted = points, int32(len(result.Limits)), op.decision.Rules.Usage != tiers.CountNothing && !result.Receipt.IsZero()
	for i := range result.Limits {
		switch l := &result.Limits[i]; {
		case l.Charged <= 0:
		case l.Limit.Unit == bucket.Points:
			c.limits |= 1 << i
		case l.Limit.Unit == bucket.ResponseBytes:
			c.bytes = true
		}
	}
	if op.claim != nil || c.bytes || op.extension.cfg.Settlement.corrects() {
		receipt := result.Receipt
		c.kept = &receipt
	}
}
