package ratelimit

import (
	"context"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// apart is what is to become of the charge of an operation whose calls paid to different owners.
type apart struct {
	// owners are what those are worth who paid for some of the calls alone.
	owners []bucket.OwnerAmounts
	// back is what of the parts is given back, and more what they are charged on.
	back, more int64
}

// pricesOfParts are what parts of an operation came to.
type pricesOfParts struct {
	extension *Extension
	tally     *cost.Tally
}

var _ tiers.Prices = pricesOfParts{}

// Price implements tiers.Prices.
func (p pricesOfParts) Price(includes func(field string) bool) int64 {
	// Whoever asks knows that the whole is known.
	came, _ := p.tally.PartCost(includes)
	return p.extension.price(context.Background(), came)
}

// correctApart decides what is given back and charged on where calls paid to different owners: to each what its own calls came to,
// so that a short list of one hides no long list of another. came is what the whole came to.
func (e *Extension) correctApart(op *operation, came int64, refund bool) correction {
	a := &apart{}
	excess := e.cfg.Settlement.ChargeExcess
	worth := func(charged, came int64) int64 {
		if came < charged && !refund || came > charged && !excess {
			return charged
		}
		return came
	}
	whole := op.charged.points
	c := correction{points: whole - worth(whole, came), apart: a}
	for _, part := range op.decision.Rules.Parts(pricesOfParts{e, op.actual.tally}) {
		n := worth(part.Asked, part.Came)
		a.back, a.more = a.back+max(0, part.Asked-n), a.more+max(0, n-part.Asked)
		for _, owner := range part.Owners {
			a.owners = append(a.owners, bucket.OwnerAmounts{Owner: owner, Amounts: bucket.Amounts{{Unit: bucket.Points, N: n}}})
		}
	}
	switch {
	case c.points == 0 && a.back == 0 && a.more == 0:
		return correction{}
	case a.more > a.back:
		c.reason = reasonExcess
	default:
		c.reason = reasonActual
	}
	return c
}

// worthTo returns what an owner was worth that was asked for some points, after a correction.
func (op *operation) worthTo(owner bucket.Owner, asked int64, c correction) int64 {
	if c.apart != nil {
		for i := range c.apart.owners {
			if c.apart.owners[i].Owner == owner {
				return c.apart.owners[i].Amounts.Of(bucket.Points)
			}
		}
	}
	return bucket.Worth(asked, op.charged.points-c.points, op.charged.points)
}
