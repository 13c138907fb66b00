package ratelimit

import (
	"math"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// extensionKey is where the facts stand in the response's extensions.
const extensionKey = "rateLimit"

// extension returns the value of extensions.rateLimit.
func (d *Decision) extension() any {
	whole := d.rateLimit()
	budget := d.tightestPacing() != nil
	if budget && d.hide == (tiers.Hide{}) {
		return whole
	}
	return d.partial(whole, budget)
}

func (d *Decision) rateLimit() ratelimitclient.RateLimit {
	signal := ratelimitclient.RateLimit{
		Cost:             d.Points,
		Charged:          d.Charged,
		Actual:           d.Actual,
		Refunded:         d.Refunded,
		Limits:           make([]ratelimitclient.Limit, len(d.Limits)),
		Tier:             d.Tier,
		Mode:             d.Mode.String(),
		Replayed:         d.Outcome == Replayed,
		StoreUnavailable: d.Outcome == Unjudged || d.Outcome == Unavailable || d.Outcome.locally(),
		Validated:        d.Outcome == Validated,
		Breakdown:        breakdownOf(d.Breakdown),
	}
	for i := range d.Limits {
		signal.Limits[i] = d.limitTold(&d.Limits[i])
	}
	if tightest := d.tightestPacing(); tightest != nil {
		signal.Limit = tightest.Limit.Capacity
		signal.Remaining = tightest.Remaining
		signal.ResetAfter = ratelimitclient.Seconds(tightest.ResetAfter)
	}
	if d.Refusal != nil {
		signal.RetryAfter = ratelimitclient.Seconds(d.Refusal.RetryAfter)
	}
	if d.WouldRefuse != nil {
		signal.WouldRefuse = d.WouldRefuse.Code
		signal.Warning = d.WouldRefuse.warning()
	}
	return signal
}

// limitTold is the state of one limit as the client may know it.
func (d *Decision) limitTold(l *bucket.LimitState) ratelimitclient.Limit {
	told := ratelimitclient.Limit{
		Name:       l.Limit.Name,
		Level:      l.Owner.Level.String(),
		Owner:      d.ownerTold(l.Owner),
		Unit:       string(l.Limit.Unit),
		Limit:      l.Limit.Capacity,
		Remaining:  l.Remaining,
		ResetAfter: ratelimitclient.Seconds(l.ResetAfter),
		Exceeded:   l.Exceeded,
		Soft:       l.Limit.Soft,
		Overdraft:  l.Overdraft,
	}
	if l.Limit.Mode != bucket.Enforce {
		told.Mode = l.Limit.Mode.String()
	}
	return told
}

// tightest returns the limit with the smallest remaining share of those that are not soft, nil if there
// is none.
func (d *Decision) tightest() *bucket.LimitState {
	return d.tightestOf(func(l *bucket.LimitState) bool { return !l.Limit.Soft })
}

// tightestPacing is the tightest of the limits that clients pace themselves by.
func (d *Decision) tightestPacing() *bucket.LimitState {
	mode := d.pacingMode()
	return d.tightestOf(func(l *bucket.LimitState) bool { return paces(l, mode) })
}

func (d *Decision) tightestOf(chosen func(*bucket.LimitState) bool) *bucket.LimitState {
	var tightest *bucket.LimitState
	share := math.Inf(1)
	for i := range d.Limits {
		l := &d.Limits[i]
		if s := float64(l.Remaining) / float64(l.Limit.Capacity); s < share && chosen(l) {
			share, tightest = s, l
		}
	}
	return tightest
}

// pacingMode is the strictest mode of the limits: clients pace themselves by those that refuse, since for any
// other they would wait for nothing, and only where none does by what is to come.
func (d *Decision) pacingMode() bucket.Mode {
	mode := bucket.Off
	for i := range d.Limits {
		if l := d.Limits[i].Limit; !l.Soft {
			mode = min(mode, l.Mode)
		}
	}
	return mode
}

func paces(l *bucket.LimitState, mode bucket.Mode) bool {
	return !l.Limit.Soft && l.Limit.Mode == mode
}
