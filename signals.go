package ratelimit

import (
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

// extensionKey is where the facts stand in the response's extensions.
const extensionKey = "rateLimit"

// HeaderForm is the dialect of the rate limit headers. The zero value is the current draft.
type HeaderForm uint8

const (
	// HeadersDraft10 writes RateLimit and RateLimit-Policy as draft-ietf-httpapi-ratelimit-headers-10
	// does, with the unit in the parameter qu.
	HeadersDraft10 HeaderForm = iota
	// HeadersNone writes neither. Retry-After is still written.
	HeadersNone
)

// withoutBudget is extensions.rateLimit where no limit was judged: its fields hide those of the
// budget, because a remaining of 0 would read as an empty one.
type withoutBudget struct {
	ratelimitclient.RateLimit
	Limit      *struct{} `json:"limit,omitempty"`
	Remaining  *struct{} `json:"remaining,omitempty"`
	ResetAfter *struct{} `json:"resetAfter,omitempty"`
}

// extension returns the value of extensions.rateLimit.
func (d *Decision) extension() any {
	if len(d.Limits) == 0 {
		return withoutBudget{RateLimit: d.rateLimit()}
	}
	return d.rateLimit()
}

func (d *Decision) rateLimit() ratelimitclient.RateLimit {
	signal := ratelimitclient.RateLimit{
		Cost:             d.Points,
		Charged:          d.Charged,
		Limits:           make([]ratelimitclient.Limit, len(d.Limits)),
		Tier:             d.Tier,
		Mode:             d.Mode.String(),
		Replayed:         d.Outcome == Replayed,
		StoreUnavailable: d.Outcome == Unjudged || d.Outcome == Unavailable,
	}
	for i := range d.Limits {
		l := &d.Limits[i]
		signal.Limits[i] = ratelimitclient.Limit{
			Name:       l.Limit.Name,
			Level:      l.Owner.Level.String(),
			Owner:      l.Owner.Name,
			Unit:       string(l.Limit.Unit),
			Limit:      l.Limit.Capacity,
			Remaining:  l.Remaining,
			ResetAfter: ratelimitclient.Seconds(l.ResetAfter),
			Exceeded:   l.Exceeded,
		}
	}
	if tightest := d.tightest(); tightest != nil {
		signal.Limit = tightest.Limit.Capacity
		signal.Remaining = tightest.Remaining
		signal.ResetAfter = ratelimitclient.Seconds(tightest.ResetAfter)
	}
	if d.Refusal != nil {
		signal.RetryAfter = ratelimitclient.Seconds(d.Refusal.RetryAfter)
	}
	if d.WouldRefuse != nil {
		signal.WouldRefuse = d.WouldRefuse.Code
	}
	return signal
}

// tightest returns the limit with the smallest remaining share, nil if there is none.
func (d *Decision) tightest() *bucket.LimitState {
	var tightest *bucket.LimitState
	share := math.Inf(1)
	for i := range d.Limits {
		l := &d.Limits[i]
		if s := float64(l.Remaining) / float64(l.Limit.Capacity); s < share {
			share, tightest = s, l
		}
	}
	return tightest
}

// signal puts status and headers of the decision where the Handler finds them.
func (e *Extension) signal(x *exchange, d *Decision) {
	if x == nil {
		return
	}
	status := 0
	if d.Refusal != nil && !e.cfg.AlwaysStatusOK {
		status = d.Refusal.Status
	}
	x.decide(status, func(header http.Header) { e.headers(header, d) })
}

// The headers in the spelling of http.Header, which saves a conversion each time.
const (
	headerRateLimit = "Ratelimit"
	headerPolicy    = "Ratelimit-Policy"
	headerRetry     = "Retry-After"
	headerReplayed  = "Idempotent-Replayed"
)

func (e *Extension) headers(header http.Header, d *Decision) {
	if e.cfg.Headers == HeadersDraft10 && len(d.Limits) > 0 {
		// Room for the usual few limits, so that nothing but the values is allocated.
		var stateRoom, policyRoom [256]byte
		state, policy := stateRoom[:0], policyRoom[:0]
		for i := range d.Limits {
			if i > 0 {
				state = append(state, ", "...)
				policy = append(policy, ", "...)
			}
			state = appendState(state, &d.Limits[i])
			policy = appendPolicy(policy, &d.Limits[i])
		}
		header[headerRateLimit] = []string{string(state)}
		header[headerPolicy] = []string{string(policy)}
	}
	if d.Refusal != nil && d.Refusal.RetryAfter > 0 {
		header[headerRetry] = []string{strconv.FormatInt(wholeSeconds(d.Refusal.RetryAfter), 10)}
	}
	if d.Outcome == Replayed {
		header[headerReplayed] = []string{"true"}
	}
}

// appendState appends an item of RateLimit, such as "minute";r=50;t=1. Quota comes back
// continuously, so t is the time until a refused operation passes, and otherwise until one more token
// is there: it is never later than Retry-After.
func appendState(b []byte, l *bucket.LimitState) []byte {
	b = appendLimitName(b, l)
	b = append(b, ";r="...)
	b = strconv.AppendInt(b, min(l.Remaining, maxStructuredInteger), 10)
	if more := untilMore(l); more > 0 {
		b = append(b, ";t="...)
		b = strconv.AppendInt(b, wholeSeconds(more), 10)
	}
	return b
}

// appendPolicy appends an item of RateLimit-Policy, such as "minute";q=1000;w=60;qu="points". The
// window of a token bucket is the time in which it fills.
func appendPolicy(b []byte, l *bucket.LimitState) []byte {
	b = appendLimitName(b, l)
	b = append(b, ";q="...)
	b = strconv.AppendInt(b, min(l.Limit.Capacity, maxStructuredInteger), 10)
	b = append(b, ";w="...)
	b = strconv.AppendInt(b, window(l.Limit), 10)
	if l.Limit.Unit != bucket.Requests {
		b = append(b, `;qu="`...)
		b = appendStructured(b, string(l.Limit.Unit))
		b = append(b, '"')
	}
	return b
}

// untilMore returns the time until the limit has more to give, 0 if it is full.
func untilMore(l *bucket.LimitState) time.Duration {
	if l.Exceeded && l.RetryAfter > 0 {
		return l.RetryAfter
	}
	return min(l.ResetAfter, l.Limit.Period/time.Duration(refillOf(l.Limit)))
}

func refillOf(l *bucket.Limit) int64 {
	if l.Refill == 0 {
		return l.Capacity
	}
	return l.Refill
}

// appendLimitName appends a string that is unique among the limits of a decision: limits of the
// tenant have their bare name.
func appendLimitName(b []byte, l *bucket.LimitState) []byte {
	b = append(b, '"')
	if l.Owner.Level != bucket.Tenant {
		b = append(b, l.Owner.Level.String()...)
		b = append(b, ':')
		b = appendStructured(b, l.Owner.Name)
		b = append(b, ':')
	}
	b = appendStructured(b, l.Limit.Name)
	return append(b, '"')
}

// maxStructuredInteger is the largest integer of a structured field (RFC 8941, section 3.3.1).
const maxStructuredInteger = 999_999_999_999_999

// appendStructured appends the inside of a string of a structured field (RFC 8941, section 3.3.3).
// What the form cannot hold becomes a question mark.
func appendStructured(b []byte, s string) []byte {
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ' || c > '~':
			b = append(b, '?')
		default:
			b = append(b, c)
		}
	}
	return b
}

// window is the time in seconds in which an empty bucket fills, rounded up.
func window(l *bucket.Limit) int64 {
	fill := float64(l.Capacity) / float64(refillOf(l)) * l.Period.Seconds()
	return max(1, int64(math.Ceil(min(fill, maxStructuredInteger))))
}

// wholeSeconds rounds up, so that a client that waits so long never comes early.
func wholeSeconds(d time.Duration) int64 {
	return max(1, int64((d+time.Second-1)/time.Second))
}
