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
	// does, with the unit in the parameter qu, and RateLimit-Warning for what is in mode warn.
	HeadersDraft10 HeaderForm = iota
	// HeadersNone writes neither, nor RateLimit-Warning. Retry-After is still written.
	HeadersNone
)

// withoutBudget is extensions.rateLimit where no limit was judged that is not soft: its fields hide those of the
// budget, because a remaining of 0 would read as an empty one.
type withoutBudget struct {
	ratelimitclient.RateLimit
	Limit      *struct{} `json:"limit,omitempty"`
	Remaining  *struct{} `json:"remaining,omitempty"`
	ResetAfter *struct{} `json:"resetAfter,omitempty"`
}

// extension returns the value of extensions.rateLimit.
func (d *Decision) extension() any {
	if d.tightestPacing() == nil {
		return withoutBudget{RateLimit: d.rateLimit()}
	}
	return d.rateLimit()
}

func (d *Decision) rateLimit() ratelimitclient.RateLimit {
	signal := ratelimitclient.RateLimit{
		Cost:             d.Points,
		Charged:          d.Charged,
		Actual:           d.actual,
		Limits:           make([]ratelimitclient.Limit, len(d.Limits)),
		Tier:             d.Tier,
		Mode:             d.Mode.String(),
		Replayed:         d.Outcome == Replayed,
		StoreUnavailable: d.Outcome == Unjudged || d.Outcome == Unavailable,
		Validated:        d.Outcome == Validated,
		Breakdown:        breakdownOf(d.Breakdown),
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
			Soft:       l.Limit.Soft,
			Overdraft:  l.Overdraft,
		}
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
	headerWarning   = "Ratelimit-Warning"
)

func (e *Extension) headers(header http.Header, d *Decision) {
	if mode := d.pacingMode(); e.cfg.Headers == HeadersDraft10 && mode != bucket.Off {
		// Room for the usual few limits, so that nothing but the values is allocated.
		var stateRoom, policyRoom [256]byte
		state, policy := stateRoom[:0], policyRoom[:0]
		for i := range d.Limits {
			if !paces(&d.Limits[i], mode) {
				continue
			}
			if len(state) > 0 {
				state = append(state, ", "...)
				policy = append(policy, ", "...)
			}
			state = appendState(state, d.Subject.Tenant, &d.Limits[i])
			policy = appendPolicy(policy, &d.Limits[i])
		}
		// Each value has no room behind it, so that whoever adds another does not write into its neighbour.
		values := []string{string(state), string(policy)}
		header[headerRateLimit], header[headerPolicy] = values[:1:1], values[1:]
	}
	if e.cfg.Headers == HeadersDraft10 && d.Refusal == nil && d.WouldRefuse != nil && d.WouldRefuse.Mode == bucket.Warn {
		header[headerWarning] = []string{string(appendWarning(nil, d.WouldRefuse))}
	}
	if d.Refusal != nil && d.Refusal.RetryAfter > 0 {
		header[headerRetry] = []string{strconv.FormatInt(wholeSeconds(d.Refusal.RetryAfter), 10)}
	}
	if d.Outcome == Replayed {
		header[headerReplayed] = []string{"true"}
	}
}

// appendState appends an item of RateLimit, such as "minute";r=50;t=1. Of a limit that refused, t is the
// time until the operation passes, which is never later than Retry-After; of others it is the time until the
// limit has more.
func appendState(b []byte, tenant string, l *bucket.LimitState) []byte {
	b = appendLimitName(b, l.Owner, l.Limit.Name)
	b = append(b, ";r="...)
	b = strconv.AppendInt(b, min(l.Remaining, maxStructuredInteger), 10)
	if more := untilMore(tenant, l); more > 0 {
		b = append(b, ";t="...)
		b = strconv.AppendInt(b, wholeSeconds(more), 10)
	}
	return b
}

// appendPolicy appends an item of RateLimit-Policy, such as "minute";q=1000;w=60;qu="points". The
// window of a token bucket is the time in which it fills.
func appendPolicy(b []byte, l *bucket.LimitState) []byte {
	b = appendLimitName(b, l.Owner, l.Limit.Name)
	b = append(b, ";q="...)
	b = strconv.AppendInt(b, min(l.Limit.Capacity, maxStructuredInteger), 10)
	b = append(b, ";w="...)
	b = strconv.AppendInt(b, wholeSeconds(l.Limit.Length()), 10)
	if l.Limit.Unit != bucket.Requests {
		b = append(b, `;qu="`...)
		b = appendStructured(b, string(l.Limit.Unit))
		b = append(b, '"')
	}
	return b
}

// untilMore returns the time until the limit has more to give, or what was refused, 0 if it is full.
func untilMore(tenant string, l *bucket.LimitState) time.Duration {
	if l.Exceeded && l.RetryAfter > 0 {
		return l.RetryAfter
	}
	// Nobody waits for this one, so that its exact time brings nobody back together.
	full := l.ResetAfter - spreadOf(tenant, l)
	switch l.Limit.Window.Kind {
	case bucket.TokenBucket:
		return min(full, l.Limit.Period/time.Duration(max(1, l.Limit.Refill)))
	case bucket.SlidingWindow:
		return untilMoreSliding(l, full)
	default:
		return full
	}
}

// untilMoreSliding returns the time until a sliding window that is empty after full has more to give: exact
// if all was spent in one window, and otherwise no earlier. What was spent in the current window begins to
// come back at its end, and what was spent in the one before it, evenly until then.
func untilMoreSliding(l *bucket.LimitState, full time.Duration) time.Duration {
	used := max(1, l.Limit.Capacity-l.Remaining+l.Overdraft)
	if full > l.Limit.Period {
		return full - l.Limit.Period + ceilDuration(l.Limit.Period, used)
	}
	return ceilDuration(full, max(1, used-1))
}

func ceilDuration(d time.Duration, n int64) time.Duration {
	return d/time.Duration(n) + min(1, d%time.Duration(n))
}

// appendLimitName appends a string that is unique among the limits of a decision: limits of the
// tenant have their bare name.
func appendLimitName(b []byte, owner bucket.Owner, limit string) []byte {
	b = append(b, '"')
	if owner.Level != bucket.Tenant {
		b = append(b, owner.Level.String()...)
		b = append(b, ':')
		b = appendStructured(b, owner.Name[:min(len(owner.Name), maxHeaderName)])
		b = append(b, ':')
	}
	b = appendStructured(b, limit)
	return append(b, '"')
}

// maxHeaderName is how many bytes of the name of an owner stand in a header.
const maxHeaderName = 64

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

// wholeSeconds rounds up, so that a client that waits so long never comes early.
func wholeSeconds(d time.Duration) int64 {
	return max(1, int64((d+time.Second-1)/time.Second))
}
