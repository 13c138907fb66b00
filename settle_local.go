package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// judgeInAbsence gives each store what judges while it is away.
func (e *Extension) judgeInAbsence() error {
	config := e.cfg.Local
	if config.Instance == (bucket.Instance{}) {
		// Stores that are one Redis count this process once.
		config.Instance = bucket.NewInstance()
	}
	var err error
	for _, b := range e.backends {
		if b.local, err = bucket.NewLocal(b.Store, config); err != nil {
			return err
		}
	}
	e.missing.local, err = bucket.NewLocal(e.missing.Store, config)
	return err
}

// learn takes in an answer of the store, for when it goes away, and does what has waited for one.
func (e *Extension) learn(ctx context.Context, b *backend, take *bucket.Take, result *bucket.Result) {
	owes, beat := b.local.Learn(take, result)
	if owes {
		_ = e.settleLocal(ctx, b, take.Tenant)
	}
	if beat {
		_ = e.beat(ctx, b)
	}
}

// settleBefore settles what the owners of a take owe, so that the store does not admit what was taken without it
// already. Where that fails the store is not asked for the take: it is away.
func (e *Extension) settleBefore(ctx context.Context, b *backend, take *bucket.Take) error {
	// The first may repeat a settlement of other owners.
	for range 2 {
		if !b.local.Owes(take) {
			return nil
		}
		if err := e.settleLocal(ctx, b, take.Tenant); err != nil && !errors.Is(err, bucket.ErrInvalid) {
			// Of the take itself it is known that it was not applied.
			return fmt.Errorf("%w: settling: %v", bucket.ErrUnavailable, err) //nolint:errorlint // It may match ErrAmbiguous.
		}
	}
	return nil
}

// settleLocal charges the store for what the tenant has taken without it.
func (e *Extension) settleLocal(ctx context.Context, b *backend, tenant string) error {
	start := time.Now()
	settled, err := b.local.Settle(ctx, tenant)
	if err != nil || settled.Limits != nil {
		e.stored(ctx, b, "settle_local", time.Since(start), err)
	}
	e.telemetry.settledLocally(ctx, b, &settled)
	if settled.Lost {
		e.cfg.Logger.WarnContext(ctx, "ratelimit: what was admitted while the store was away could not be settled: "+
			"it may have been charged or not", b.logged(slog.String("tenant", boundedName(tenant)))...)
	}
	return err
}

// beat sends a heartbeat.
func (e *Extension) beat(ctx context.Context, b *backend) error {
	start := time.Now()
	err := b.local.Beat(ctx)
	e.stored(ctx, b, "beat", time.Since(start), err)
	return err
}

const (
	// runEvery is how often Run looks for something to do, and settledAtOnce how many tenants of a store it
	// settles then.
	runEvery      = time.Second
	settledAtOnce = 100
	// failuresAtOnce is after how many settlements that fail Run waits for its next turn: a part of the store may
	// be away, and the others must not wait for it.
	failuresAtOnce = 10
	// drainFor is for how long Run settles after its context has ended.
	drainFor = 5 * time.Second
)

// Run does in the background what requests do otherwise, until the context ends: it sends heartbeats, by which
// instances know how many they are, and settles what was admitted while a store was away. It is for limits
// that fail local. Without it an instance that has no requests is not counted, and what a tenant was admitted
// here is settled with its next request here. When the context ends it settles what
// is left, for at most five seconds, and logs what it could not: end it after http.Server.Shutdown, and wait for its
// return before the store's connections are closed and the process ends. Call it after srv.Use, once, in a goroutine
// of its own; without an extension in use it returns at once.
func (e *Extension) Run(ctx context.Context) {
	if e.facts == nil {
		return
	}
	ticker := time.NewTicker(runEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			e.drain(context.WithoutCancel(ctx))
			return
		case <-ticker.C:
			for _, b := range e.backends {
				if !b.local.BeatDue() || e.beat(ctx, b) == nil {
					_ = e.settleDebtors(ctx, b)
				}
			}
		}
	}
}

// drain settles what is left when the process ends, and logs what it cannot.
func (e *Extension) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, drainFor)
	defer cancel()
	for _, b := range e.backends {
		for ctx.Err() == nil && e.settleDebtors(ctx, b) > 0 {
			continue
		}
		if left := b.local.Owing(); left > 0 {
			e.cfg.Logger.WarnContext(ctx, "ratelimit: what was admitted while the store was away is not settled, and lost if the process ends",
				b.logged(slog.Int("tenants", left))...)
		}
	}
}

// settleDebtors settles some tenants, and returns of how many that succeeded. It goes on after failures, a few.
func (e *Extension) settleDebtors(ctx context.Context, b *backend) (settled int) {
	failures := 0
	for _, tenant := range b.local.Debtors(settledAtOnce) {
		if ctx.Err() != nil || failures >= failuresAtOnce {
			break
		}
		if e.settleLocal(ctx, b, tenant) == nil {
			settled++
		} else {
			failures++
		}
	}
	return settled
}
