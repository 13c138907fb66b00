package bucket

import (
	"hash/fnv"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// Spread returns how much later than at its exact time the end of a window should be told to a client
// of the tenant, from 0 to less than most: a window ends for all clients at once, and those who wait
// for it would all return in that millisecond. Add it to ResetAfter and RetryAfter where they are
// advertised; they are exact, and Spread never makes a client come early.
//
// The same tenant, owner, limit and window have the same spread everywhere, so that two answers never
// contradict each other. It is zero for a token bucket, which comes back continuously, where no window
// is open, and if most is not positive.
func Spread(tenant string, shown *LimitState, most time.Duration) time.Duration {
	if most <= 0 || shown.WindowEnd == 0 || shown.Limit == nil {
		return 0
	}
	h := fnv.New64a()
	for _, s := range []string{tenant, shown.Owner.Name, shown.Limit.Name, string(shown.Limit.Unit)} {
		var length [8]byte
		_, _ = h.Write(state.AppendUint(length[:0], 8, uint64(len(s))))
		_, _ = h.Write([]byte(s))
	}
	var rest [9]byte
	_, _ = h.Write(state.AppendUint(append(rest[:0], byte(shown.Owner.Level)), 8, uint64(shown.WindowEnd)))
	// FNV is weak in its last byte; the finaliser of MurmurHash3 spreads it over all bits.
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	x ^= x >> 33
	return time.Duration(x % uint64(most))
}
