package backend

import (
	"cmp"
	"math"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// forever is a wait that does not end, and an age that no refusal reaches.
const forever = time.Duration(math.MaxInt64)

// enforces reports whether the limit refuses who exceeds it.
func enforces(l *bucket.LimitState) bool { return l.Limit.Mode == bucket.Enforce && !l.Limit.Soft }

// leastWait returns for how long after the answer the limit is certain to lack the amount, if nothing is given back.
func leastWait(l *bucket.LimitState, n int64) time.Duration {
	least, _ := waits(l, n)
	return least
}

// waits returns for how long after the answer the limit lacks the amount, at least and about. Whoever asks for more than the
// answer was given to waits as long at least. What is left and when the limit is full tell the rest, but for a sliding window, and
// for what is spent in the terms of other limits.
func waits(l *bucket.LimitState, n int64) (least, about time.Duration) {
	if n > l.Limit.Capacity {
		return forever, forever
	}
	if l.Exceeded && n >= l.Asked {
		least = l.RetryAfter
	}
	if n <= l.Remaining || l.Mixed || l.Exceeded && n == l.Asked || l.Limit.Window.Kind == bucket.SlidingWindow {
		return least, least
	}
	if l.Limit.Window.Kind != bucket.TokenBucket {
		return l.ResetAfter, l.ResetAfter
	}
	ms := float64(l.Limit.Capacity-n) / perMillisecond(l.Limit)
	if ms >= float64(l.ResetAfter.Milliseconds()) {
		return least, least
	}
	about = l.ResetAfter - time.Duration(ms)*time.Millisecond
	// Both times are rounded up to whole milliseconds.
	return max(least, about-2*time.Millisecond), about
}

// perMillisecond is how many tokens come back to a token bucket.
func perMillisecond(l *bucket.Limit) float64 {
	return float64(cmp.Or(l.Refill, l.Capacity)) / float64(l.Period.Milliseconds())
}

// later is the state of a limit that is asked for an amount some time after the answer.
func later(l bucket.LimitState, n int64, elapsed time.Duration) bucket.LimitState {
	_, wait := waits(&l, n)
	l.ResetAfter = max(0, l.ResetAfter-elapsed)
	switch {
	case l.ResetAfter == 0:
		l.Remaining, l.Overdraft, l.WindowEnd = l.Limit.Capacity, 0, 0
	case l.Limit.Window.Kind == bucket.TokenBucket && !l.Mixed:
		spent := int64(math.Ceil(float64(l.ResetAfter.Milliseconds()) * perMillisecond(l.Limit)))
		l.Remaining = max(l.Remaining, l.Limit.Capacity-spent)
		l.Overdraft = min(l.Overdraft, max(0, spent-l.Limit.Capacity))
	}
	l.Asked, l.Charged, l.RetryAfter = n, 0, 0
	l.Never, l.Exceeded = n > l.Limit.Capacity, n > l.Remaining
	if l.Exceeded && !l.Never {
		l.RetryAfter = max(0, wait-elapsed)
	}
	return l
}
