package bucket

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/lease"
)

const (
	// lookEvery is how often Run looks who is due, and resendAfter when a message is sent again that nobody has answered, doubled each time up to
	// resendMost.
	lookEvery   = 20 * time.Millisecond
	resendAfter = 20 * lease.Millisecond
	resendMost  = 160 * lease.Millisecond
	// exchangesAtOnce is how many tenants exchange at a time.
	exchangesAtOnce = 16
	// busyEvery is over how long takes are counted to see whether a tenant is busy.
	busyEvery = lease.Second
)

// Run exchanges what is leased with the store, until the context ends or [Leased.Shutdown] is called: it leases, gives back what others need, and counts. It
// starts goroutines and returns when they have ended. What is leased when the context ends is lost until its lease has ended; Shutdown gives it back.
func (l *Leased) Run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var workers sync.WaitGroup
	for range exchangesAtOnce {
		workers.Go(func() { l.serve(ctx) })
	}
	defer workers.Wait()
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.stopped:
			return
		case <-ticker.C:
			if l.tenants.Load() > 0 {
				l.each(l.look)
			}
		}
	}
}

// Tend does once what [Leased.Run] does all the time: it exchanges with the store for those who are due, one after the other.
func (l *Leased) Tend(ctx context.Context) {
	l.each(l.look)
	for {
		select {
		case t := <-l.work:
			t.serve(ctx)
		default:
			return
		}
	}
}

// look has a tenant served that is due.
func (l *Leased) look(t *leasedTenant) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := l.now()
	t.rest(now)
	if t.queued || t.flight != nil || !t.due(now) {
		return
	}
	select {
	case l.work <- t:
		t.queued = true
	default:
		// As many wait as can: at the next look.
	}
}

// rest counts the takes of a while, and ends what is not busy any more, or forbidden.
func (t *leasedTenant) rest(now int64) {
	if now-t.counted < busyEvery {
		return
	}
	least := coldTakes
	switch {
	case t.policy.Owner.Level != Tenant:
		least = coldShared
	case t.mode == LeaseAlways:
		least = 0
	}
	if t.takes*lease.Second > least*int(now-t.counted) {
		t.quiet = now
	}
	t.takes, t.counted = 0, now
	if now-t.quiet >= coldFor || !t.store.allowed.Load() {
		t.ended = true
	}
}

// due reports whether there is something to say to the store.
func (t *leasedTenant) due(now int64) bool {
	if t.ended && t.left(now) {
		return now >= t.barred
	}
	if _, waiting := t.holder.Pending(); waiting {
		return now-t.sent >= min(int64(resendAfter)<<min(max(0, t.tries-1), 3), resendMost)
	}
	if t.ended && !t.holder.Alive(now) {
		// Only what it has to tell is left.
		return t.storeTime(now) >= t.usage.after
	}
	return t.ended || t.holder.Due(now) <= now
}

// serve exchanges for those who are due.
func (l *Leased) serve(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.stopped:
			return
		case t := <-l.work:
			t.serve(ctx)
		}
	}
}

// serve exchanges what the tenant has to, and counts what it was admitted.
func (t *leasedTenant) serve(ctx context.Context) {
	t.mu.Lock()
	t.queued = false
	if t.flight != nil {
		t.mu.Unlock()
		return
	}
	t.flight = make(chan struct{})
	leaving := t.ended
	t.mu.Unlock()
	cause := causeBeat
	if leaving {
		cause = causeRelease
	}
	t.exchange(ctx, cause, leaving)
	t.count(ctx)
	if leaving && t.gone() {
		t.store.end(t)
	}
}

// left reports whether it holds nothing any more and has counted everything.
func (t *leasedTenant) left(now int64) bool {
	return !t.holder.Alive(now) && t.usage.sent == nil && len(t.usage.minutes) == 0
}

// gone reports whether it can be forgotten.
func (t *leasedTenant) gone() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.countAdmissions()
	now := t.store.now()
	return t.left(now) && (now >= t.barred || t.store.isStopped())
}

// Shutdown ends [Leased.Run], gives back what is leased and has the store count what was admitted, and returns when that is done, or when the context
// ends, with an error that says of how many tenants it is not. What is not given back comes back when the leases end, without a level. Takes
// afterwards go to the store.
func (l *Leased) Shutdown(ctx context.Context) error {
	l.stop()
	l.allowed.Store(false)
	for i := range l.locks {
		// Who is about to lease does so before, and gives back with the others, or sees that it is over.
		l.locks[i].Lock()
		l.locks[i].Unlock() //nolint:staticcheck // Nothing is done between: others have done it.
	}
	var leaving sync.WaitGroup
	slots := make(chan struct{}, exchangesAtOnce)
	l.each(func(t *leasedTenant) {
		slots <- struct{}{}
		leaving.Go(func() {
			defer func() { <-slots }()
			t.leave(ctx)
		})
	})
	leaving.Wait()
	if left := l.tenants.Load(); left > 0 {
		return errors.Join(fmt.Errorf("bucket: what is leased is not given back (tenants: %d)", left), ctx.Err())
	}
	return nil
}

// leave gives everything back, with some patience.
func (t *leasedTenant) leave(ctx context.Context) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
		t.mu.Lock()
		flight := t.flight
		t.ended, t.queued = true, false
		t.mu.Unlock()
		if flight == nil {
			t.serve(ctx)
		}
		if t.gone() {
			t.store.end(t)
			return
		}
		pause.Reset(lookEvery)
	}
}
