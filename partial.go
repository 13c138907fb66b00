package ratelimit

import (
	"strconv"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

// partialRateLimit is extensions.rateLimit without what is hidden, or where no limit was judged that is not
// soft: its fields hide those of the same key, and what is nil is absent, because a remaining of 0 would
// read as an empty budget.
type partialRateLimit struct {
	Cost       *int64         `json:"cost,omitempty"`
	Charged    *int64         `json:"charged,omitempty"`
	Limit      *int64         `json:"limit,omitempty"`
	Remaining  *int64         `json:"remaining,omitempty"`
	ResetAfter *float64       `json:"resetAfter,omitempty"`
	Limits     []partialLimit `json:"limits"`
	// What the keys above do not hide, in the order of answers that hide nothing.
	ratelimitclient.RateLimit
}

// wireLimit has a name of its own, because it is embedded beside a field Limit.
type wireLimit = ratelimitclient.Limit

// partialLimit is the same of one limit.
type partialLimit struct {
	wireLimit

	Limit      *int64   `json:"limit,omitempty"`
	Remaining  *int64   `json:"remaining,omitempty"`
	ResetAfter *float64 `json:"resetAfter,omitempty"`
}

// partial leaves out what is hidden, and the budget if there is none.
func (d *Decision) partial(whole ratelimitclient.RateLimit, budget bool) partialRateLimit {
	p := partialRateLimit{RateLimit: whole, Limits: make([]partialLimit, len(whole.Limits))}
	shown := &p.RateLimit
	if d.hide.Cost {
		shown.Actual, shown.Refunded, shown.Breakdown = nil, 0, nil
	} else {
		p.Cost, p.Charged = &shown.Cost, &shown.Charged
	}
	if budget && !d.hide.Limits {
		p.Limit = &shown.Limit
	}
	if budget && !d.hide.Remaining {
		p.Remaining, p.ResetAfter = &shown.Remaining, &shown.ResetAfter
	}
	for i := range p.Limits {
		l := &p.Limits[i]
		l.wireLimit = whole.Limits[i]
		if !d.hide.Limits {
			l.Limit = &l.wireLimit.Limit
		}
		if d.hide.Remaining {
			l.Overdraft = 0
		} else {
			l.Remaining, l.ResetAfter = &l.wireLimit.Remaining, &l.wireLimit.ResetAfter
		}
	}
	return p
}

// ownerTold is the name of an owner as the client may know it. Operation rules, of which an operation can
// have several, are told apart by numbers where the names are hidden.
func (d *Decision) ownerTold(owner bucket.Owner) string {
	if !d.hide.Owners {
		return owner.Name
	}
	if owner.Level != bucket.Operation {
		return ""
	}
	n := 0
	var last bucket.Owner
	for i := range d.Limits {
		if o := d.Limits[i].Owner; o.Level == bucket.Operation && o != last {
			n, last = n+1, o
		}
		if d.Limits[i].Owner == owner {
			return strconv.Itoa(n)
		}
	}
	return ""
}
