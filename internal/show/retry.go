package show

import (
	"hash/fnv"
	"io"
	"strconv"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
)

// What the end of a window is spread over: a share of its length, and no more than the longest time.
const (
	spreadShare   = 20
	spreadLongest = time.Minute
)

// RetryAfter is when the client of a refusal is told to come back, zero if waiting does not help.
func RetryAfter(d *decision.Decision, r *decision.Refusal) time.Duration {
	if r.Limit == nil {
		return r.RetryAfter
	}
	return spread(d.Subject.Tenant, r.Owner, r.Limit, r.WindowEnd, r.RetryAfter)
}

// retryAfter is the same of one of the limits that refused.
func retryAfter(d *decision.Decision, l *bucket.LimitState) time.Duration {
	return spread(d.Subject.Tenant, l.Owner, l.Limit, l.WindowEnd, l.RetryAfter)
}

// spread tells a later time of a window. It ends for all clients at once, and those who wait for it would all return in
// that millisecond. The time is the same in each answer about this tenant, owner, limit and window.
func spread(tenant string, owner bucket.Owner, limit *bucket.Limit, windowEnd int64, wait time.Duration) time.Duration {
	most := min(limit.Length()/spreadShare, spreadLongest)
	if wait <= 0 || windowEnd == 0 || most <= 0 {
		return wait
	}
	h := fnv.New64a()
	for _, part := range [...]string{
		tenant, owner.Level.String(), owner.Name, owner.Part, limit.Name, string(limit.Unit), strconv.FormatInt(windowEnd, 10),
	} {
		_, _ = io.WriteString(h, part)
		_, _ = h.Write([]byte{0})
	}
	// FNV is weak in its last byte; the finaliser of MurmurHash3 spreads it over all bits.
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	x ^= x >> 33
	return wait + time.Duration(x%uint64(most))
}
