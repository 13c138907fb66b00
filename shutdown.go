package ratelimit

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Run does in the background what requests do otherwise: it sends heartbeats, by which instances know how many they
// are, leases parts of limits where the policy says so, and settles what was admitted while a store was away. It is for limits that fail local, and
// for tiers that lease. Without it nothing is leased, and an instance
// that has no requests is not counted, and what a tenant was admitted here is settled with its next request here.
//
// Call it once, in a goroutine of its own. It waits for srv.Use. It returns when the context ends, and when
// [Extension.Shutdown] is called.
func (e *Extension) Run(ctx context.Context) {
	select {
	case <-e.life.used:
		e.stores.Run(ctx)
	case <-e.life.ended:
	case <-ctx.Done():
	}
}

// Shutdown ends what the extension does beside requests. It ends [Extension.Run]. It waits for the operations that still
// run under an idempotency key: their claims end with them. It settles the charges that still wait for a store, and what
// was admitted while a store was away. Nothing of that waits for the rest, nor one store for another. What is leased is given back, and usage of it told, when all that
// is done, or when a quarter is left of the time until the deadline of ctx.
//
// When ctx ends before that is done, Shutdown drops the rest: claims are left to their leases, charges stay at their
// estimates, and what was admitted without a store stays uncharged. The error says what was dropped, and matches that
// of ctx.
//
// Call it after http.Server.Shutdown and before the connections of the stores are closed. Operations that run later are
// judged as before, and keep their estimates. It may be called at any time, again, and by several goroutines; on an
// extension that srv.Use has not seen it returns at once.
func (e *Extension) Shutdown(ctx context.Context) error {
	if !e.life.end() {
		return nil
	}
	var drain sync.WaitGroup
	drain.Go(func() {
		// What is left after it is settled below.
		_ = e.stores.Drain(ctx)
	})
	// What is settled while parts are leased comes back to them, so that these are given back last, but not when there is no time left.
	done := make(chan struct{})
	var giving sync.WaitGroup
	giving.Go(func() {
		if reaches(ctx, done) {
			// What is left after it is given back below.
			_ = e.stores.GiveBack(ctx)
		}
	})
	// What still runs under a key settles its charge with its claim.
	err := e.claims.Wait(ctx)
	drain.Wait()
	err = errors.Join(err, e.stores.Shutdown(ctx))
	close(done)
	giving.Wait()
	return err
}

// reaches waits until a quarter is left of the time that the context has, and returns whether that came before the other thing was done. A context without a deadline has
// no such time.
func reaches(ctx context.Context, done <-chan struct{}) bool {
	deadline, ok := ctx.Deadline()
	if !ok {
		return false
	}
	left := time.NewTimer(time.Until(deadline) / 4 * 3)
	defer left.Stop()
	select {
	case <-left.C:
		return true
	case <-done:
		return false
	}
}

// AwaitSettled returns when no settlement waits for a store any more, or with the error of ctx when that ends
// before. Tests of a server that gives points back call it before they look at a budget. It ends nothing, and
// returns at once on an extension that srv.Use has not seen.
func (e *Extension) AwaitSettled(ctx context.Context) error {
	if !isClosed(e.life.used) {
		return nil
	}
	return e.stores.AwaitSettled(ctx)
}
