package ratelimit

import (
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// What the end of a window is spread over: a share of its length, and no more than the longest time.
const (
	spreadShare   = 20
	spreadLongest = time.Minute
)

// spread moves the times at which clients are told to come back, where a window ends for all of them in
// the same moment. It only ever moves them later.
func spread(tenant string, limits []bucket.LimitState) {
	for i := range limits {
		l := &limits[i]
		if l.WindowEnd == 0 {
			continue
		}
		later := spreadOf(tenant, l)
		l.ResetAfter += later
		if l.RetryAfter > 0 {
			l.RetryAfter += later
		}
	}
}

// spreadOf is by how much the times of the limit are moved. It is the same each time for a window.
func spreadOf(tenant string, l *bucket.LimitState) time.Duration {
	return bucket.Spread(tenant, l, min(l.Limit.Length()/spreadShare, spreadLongest))
}
