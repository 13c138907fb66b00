package backend

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// runEvery is how often Run looks for something to do, and settledAtOnce how many tenants of a store it
	// settles then.
	runEvery      = time.Second
	settledAtOnce = 100
	// failuresAtOnce is after how many settlements that fail Run waits for its next turn: a part of the store may
	// be away, and the others must not wait for it.
	failuresAtOnce = 10
	// drainsAtOnce is how many tenants of a store are settled beside each other at the end: there is no next turn, and
	// those of a part that is away take their whole deadline.
	drainsAtOnce = 16
)

// Run sends heartbeats and settles what was admitted without the stores, until the context ends or [Stores.End] is
// called. It serves each store beside the others: one that hangs delays no other.
func (s *Stores) Run(ctx context.Context) {
	var stores sync.WaitGroup
	for _, b := range s.byName {
		stores.Go(func() { b.run(ctx, s.ended) })
	}
	stores.Wait()
}

// run is [Stores.Run] for one of them.
func (b *Store) run(ctx context.Context, ended <-chan struct{}) {
	select {
	case b.background <- struct{}{}:
	case <-ended:
		return
	case <-ctx.Done():
		return
	}
	defer func() { <-b.background }()
	leasing := b.leases.run(ctx)
	defer leasing()
	ticker := time.NewTicker(runEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ended:
			return
		case <-ticker.C:
			if !b.local.BeatDue() || b.beat(ctx) == nil {
				b.settleDebtors(ctx, ended)
			}
			b.leases.beat(ctx)
		}
	}
}

// settleDebtors settles some tenants, and again those that owe more than one call can have. It goes on after failures,
// a few.
func (b *Store) settleDebtors(ctx context.Context, ended <-chan struct{}) {
	failures := 0
	for left := settledAtOnce; left > 0; {
		debtors := b.local.Debtors(left)
		if len(debtors) == 0 {
			return
		}
		left -= len(debtors)
		for _, tenant := range debtors {
			select {
			case <-ctx.Done():
				return
			case <-ended:
				return
			default:
			}
			if b.settleLocal(ctx, tenant) != nil {
				if failures++; failures == failuresAtOnce {
					return
				}
			}
		}
	}
}

// Drain ends [Stores.Run], and settles what was admitted without the stores, as far as they do that until the context
// ends. The error says what is left. No store waits for another one.
func (s *Stores) Drain(ctx context.Context) error {
	s.end()
	return s.beside(func(b *Store) error { return b.drain(ctx) })
}

// beside calls the function for each store in a goroutine of its own, and joins the errors.
func (s *Stores) beside(call func(*Store) error) error {
	var calls sync.WaitGroup
	errs, i := make([]error, len(s.byName)), 0
	for _, b := range s.byName {
		err := &errs[i]
		i++
		calls.Go(func() { *err = call(b) })
	}
	calls.Wait()
	return errors.Join(errs...)
}

// drain is [Stores.Drain] for one of them.
func (b *Store) drain(ctx context.Context) error {
	select {
	case b.background <- struct{}{}:
		defer func() { <-b.background }()
	case <-ctx.Done():
	}
	for ctx.Err() == nil && b.settleAll(ctx) > 0 {
		continue
	}
	if left := b.local.Owing(); left > 0 {
		return errors.Join(fmt.Errorf("ratelimit: what was admitted while %s was away is not charged (tenants: %d)", b.words(), left), ctx.Err())
	}
	return nil
}

// settleAll tries to settle each tenant once, and returns of how many that succeeded.
func (b *Store) settleAll(ctx context.Context) int64 {
	tenants := make(chan string)
	var settled atomic.Int64
	var workers sync.WaitGroup
	for range drainsAtOnce {
		workers.Go(func() {
			for tenant := range tenants {
				if ctx.Err() == nil && b.settleLocal(ctx, tenant) == nil {
					settled.Add(1)
				}
			}
		})
	}
	for _, tenant := range b.local.Debtors(b.local.Owing()) {
		tenants <- tenant
	}
	close(tenants)
	workers.Wait()
	return settled.Load()
}

// words names the store in a sentence.
func (b *Store) words() string {
	if b.name == "" {
		return "the default store"
	}
	return fmt.Sprintf("the store %q", b.name)
}
