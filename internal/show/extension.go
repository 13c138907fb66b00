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
	o := look(d)
	top, hides, full := o.top, d.Hide != (tiers.Hide{}), asked || o.tellsAll(d)
	if !full && !hides && top != nil && !d.StoreAway() && d.Outcome != decision.Replayed && !d.KeyIgnored {
		return short(d, top)
	}
	all := whole(d, top)
	if full && !hides && top != nil {
		return all
	}
	p := partial(d, &all, top)
	if !full {
		p.shorten(d, top)
	}
	return p
}

// shortRateLimit is extensions.rateLimit of most answers: nothing is hidden, and what is absent is empty, false or usual. It is
// a struct because encoding/json compacts what marshals itself, which costs more than the reflection.
type shortRateLimit struct {
	Cost       int64   `json:"cost"`
	Charged    int64   `json:"charged"`
	Actual     *int64  `json:"actual,omitempty"`
	Refunded   int64   `json:"refunded,omitempty"`
	Limit      string  `json:"limit"`
	Level      string  `json:"level,omitempty"`
	Unit       string  `json:"unit"`
	Mode       string  `json:"mode,omitempty"`
	Capacity   int64   `json:"capacity"`
	Remaining  int64   `json:"remaining"`
	ResetAfter float64 `json:"resetAfter"`

	Approximate bool `json:"approximate,omitempty"`
}

// keyIgnored says why the key of the client is ignored, empty if it is not.
func keyIgnored(d *decision.Decision) string {
	if !d.KeyIgnored {
		return ""
	}
	switch {
	case d.Subject.Anonymous:
		return "you are anonymous, and others may send the same key: a retry runs and is charged again"
	case d.Points == 0:
		return "the operation costs nothing: a retry runs again"
	}
	return "the headers of a WebSocket belong to the connection: send the key in extensions.idempotencyKey; a retry runs and is charged again"
}

func short(d *decision.Decision, top *bucket.LimitState) shortRateLimit {
	return shortRateLimit{
		Cost: d.Points, Charged: d.Charged, Actual: shortActual(d), Refunded: d.Refunded,
		Limit: top.Limit.Name, Level: topLevel(top), Unit: string(top.Limit.Unit), Mode: shortMode(d, top),
		Capacity: top.Limit.Capacity, Remaining: top.Remaining, ResetAfter: ratelimitclient.Seconds(top.ResetAfter),
		Approximate: top.Approximate,
	}
}

// shortActual is what the operation came to, nil where that changes nothing for the client.
func shortActual(d *decision.Decision) *int64 {
	if !d.Correctable {
		return nil
	}
	return d.Actual
}

// topLevel is the level of the limit at the top, empty for that of a tenant, which is usual.
func topLevel(top *bucket.LimitState) string {
	if top.Owner.Level == bucket.Tenant {
		return ""
	}
	return top.Owner.Level.String()
}

// shortMode is what the limit at the top does when it is exceeded, empty for refusing, which is usual.
func shortMode(d *decision.Decision, top *bucket.LimitState) string {
	mode := d.Mode
	if top != nil {
		mode = top.Limit.Mode
	}
	if mode == bucket.Enforce {
		return ""
	}
	return mode.String()
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
		StoreUnavailable: d.StoreAway(),
		Validated:        d.Outcome == decision.Validated,
		Breakdown:        breakdownOf(d.Breakdown),
		KeyIgnored:       keyIgnored(d),
	}
	for i := range d.Limits {
		e.Limits[i] = limit(d, &d.Limits[i])
	}
	if top != nil {
		e.Limit, e.Level, e.Unit = top.Limit.Name, topLevel(top), string(top.Limit.Unit)
		e.Capacity, e.Remaining = top.Limit.Capacity, top.Remaining
		e.ResetAfter, e.Approximate = ratelimitclient.Seconds(top.ResetAfter), top.Approximate
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
		Capacity:   l.Limit.Capacity,
		Remaining:  l.Remaining,
		ResetAfter: ratelimitclient.Seconds(l.ResetAfter),
		Exceeded:   l.Exceeded,
		Soft:       l.Limit.Soft,
		Overdraft:  l.Overdraft,
	}
	shown.Approximate = l.Approximate
	if l.Limit.Mode != bucket.Enforce {
		shown.Mode = l.Limit.Mode.String()
	}
	return shown
}

