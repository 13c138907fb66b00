package ratelimit

import (
	"context"
	"log/slog"
	"time"
)

// drainFor is for how long Run settles after its context has ended.
const drainFor = 5 * time.Second

// Run does in the background what requests do otherwise, until the context ends: it sends heartbeats, by which
// instances know how many they are, and settles what was admitted while a store was away. It is for limits
// that fail local. Without it an instance that has no requests is not counted, and what a tenant was admitted
// here is settled with its next request here. When the context ends it settles what
// is left, for at most five seconds, and logs what it could not: end it after http.Server.Shutdown, and wait for its
// return before the store's connections are closed and the process ends. Call it after srv.Use, once, in a goroutine
// of its own; without an extension in use it returns at once.
func (e *Extension) Run(ctx context.Context) {
	if e.stores == nil {
		return
	}
	e.stores.Run(ctx)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainFor)
	defer cancel()
	if err := e.stores.Drain(ctx); err != nil {
		e.cfg.Logger.WarnContext(ctx, "ratelimit: what was admitted while a store was away is lost if the process ends",
			slog.String("error", err.Error()))
	}
}

// AwaitSettled returns when no settlement waits for a store any more, or with the error of ctx when that ends
// before. Tests of a server that gives points back call it before they look at a budget. It closes nothing, and
// returns at once on an extension that srv.Use has not seen.
func (e *Extension) AwaitSettled(ctx context.Context) error {
	if e.stores == nil {
		return nil
	}
	return e.stores.AwaitSettled(ctx)
}

// Close settles the charges that still wait for the store, which happens after the response, and returns
// when it is done. When ctx ends before, it drops the rest, which stay charged at their estimate, and returns
// an error that matches that of ctx. Call it after http.Server.Shutdown. Operations that end later keep their
// estimate. Close may be called again, and does nothing on an extension that srv.Use has not seen.
func (e *Extension) Close(ctx context.Context) error {
	if e.stores == nil {
		return nil
	}
	return e.stores.Shutdown(ctx)
}
