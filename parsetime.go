package ratelimit

import (
	"context"
	"math"
	"math/rand/v2"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// What parsing and validating a document takes at most on a machine that has nothing else to do: a text of one field, and
// each byte of the worst documents that were found. Nobody pays for a machine that is busy with others.
const (
	parseBase    = 50 * time.Microsecond
	parsePerByte = time.Microsecond
)

// reasonParsed is why a charge is corrected that was taken for parsing.
const reasonParsed = "parsed"

// parseTime returns how long it took to parse and validate the document of an operation, within what a document of its
// size takes at most. It is zero for a document that was in the cache.
func parseTime(opCtx *graphql.OperationContext) time.Duration {
	parsing, validation := &opCtx.Stats.Parsing, &opCtx.Stats.Validation
	// gqlgen writes down one moment for both where it has found the document.
	if parsing.Start.IsZero() || !parsing.End.IsZero() && parsing.End.Equal(validation.Start) {
		return 0
	}
	end := validation.End
	if end.IsZero() {
		end = graphql.Now()
	}
	most := parseBase + parsePerByte*time.Duration(len(opCtx.RawQuery))
	return min(max(0, end.Sub(parsing.Start)), most)
}

// milliseconds rounds to one of the two whole numbers beside the time, at random and so that the sum of many is right:
// most documents take a part of a millisecond, of which many are something and one is nothing.
func milliseconds(d time.Duration) int64 {
	return int64((d + rand.N(time.Millisecond)) / time.Millisecond) //nolint:gosec // It spreads what is charged and is no secret.
}

// takeParsed charges the time that the document has taken, in a call of its own, before that for the operation: it was
// spent whatever becomes of that. The first millisecond is asked for and can be refused; the rest is charged on and may
// overdraw. It returns false if the decision is made.
//
// A claim makes it a part of the take of the operation, since a replay is refused by no limit.
func (e *Extension) takeParsed(ctx context.Context, opCtx *graphql.OperationContext, op *operation) bool {
	buckets := judged(op.decision.Rules)
	if !counts(buckets, bucket.ParseTime) {
		return true
	}
	n := milliseconds(parseTime(opCtx))
	if n == 0 || op.claim != nil {
		op.parsed = int32(min(n, math.MaxInt32))
		return true
	}
	d := &op.decision
	take := bucket.Take{
		Tenant: d.Subject.Tenant, Buckets: unasked(buckets), Owners: op.members(nil),
		Amounts: bucket.Amounts{{Unit: bucket.ParseTime, N: 1}}, Usage: op.usageOfCharge(ctx, bucket.ParseTime, 1),
		Lease: d.Rules.Lease,
	}
	var result bucket.Result
	took, err := op.store.Take(ctx, &take, &result)
	d.StoreDuration += took
	if err != nil {
		// The take for the operation decides what that means.
		return true
	}
	if refusal := refusedBy(&result); refusal != nil {
		d.Asked, d.Limits, d.Overridden = take.Amounts, result.Limits, overridden(&result)
		d.Refuse(refusal)
		return false
	}
	if n > 1 && !result.Receipt.IsZero() {
		op.store.Offer(ctx, bucket.Settlement{
			Receipt: result.Receipt.Clone(), Actual: bucket.Amounts{{Unit: bucket.ParseTime, N: n}},
		}, reasonParsed, op.decision.Rules.Tier)
	}
	return true
}

// withParsed adds to the amounts of a take under a claim the first millisecond, and to those of its settlement all of them.
func (op *operation) withParsed(amounts bucket.Amounts, most int64) bucket.Amounts {
	if op.parsed == 0 || op.claim == nil {
		return amounts
	}
	return append(amounts, bucket.Amount{Unit: bucket.ParseTime, N: min(int64(op.parsed), most)})
}
