package backend

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// shares judge takes in this process while a store cannot answer, for limits that fail local or bounded: what
// bucket.NewLocal returns.
type shares interface {
	// Learn takes in what the store has answered. owes says that the tenant has something to be settled, and beat
	// that a heartbeat is due.
	Learn(take *bucket.Take, result *bucket.Result) (owes, beat bool)
	// Take judges a take that the store cannot answer. late says that the call has not left this process.
	Take(take *bucket.Take, late bool) bucket.Result
	// Blocked answers a take that a record blocks, as far as the store has said so.
	Blocked(take *bucket.Take) (bucket.Result, bool)
	// Owes reports whether an owner of the take has something to settle.
	Owes(take *bucket.Take) bool
	// Settle charges the store for what the tenant has taken here, once. lost says that something was given up.
	Settle(ctx context.Context, tenant string) (limits []bucket.LimitState, lost bool, err error)
	// Owing returns how many tenants have something to settle, and Debtors the names of some of them.
	Owing() int
	Debtors(most int) []string
	// Instances returns how many instances share the store, zero if nobody knows.
	Instances() int
	// Beat sends a heartbeat if one is due, which BeatDue reports.
	Beat(ctx context.Context) error
	BeatDue() bool
}

// learn takes in an answer of the store, for when it goes away, and does what has waited for one.
func (b *Store) learn(ctx context.Context, take *bucket.Take, result *bucket.Result) {
	owes, beat := b.local.Learn(take, result)
	if owes {
		_ = b.settleLocal(ctx, take.Tenant)
	}
	if beat {
		_ = b.beat(ctx)
	}
}

// settleBefore settles what the owners of a take owe, so that the store does not admit what was taken without it
// already. Where that fails the store is not asked for the take: it is away.
func (b *Store) settleBefore(ctx context.Context, take *bucket.Take) error {
	// The first may repeat a settlement of other owners.
	for range 2 {
		if !b.local.Owes(take) {
			return nil
		}
		if err := b.settleLocal(ctx, take.Tenant); err != nil && !errors.Is(err, bucket.ErrInvalid) {
			// Of the take itself it is known that it was not applied.
			kind := bucket.ErrUnavailable
			if SaysNothing(err) {
				kind = bucket.ErrBusy
			}
			return fmt.Errorf("%w: settling: %v", kind, err) //nolint:errorlint // It may match ErrAmbiguous.
		}
	}
	return nil
}

// settleLocal charges the store for what the tenant has taken without it.
func (b *Store) settleLocal(ctx context.Context, tenant string) error {
	start := time.Now()
	limits, lost, err := b.local.Settle(ctx, tenant)
	if err != nil || limits != nil {
		b.called(ctx, "settle_local", time.Since(start), err)
	}
	if limits != nil {
		b.gate.Doubt(tenant)
	}
	b.watcher.LocallySettled(ctx, b.name, tenant, limits, lost)
	return err
}

// beat sends a heartbeat.
func (b *Store) beat(ctx context.Context) error {
	start := time.Now()
	err := b.local.Beat(ctx)
	b.called(ctx, "beat", time.Since(start), err)
	b.leases.beaten()
	return err
}
