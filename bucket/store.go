package bucket

import (
	"context"
	"errors"

	"github.com/gqlgen-ratelimit/ratelimit/bucket/internal/deadline"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
)

// Errors of a store. Every error of a [Store] method matches one of them.
var (
	// ErrUnavailable says that the store is away and did not act: nothing was charged.
	ErrUnavailable = errors.New("bucket: store unavailable")
	// ErrAmbiguous says that no answer came back: the store may or may not have acted.
	ErrAmbiguous = errors.New("bucket: no answer from the store, the charge may have been applied")
	// ErrBusy says that the call did not leave this process in time, which had no processor time or no free connection
	// for it: nothing was charged. It says nothing of the store, which may be well, so that it is neither an absence of
	// the store nor a failure of its node.
	ErrBusy = errors.New("bucket: this process was too busy to ask the store")
	// ErrLate says of an [ErrAmbiguous] besides that the call did not end because its node was silent: this process was
	// late, its caller had no more time, or the node answered others meanwhile. As with [ErrBusy], nothing is known of the
	// store.
	ErrLate = deadline.ErrLate
	// ErrInvalid says that the call itself was wrong: a negative amount, two buckets of one owner.
	// Nothing was charged.
	ErrInvalid = errors.New("bucket: invalid call")
)

// Store keeps the buckets of all tenants and the claims of their idempotency keys.
//
// What was spent keeps the terms in which it was charged, whatever limits of the same name and unit an owner is under
// later, until another policy with room for it charges the limit: it comes back no faster than the policy says that
// charged it, or the one that charges it now. A call that does not charge a limit leaves it as it is.
// docs/reference/policy-changes.md has the rules.
//
// A refusal is a value; an error means that the store broke. Implementations are safe for
// concurrent use and give the same answers for the same sequence of calls: buckettest runs one
// contract against all of them. Time is the store's own: a caller's clock decides nothing.
type Store interface {
	// Take charges all buckets or none, and writes the claim, if there is one, in the same step. It
	// returns the verdict with the state of every limit.
	Take(ctx context.Context, take Take) (Result, error)

	// Settle corrects a charge and ends a claim, once: a repeated call changes nothing and returns
	// Applied false.
	Settle(ctx context.Context, settlement Settlement) (Settled, error)

	// Renew extends the lease of a claim. It returns false if the attempt holds the claim no longer.
	Renew(ctx context.Context, tenant string, claim *idempotency.Claim) (bool, error)

	// Peek returns the state of the limits and changes nothing.
	Peek(ctx context.Context, tenant string, buckets []Bucket) ([]LimitState, error)

	// Grant gives budget back, as support does for a customer: each limit gains the amount of its
	// unit, until nothing is spent, under whichever policy that was.
	Grant(ctx context.Context, tenant string, buckets []Bucket, amounts Amounts) ([]LimitState, error)

	// Reset makes the buckets full again by forgetting them.
	Reset(ctx context.Context, tenant string, buckets []Bucket) error
}

// EvictionCounter is a [Store] that forgets budgets when it has no more room, and says how many. Package ratelimit logs the first
// of each store, and has a metric of them.
type EvictionCounter interface {
	// Evicted is how many budgets were forgotten so far of which something was spent. Each is full again, as if nobody had
	// used it. It never becomes less, and is read after each call, so that it must be quick.
	Evicted() uint64
}
