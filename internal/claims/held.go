package claims

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
)

// Store is where the claim is. Package backend has it.
type Store interface {
	// Renew renews the lease, and reports whether the attempt still holds the claim.
	Renew(ctx context.Context, tenant string, claim *idempotency.Claim) (bool, error)
	// Settle ends the claim.
	Settle(ctx context.Context, settlement bucket.Settlement) (bucket.Settled, error)
}

// Operation is what holds a claim.
type Operation interface {
	// Ran reports whether anything of it may have happened, by the response that it ends with; nil if it has none.
	Ran(response *graphql.Response) bool
	// Account returns the charge to correct and what the operation was worth, a zero settlement if the charge stays. It is
	// asked once, when the claim ends.
	Account(ran bool) bucket.Settlement
	// KeepAnswer charges the bytes of an answer that is to be kept, and reports whether it may be.
	KeepAnswer(ctx context.Context, bytes int64) bool
	// Settled is told what became of the end of the claim, after so many tries.
	Settled(ctx context.Context, settled *bucket.Settled, tries int, err error)
}

// Held is a claim that an operation holds until it ends.
type Held struct {
	Claim  *idempotency.Claim
	Tenant string
	// Mutation says that there may be an effect, of which the answer tells whatever it says.
	Mutation  bool
	Store     Store
	Operation Operation

	keeper *Keeper
	settle sync.Once
}

// Hold runs an operation that holds the claim: its lease is renewed while it works, and the claim is settled before
// the answer is sent. A panic in what comes later is settled as what it left: before the operation has run as nothing,
// and after that without an answer, so that no repeat runs a mutation again, and that of a query is charged.
func (k *Keeper) Hold(ctx context.Context, held *Held, next graphql.OperationHandler) graphql.ResponseHandler {
	held.keeper = k
	begun := false
	defer func() {
		if !begun {
			held.Abandon(ctx)
		}
	}()
	handler := next(ctx)
	begun = true
	return func(ctx context.Context) (response *graphql.Response) {
		k.running.Add(1)
		defer k.running.Add(-1)
		defer held.renew(ctx)()
		defer held.settle.Do(func() { held.end(ctx, response) })
		return handler(ctx)
	}
}

// Abandon ends the claim of an operation whose answer nobody is going to ask for. It does nothing if the claim has ended.
func (h *Held) Abandon(ctx context.Context) { h.settle.Do(func() { h.end(ctx, nil) }) }

// renew renews the claim three times in each lease until the returned function is called.
func (h *Held) renew(ctx context.Context) (stop func()) {
	every := h.Claim.Lease / 3
	// The client may leave while the operation still works: the lease outlives its context.
	ctx = context.WithoutCancel(ctx)

	var mu sync.Mutex
	stopped := false
	var timer *time.Timer
	renew := func() {
		held, err := h.Store.Renew(ctx, h.Tenant, h.Claim)
		mu.Lock()
		defer mu.Unlock()
		// An attempt that lost its claim has nothing left to renew; a store that is away may return.
		if !stopped && (held || err != nil) {
			timer.Reset(every)
		}
	}
	mu.Lock()
	timer = time.AfterFunc(every, renew)
	mu.Unlock()
	return func() {
		mu.Lock()
		defer mu.Unlock()
		stopped = true
		timer.Stop()
	}
}

// end ends the claim: with the answer, which is stored before it is sent, or by releasing the key and the
// record if nothing ran.
func (h *Held) end(ctx context.Context, response *graphql.Response) {
	// The client may be gone; its next attempt still needs the answer.
	ctx = context.WithoutCancel(ctx)
	end := &bucket.ClaimSettlement{Tenant: h.Tenant, Claim: h.Claim, Outcome: idempotency.Released}
	ran := h.Operation.Ran(response)
	settlement := h.Operation.Account(ran)
	settlement.Claim = end
	if ran {
		end.Outcome, end.Answer = idempotency.Done, h.answer(ctx, response)
	}
	tries := 0
	var settled bucket.Settled
	err := patiently(func() (err error) {
		tries++
		settled, err = h.Store.Settle(ctx, settlement)
		return err
	})
	h.Operation.Settled(ctx, &settled, tries, err)
	log := h.keeper.cfg.Logger
	switch {
	case err != nil:
		log.ErrorContext(ctx, "ratelimit: a claim could not be settled: until its lease ends, repeats are told that "+
			"it is in flight, and after that the next one runs again, or is told that the outcome is unknown",
			slog.String("error", err.Error()), slog.Bool("mutation", h.Mutation))
	// A try before this one may have settled it although its reply was lost.
	case !settled.Applied && tries == 1:
		log.WarnContext(ctx, "ratelimit: an operation ended without its claim: its lease had run out while the store "+
			"was away or the process stood still, or its record is gone, and another attempt may have run as well",
			slog.Bool("mutation", h.Mutation))
	}
}
