package ratelimit

import (
	"context"
	"sync/atomic"

	"github.com/99designs/gqlgen/graphql"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

// charged is what the take of an operation has charged for the operation itself. It is written before the
// operation runs.
type charged struct {
	// kept is the receipt, nil where nothing can correct the charge.
	kept   *bucket.Receipt
	points int64
	// limits has a bit for each limit, in the order of the decision, that was charged points.
	limits uint64
	// count is how many limits the decision had.
	count int32
	// bytes says that limits count what leaves, of which one byte was charged.
	bytes bool
	// counted says that what was admitted was counted as usage, which a settlement corrects although no limit was charged.
	counted bool
}

// corrects reports whether the tenant was charged anything to correct.
func (c *charged) corrects() bool { return c.limits != 0 || c.counted }

// receipt returns that of the charge. It is zero where nothing can correct it.
func (c *charged) receipt() bucket.Receipt {
	if c.kept == nil {
		return bucket.Receipt{}
	}
	return *c.kept
}

// correction is what is to become of a charge.
type correction struct {
	// points are given back to everybody who paid for the operation. They are charged on if negative. Zero leaves the charge as
	// it is.
	points int64
	// bytes are what the answers came to, 0 if no limit counts them.
	bytes  int64
	reason string
}

// none says that nothing is corrected.
func (c correction) none() bool { return c.points == 0 && c.bytes == 0 }

// Why a charge is corrected, in the words that metrics carry.
const (
	reasonActual   = "actual"
	reasonExcess   = "excess"
	reasonFailed   = "failed"
	reasonReleased = "released"
	// reasonBytes: nothing but the bytes of the answers is charged on.
	reasonBytes = "bytes"
	// reasonRefused: a budget that all tenants share was charged for what the tenant's own then refused.
	reasonRefused = "refused"
	// reasonShared: shared budgets are corrected, beside what the tenant was charged.
	reasonShared = "shared"
	// reasonUnclaimed: nothing is corrected but the claim of a take whose reply was lost.
	reasonUnclaimed = "unclaimed"
)

// responses is what is known of the responses of an operation when it ends.
type responses struct {
	// spoiled says that something failed, whether or not one of them tells it, delivered that one had data.
	spoiled, delivered atomic.Bool
	// cut says that an answer was larger than it may be. What it came to is not known.
	cut atomic.Bool
	// finished says that the account of the operation is closed.
	finished atomic.Bool
	// count is how many there were that said anything.
	count atomic.Int64
	// forget ends the wait for a client that leaves in the middle of a stream.
	forget func() bool
}

// note takes in a response under its own context. An operation is not clean because nobody sees its errors: extensions take
// them out of responses, and without data it has failed.
func (r *responses) note(ctx context.Context, response *graphql.Response) {
	if response == nil {
		return
	}
	r.count.Add(1)
	data := hasData(response)
	if !data || len(response.Errors) > 0 || len(graphql.GetErrors(ctx)) > 0 {
		r.spoiled.Store(true)
	}
	if data {
		r.delivered.Store(true)
	}
}

// watching wraps the middleware of all fields, so that fields that fail are known although an error presenter hides it.
func (r *responses) watching(next graphql.FieldMiddleware) graphql.FieldMiddleware {
	return func(ctx context.Context, resolve graphql.Resolver) (result any, err error) {
		returned := false
		defer func() {
			if !returned || err != nil {
				r.spoiled.Store(true)
			}
		}()
		result, err = next(ctx, resolve)
		returned = true
		return result, err
	}
}

func hasData(response *graphql.Response) bool {
	return len(response.Data) > 0 && string(response.Data) != "null"
}

// actual adds up what one operation really costs, from its responses as they leave.
type actual struct {
	outline *cost.Outline
	tally   *cost.Tally
}
