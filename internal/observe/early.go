package observe

import (
	"context"
	"hash/maphash"
	"sync"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
)

// early finds clients that are refused again before the time was over after which they were told to come back. It remembers
// them in a table of a fixed size, where another one takes the place of who stands there: it counts too few where there
// are more clients than places, and never too many. It is safe for concurrent use.
type early struct {
	seed  maphash.Seed
	parts [earlyParts]earlyPart
}

const (
	// earlyParts are locked each by itself, and each has so many places: 65 536 altogether, in 1.5 MiB.
	earlyParts  = 64
	earlyPlaces = 1024
	// earlyGrace is for how long after a refusal others were under way that had not seen it.
	earlyGrace = time.Second
	// earlyHolds bounds for how long a client is remembered: who comes in the middle of a month that is used up is found all
	// the same, because the next refusal tells it again.
	earlyHolds = 5 * time.Minute
)

type earlyPart struct {
	mu sync.Mutex
	// places are made when the first client is told to wait.
	places []earlyPlace
}

// earlyPlace is a client, by 64 bits of a hash, and when it was told to come back at which time, in nanoseconds.
type earlyPlace struct {
	client      uint64
	told, until int64
}

func newEarly() *early { return &early{seed: maphash.MakeSeed()} }

// refused notes that the client is told to come back after a while, and reports whether it was told before and has not
// waited. A client is a user of a tenant, or the tenant where there are no users.
func (e *early) refused(tenant, user string, now time.Time, retryAfter time.Duration) bool {
	var h maphash.Hash
	h.SetSeed(e.seed)
	_, _ = h.WriteString(tenant)
	_ = h.WriteByte(0)
	_, _ = h.WriteString(user)
	client, at := h.Sum64(), now.UnixNano()
	p := &e.parts[client%earlyParts]
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.places == nil {
		p.places = make([]earlyPlace, earlyPlaces)
	}
	place := &p.places[client/earlyParts%earlyPlaces]
	if place.client == client && at >= place.told && at < place.until {
		return at-place.told >= int64(earlyGrace)
	}
	*place = earlyPlace{client, at, at + int64(min(retryAfter, earlyHolds))}
	return false
}

// retriedEarly counts an operation of a client that was told to wait and did not.
func (r *Reporter) retriedEarly(ctx context.Context, d *decision.Decision) {
	if d.Refusal == nil || d.Refusal.RetryAfter <= earlyGrace || !r.metrics.retriedEarly.Enabled(ctx) {
		return
	}
	if r.early.refused(d.Subject.Tenant, d.Subject.User, time.Now(), d.Refusal.RetryAfter) {
		r.metrics.retriedEarly.Add(ctx, 1, r.metrics.sets.of(&tierLabels, d.Tier))
	}
}
