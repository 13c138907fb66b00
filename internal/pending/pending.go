// Package pending counts what is under way, for those who wait until nothing is.
package pending

import (
	"context"
	"sync"
)

// Counter counts what is under way. The zero value is ready to use. It is safe for concurrent use, and unlike a
// sync.WaitGroup may be added to while somebody waits.
type Counter struct {
	mu sync.Mutex
	n  int
	// none is closed when nothing is under way any more. It is nil if nobody waits for that.
	none chan struct{}
}

// Add counts n more, or fewer if it is negative.
func (c *Counter) Add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n += n; c.n == 0 && c.none != nil {
		close(c.none)
		c.none = nil
	}
}

// Wait returns when nothing is under way, or with the error of ctx when that ends before.
func (c *Counter) Wait(ctx context.Context) error {
	c.mu.Lock()
	if c.n == 0 {
		c.mu.Unlock()
		return nil
	}
	if c.none == nil {
		c.none = make(chan struct{})
	}
	none := c.none
	c.mu.Unlock()
	select {
	case <-none:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
