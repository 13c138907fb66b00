package relay

import (
	"context"
	"math/rand/v2"
	"time"
)

// jittered is a time up to a fifth shorter or longer.
func jittered(d time.Duration) time.Duration {
	const part = 5
	return d - d/part + rand.N(2*d/part+1) //nolint:gosec // jitter need not be secret
}

// pause waits for a time, or until it is woken, or the context ends.
func pause(ctx context.Context, d time.Duration, woken <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-woken:
	case <-timer.C:
	}
}
