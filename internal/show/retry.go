package show

import (
	"hash/fnv"
	"io"
	"strconv"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// What the end of a window is spread over: a share of its length, and no more than the longest time.
const (
	spreadShare   = 20
	spreadLongest = time.Minute
)

// RetryAfter is when a client is told to come back to a limit that refused it, zero if waiting does not help. A window
// ends for all clients at once, and those who wait for it would all return in that millisecond: of a window it is later
// than the limit has the amount, by a time that is the same in each answer about this tenant, owner, limit and window.
func RetryAfter(tenant string, l *bucket.LimitState) time.Duration {
	most := min(l.Limit.Length()/spreadShare, spreadLongest)
	if l.RetryAfter <= 0 || l.WindowEnd == 0 || most <= 0 {
		return l.RetryAfter
	}
	h := fnv.New64a()
	for _, part := range [...]string{
		tenant, l.Owner.Level.String(), l.Owner.Name, l.Limit.Name, string(l.Limit.Unit), strconv.FormatInt(l.WindowEnd, 10),
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
	return l.RetryAfter + time.Duration(x%uint64(most))
}