// partialRateLimit is extensions.rateLimit without what is hidden, or where no limit was judged that is not
// soft, or short with something that is rare: its fields hide those of the same key, and what is nil is absent, because a
// remaining of 0 would read as an empty budget.
type partialRateLimit struct {
	Cost    *int64 `json:"cost,omitempty"`
	Charged *int64 `json:"charged,omitempty"`
	// These are only here for their place in the answer.
	Actual   *int64 `json:"actual,omitempty"`
	Refunded int64  `json:"refunded,omitempty"`
	Limit    string `json:"limit,omitempty"`
	Level    string `json:"level,omitempty"`
	Unit     string `json:"unit,omitempty"`

	Capacity   *int64          `json:"capacity,omitempty"`
	Remaining  *int64          `json:"remaining,omitempty"`
	ResetAfter *float64        `json:"resetAfter,omitempty"`
	Limits     *[]partialLimit `json:"limits,omitempty"`
	Tier       *string         `json:"tier,omitempty"`
	Mode       *string         `json:"mode,omitempty"`
	Replayed   *bool           `json:"replayed,omitempty"`
	// What the keys above do not hide, in the order of answers that hide nothing.
	*ratelimitclient.RateLimit
}

// wireLimit has a name of its own, because a field of ratelimitclient.RateLimit is called Limit.
type wireLimit = ratelimitclient.Limit

// partialLimit is the same of one limit.
type partialLimit struct {
	wireLimit

	Capacity   *int64   `json:"capacity,omitempty"`
	Remaining  *int64   `json:"remaining,omitempty"`
	ResetAfter *float64 `json:"resetAfter,omitempty"`
}

// partial leaves out what is hidden, and the budget if there is none.
func partial(d *decision.Decision, shown *ratelimitclient.RateLimit, top *bucket.LimitState) partialRateLimit {
	limits := make([]partialLimit, len(shown.Limits))
	p := partialRateLimit{
		Limit: shown.Limit, Level: shown.Level, Unit: shown.Unit,
		Limits: &limits, Tier: &shown.Tier, Mode: &shown.Mode, Replayed: &shown.Replayed, RateLimit: shown,
	}
	if d.Hide.Cost {
		shown.Breakdown = nil
	} else {
		p.Cost, p.Charged, p.Actual, p.Refunded = &shown.Cost, &shown.Charged, shown.Actual, shown.Refunded
	}
	if top != nil && !d.Hide.Limits {
		p.Capacity = &shown.Capacity
	}
	if top != nil && !d.Hide.Remaining {
		p.Remaining, p.ResetAfter = &shown.Remaining, &shown.ResetAfter
	}
	shown.Approximate = shown.Approximate && !d.Hide.Remaining
	for i := range limits {
		l := &limits[i]
		l.wireLimit = shown.Limits[i]
		if !d.Hide.Limits {
			l.Capacity = &l.wireLimit.Capacity
		}
		if d.Hide.Remaining {
			l.Overdraft, l.Approximate = 0, false
		} else {
			l.Remaining, l.ResetAfter = &l.wireLimit.Remaining, &l.wireLimit.ResetAfter
		}
	}
	return p
}

// shorten leaves out what short answers do not have.
func (p *partialRateLimit) shorten(d *decision.Decision, top *bucket.LimitState) {
	p.Limits, p.Tier = nil, nil
	if p.RateLimit.Mode = shortMode(d, top); p.RateLimit.Mode == "" {
		p.Mode = nil
	}
	if !p.RateLimit.Replayed {
		p.Replayed = nil
	}
	if !d.Hide.Cost {
		p.Actual = shortActual(d)
	}
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
