package show

import (
	"net/http"
	"strconv"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// The headers in the spelling of http.Header, which saves a conversion each time.
const (
	headerRateLimit = "Ratelimit"
	headerPolicy    = "Ratelimit-Policy"
	headerRetry     = "Retry-After"
	headerReplayed  = "Idempotent-Replayed"
	headerWarning   = "Ratelimit-Warning"

	prefixDraft6 = "Ratelimit-"
	prefixLegacy = "X-Ratelimit-"
)

// Form is a set of dialects of the rate limit headers. Package ratelimit says what each is.
type Form uint8

// The dialects.
const (
	Draft10 Form = 1 << iota
	Draft6
	Legacy
	GitHub
	None
)

// oneNumber are the dialects that have one number for everything.
const oneNumber = Draft6 | Legacy | GitHub

// HeaderNames are the headers that [Headers] sets, as clients know them.
var HeaderNames = []string{
	"RateLimit", "RateLimit-Policy", "RateLimit-Warning",
	"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset",
	"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "X-RateLimit-Used",
	"Retry-After", "Idempotent-Replayed",
}

// Headers sets the headers of an answer. The policies are those of the snapshot by which it was decided.
func Headers(header http.Header, d *decision.Decision, forms Form, known *Policies, snapshot *tiers.Snapshot) {
	d = seen(d)
	if forms&Draft10 != 0 {
		draft10(d, header, known, snapshot)
	}
	if forms&oneNumber != 0 {
		plain(d, header, forms, time.Now())
	}
	if forms != None && d.Refusal == nil && d.WouldRefuse != nil && d.WouldRefuse.Mode == bucket.Warn {
		header[headerWarning] = []string{string(appendWarning(nil, d, d.WouldRefuse))}
	}
	if d.Refusal != nil && d.Refusal.RetryAfter > 0 {
		header[headerRetry] = []string{strconv.FormatInt(wholeSeconds(RetryAfter(d, d.Refusal)), 10)}
	}
	if d.Outcome == decision.Replayed {
		header[headerReplayed] = []string{"true"}
	}
}

// draft10 sets RateLimit and RateLimit-Policy of few limits.
func draft10(d *decision.Decision, header http.Header, known *Policies, snapshot *tiers.Snapshot) {
	o := look(d)
	if o.mode == bucket.Off {
		return
	}
	// Room for the usual few limits, so that nothing but the values is allocated, and of one limit no policy.
	var stateRoom, policyRoom [256]byte
	state, policy, only := stateRoom[:0], policyRoom[:0], ""
	items := known.under(snapshot)
	for i := range d.Limits {
		l := &d.Limits[i]
		if !o.names(d, l) {
			continue
		}
		name, item := owner(d, l.Owner), items.item(l)
		if only = ""; l.Owner.Level == bucket.Tenant && len(state) == 0 {
			only = item
		}
		if len(state) > 0 {
			state = append(state, ", "...)
			policy = append(policy, ", "...)
		}
		state = appendState(state, d, name, l)
		if l.Owner.Level != bucket.Tenant {
			// Only what stands before the name of the limit is another than that of a tenant.
			policy, item = appendOwner(policy, l.Owner.Level, name), item[1:]
		}
		policy = append(policy, item...)
	}
	if only == "" {
		only = string(policy)
	}
	// Each value has no room behind it, so that whoever adds another does not write into its neighbour.
	values := []string{string(state), only}
	// Neither header can do without its number.
	if !d.Hide.Remaining {
		header[headerRateLimit] = values[:1:1]
	}
	if !d.Hide.Limits {
		header[headerPolicy] = values[1:]
	}
}

// plain sets the headers that are about one limit.
func plain(d *decision.Decision, header http.Header, forms Form, now time.Time) {
	l := look(d).top
	if l == nil {
		return
	}
	reset := l.ResetAfter
	if d.Refusal != nil && l.RetryAfter > 0 {
		reset = retryAfter(d, l)
	}
	seconds := ceilDiv(reset, time.Second)
	set := func(prefix string, reset int64) {
		if !d.Hide.Limits {
			header[prefix+"Limit"] = []string{strconv.FormatInt(l.Limit.Capacity, 10)}
		}
		if !d.Hide.Remaining {
			header[prefix+"Remaining"] = []string{strconv.FormatInt(l.Remaining, 10)}
			header[prefix+"Reset"] = []string{strconv.FormatInt(reset, 10)}
		}
	}
	if forms&Draft6 != 0 {
		set(prefixDraft6, seconds)
	}
	if forms&Legacy != 0 {
		set(prefixLegacy, seconds)
	}
	if forms&GitHub != 0 {
		set(prefixLegacy, ceilUnix(now.Add(reset)))
		if !d.Hide.Limits && !d.Hide.Remaining {
			header[prefixLegacy+"Used"] = []string{strconv.FormatInt(l.Limit.Capacity-l.Remaining, 10)}
		}
	}
}

// appendState appends an item of RateLimit, such as "minute";r=50;t=1. Of a limit that refused, t is the
// time until the operation passes, which is never later than Retry-After; of others it is the time until the
// limit has more.
func appendState(b []byte, d *decision.Decision, owner string, l *bucket.LimitState) []byte {
	b = appendLimitName(b, l.Owner.Level, owner, l.Limit.Name)
	b = append(b, ";r="...)
	b = strconv.AppendInt(b, min(l.Remaining, maxStructuredInteger), 10)
	if more := untilMore(d, l); more > 0 {
		b = append(b, ";t="...)
		b = strconv.AppendInt(b, wholeSeconds(more), 10)
	}
	return b
}

// untilMore returns the time until the limit has more to give, or what was refused, 0 if it is full.
func untilMore(d *decision.Decision, l *bucket.LimitState) time.Duration {
	if l.Exceeded && l.RetryAfter > 0 {
		return retryAfter(d, l)
	}
	full := l.ResetAfter
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
		return full - l.Limit.Period + time.Duration(ceilDiv(l.Limit.Period, time.Duration(used)))
	}
	return time.Duration(ceilDiv(full, time.Duration(max(1, used-1))))
}

// appendLimitName appends the name of a limit in headers as a string of a structured field: unique among the
// limits of a decision. Limits of the tenant have their bare name.
func appendLimitName(b []byte, level bucket.Level, owner, limit string) []byte {
	return append(appendStructured(appendOwner(b, level, owner), limit), '"')
}

// appendOwner appends what stands before the name of the limit itself.
func appendOwner(b []byte, level bucket.Level, owner string) []byte {
	b = append(b, '"')
	if level != bucket.Tenant {
		b = append(b, level.String()...)
		b = append(b, ':')
		if owner != "" {
			b = appendStructured(b, owner[:min(len(owner), maxHeaderName)])
			b = append(b, ':')
		}
	}
	return b
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

// wholeSeconds rounds up, so that a client that waits so long never comes early, and to no less than a
// second, because a client that is told to wait for none comes back at once.
func wholeSeconds(d time.Duration) int64 { return max(1, ceilDiv(d, time.Second)) }

// ceilDiv rounds up how often the unit fits in.
func ceilDiv(d, unit time.Duration) int64 {
	return int64(d/unit + min(1, max(0, d%unit)))
}

// ceilUnix returns the time in seconds since 1970, rounded up.
func ceilUnix(t time.Time) int64 { return t.Add(time.Second - 1).Unix() }
