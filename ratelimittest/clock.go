package ratelimittest

import (
	"sync"
	"time"
)

// Clock is a time that moves only when the test moves it. The zero value is ready to use and stands
// at the first moment of 2026 UTC. It is safe for concurrent use.
type Clock struct {
	mu      sync.Mutex
	elapsed time.Duration
}

// Now returns the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC).Add(c.elapsed)
}

// Advance moves the time by d, backwards if d is negative.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.elapsed += d
}
