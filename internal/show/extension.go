package show

import (
	"strconv"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// ExtensionKey is where the extension stands in a response.
const ExtensionKey = "rateLimit"

// Extension returns the value of extensions.rateLimit, nil if the client is told nothing. Who may ask for a price and did
// is told it, and a stored answer says that it is one.
func Extension(d *decision.Decision) any {
	quiet, asked := silent(d), d.Breakdown != nil || d.Outcome == decision.Validated
	if quiet && !asked && d.Outcome != decision.Replayed {
		return nil
	}
	d = seen(d)
	if quiet && !asked {
		unpriced := *d
		unpriced.Hide.Cost, d = true, &unpriced
	}
	top := headline(d, "")
	all := whole(d, top)
	if top != nil && d.Hide == (tiers.Hide{}) {
		return all
	}
	return partial(d, all, top != nil)
}

// whole returns the extension with nothing hidden, and the limit at its top.
func whole(d *decision.Decision, top *bucket.LimitState) ratelimitclient.RateLimit {
	e := ratelimitclient.RateLimit{
		Cost:             d.Points,
		Charged:          d.Charged,
		Actual:           d.Actual,
		Refunded:         d.Refunded,
		Limits:           make([]ratelimitclient.Limit, len(d.Limits)),
		Tier:             d.Tier,
		Mode:             d.Mode.String(),
		Replayed:         d.Outcome == decision.Replayed,
		StoreUnavailable: d.Outcome == decision.Unjudged || d.Outcome == decision.Unavailable || d.Outcome.Locally(),
		Validated:        d.Outcome == decision.Validated,
		Breakdown:        breakdownOf(d.Breakdown),
	}
	for i := range d.Limits {
		e.Limits[i] = limit(d, &d.Limits[i])
	}
	if top != nil {
		e.Limit = top.Limit.Capacity
		e.Remaining = top.Remaining
		e.ResetAfter = ratelimitclient.Seconds(top.ResetAfter)
	}
	if d.Refusal != nil {
		e.RetryAfter = ratelimitclient.Seconds(RetryAfter(d, d.Refusal))
	}
	if d.WouldRefuse != nil {
		e.WouldRefuse = d.WouldRefuse.Outcome.Code()
		e.Warning = warning(d, d.WouldRefuse)
	}
	return e
}

// limit is the state of one limit as the client may know it.
func limit(d *decision.Decision, l *bucket.LimitState) ratelimitclient.Limit {
	shown := ratelimitclient.Limit{
		Name:       l.Limit.Name,
		Level:      l.Owner.Level.String(),
		Owner:      owner(d, l.Owner),
		Unit:       string(l.Limit.Unit),
		Limit:      l.Limit.Capacity,
		Remaining:  l.Remaining,
		ResetAfter: ratelimitclient.Seconds(l.ResetAfter),
		Exceeded:   l.Exceeded,
		Soft:       l.Limit.Soft,
		Overdraft:  l.Overdraft,
	}
	if l.Limit.Mode != bucket.Enforce {
		shown.Mode = l.Limit.Mode.String()
	}
	return shown
}

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
func partial(d *decision.Decision, whole ratelimitclient.RateLimit, budget bool) partialRateLimit {
	p := partialRateLimit{RateLimit: whole, Limits: make([]partialLimit, len(whole.Limits))}
	shown := &p.RateLimit
	if d.Hide.Cost {
		shown.Actual, shown.Refunded, shown.Breakdown = nil, 0, nil
	} else {
		p.Cost, p.Charged = &shown.Cost, &shown.Charged
	}
	if budget && !d.Hide.Limits {
		p.Limit = &shown.Limit
	}
	if budget && !d.Hide.Remaining {
		p.Remaining, p.ResetAfter = &shown.Remaining, &shown.ResetAfter
	}
	for i := range p.Limits {
		l := &p.Limits[i]
		l.wireLimit = whole.Limits[i]
		if !d.Hide.Limits {
			l.Limit = &l.wireLimit.Limit
		}
		if d.Hide.Remaining {
			l.Overdraft = 0
		} else {
			l.Remaining, l.ResetAfter = &l.wireLimit.Remaining, &l.wireLimit.ResetAfter
		}
	}
	return p
}

// owner is the name of an owner as the client may know it. Operation rules, of which an operation can have several, are
// told apart by numbers where the names are hidden, and so are the parts of one always.
func owner(d *decision.Decision, o bucket.Owner) string {
	switch {
	case !d.Hide.Owners && o.Part == "":
		return o.Name
	case !d.Hide.Owners:
		return o.Name + "#" + place(d, o, func(other bucket.Owner) bool { return other.Part != "" && other.Name == o.Name })
	case o.Level != bucket.Operation:
		return ""
	default:
		return place(d, o, func(bucket.Owner) bool { return true })
	}
}

// place is the number of an operation among those that are counted, empty if it is none of the decision.
func place(d *decision.Decision, o bucket.Owner, counted func(bucket.Owner) bool) string {
	if d.Rules == nil {
		return ""
	}
	n := 0
	for _, buckets := range [...][]bucket.Bucket{d.Rules.Buckets, d.Rules.Across} {
		for i := range buckets {
			other := buckets[i].Owner
			if other.Level == bucket.Operation && counted(other) {
				n++
			}
			if other == o {
				return strconv.Itoa(n)
			}
		}
	}
	return ""
}
