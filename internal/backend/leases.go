package backend

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/fleet"
)

// leases are what this process leases from a store. Nil leases nothing.
type leases struct {
	store    bucket.LeaseStore
	leased   *bucket.Leased
	instance [8]byte
	// beatAt is when the last heartbeat was sent, in Unix nanoseconds.
	beatAt atomic.Int64
}

// newLeases returns nil for a store that leases nothing, or is in this process: asking that costs no more.
func newLeases(store bucket.Store, cfg fleet.Config) *leases {
	leasing, ok := store.(bucket.LeaseStore)
	if _, near := store.(*bucket.Memory); !ok || near {
		return nil
	}
	return &leases{store: leasing, leased: bucket.NewLeased(leasing, bucket.LeasedConfig{}), instance: cfg.Instance}
}

// run exchanges with the store until the context ends or what it returns is called, which waits for that.
func (l *leases) run(ctx context.Context) (end func()) {
	if l == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.leased.Run(ctx)
	}()
	return func() {
		cancel()
		<-ended
	}
}

// beaten takes in what a heartbeat was answered.
func (l *leases) beaten() {
	if l != nil {
		l.beatAt.Store(time.Now().UnixNano())
		l.leased.Allow(l.store.AllLease())
	}
}

// beat sends a heartbeat if nobody else has for a while, as where it is configured how many instances there are: the others have to know that this one
// can lease.
func (l *leases) beat(ctx context.Context) {
	if l == nil || time.Since(time.Unix(0, l.beatAt.Load())) < fleet.BeatEvery {
		return
	}
	// A store that is away is found by others; nothing is leased from it then.
	if _, _, err := l.store.Beat(ctx, l.instance); err == nil {
		l.beaten()
	}
}

// close gives back what is leased.
func (l *leases) close(ctx context.Context) error {
	if l == nil {
		return nil
	}
	if err := l.leased.Shutdown(ctx); err != nil {
		return fmt.Errorf("ratelimit: %w", err)
	}
	return nil
}

// Leases returns what leases, by the names of the stores.
func (s *Stores) Leases() map[string]*bucket.Leased {
	all := map[string]*bucket.Leased{}
	for name, b := range s.byName {
		if b.leases != nil {
			all[name] = b.leases.leased
		}
	}
	return all
}
