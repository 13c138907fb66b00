// Package pace says when those who follow something do so again: with jitter, so that a fleet does not act as one, and with bounds, so
// that nothing that breaks at once is tried without end.
package pace

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// Bounds of the time between two subscriptions.
const (
	minSubscribe = 50 * time.Millisecond
	maxSubscribe = 5 * time.Second
	// resubscribe is within which time one that stood is made again. Those of a fleet that end together are not made in one moment.
	resubscribe = 20 * time.Millisecond
)

// Between returns a time from least to most.
func Between(least, most time.Duration) time.Duration {
	return least + rand.N(most-least+1) //nolint:gosec // jitter need not be secret
}

// Sleep returns true after the time, and false if the context has ended before.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// Jittered returns a time up to a fifth shorter or longer.
func Jittered(d time.Duration) time.Duration {
	const part = 5
	return Between(d-d/part, d+d/part)
}

// Wait waits for a time, or until it is woken, or the context ends.
func Wait(ctx context.Context, d time.Duration, woken <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-woken:
	case <-timer.C:
	}
}

// Sign puts a sign into a channel with room for one. It never blocks.
func Sign(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// Subscribe has a subscription made again and again, until the context ends or subscribe returns false. That returns when one does
// not stand any more, and calls stands when it does, and then as often as it likes. One that stood is made again at once, others less
// and less soon.
func Subscribe(ctx context.Context, subscribe func(stands func()) bool) {
	for pause := minSubscribe; ; {
		var since atomic.Pointer[time.Time]
		again := subscribe(func() {
			if since.Load() == nil {
				now := time.Now()
				since.CompareAndSwap(nil, &now)
			}
		})
		if !again {
			return
		}
		wait := Between(pause/2, pause)
		pause = min(2*pause, maxSubscribe)
		if stood := since.Load(); stood != nil {
			// Nobody hints at what is published until it stands again. One that ends as soon as it stands waits as it would have.
			wait = max(Between(0, resubscribe), Between(minSubscribe/2, minSubscribe)-time.Since(*stood))
			pause = minSubscribe
		}
		if !Sleep(ctx, wait) {
			return
		}
	}
}
