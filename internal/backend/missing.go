package backend

import (
	"context"
	"fmt"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
)

// errMissingStore is the answer of a store that is not there.
var errMissingStore = fmt.Errorf("%w: the policy names a store that ratelimit.Config.Stores does not have", bucket.ErrUnavailable)

// missingStore stands for a store that a policy names and nobody has configured, as only a source can have it
// that is no tiers.Checker: it is away, so that the fail modes decide.
type missingStore struct{}

// Take implements bucket.Store.
func (missingStore) Take(context.Context, bucket.Take) (bucket.Result, error) {
	return bucket.Result{}, errMissingStore
}

// Settle implements bucket.Store.
func (missingStore) Settle(context.Context, bucket.Settlement) (bucket.Settled, error) {
	return bucket.Settled{}, errMissingStore
}

// Renew implements bucket.Store.
func (missingStore) Renew(context.Context, string, *idempotency.Claim) (bool, error) {
	return false, errMissingStore
}

// Peek implements bucket.Store.
func (missingStore) Peek(context.Context, string, []bucket.Bucket) ([]bucket.LimitState, error) {
	return nil, errMissingStore
}

// Grant implements bucket.Store.
func (missingStore) Grant(context.Context, string, []bucket.Bucket, bucket.Amounts) ([]bucket.LimitState, error) {
	return nil, errMissingStore
}

// Reset implements bucket.Store.
func (missingStore) Reset(context.Context, string, []bucket.Bucket) error {
	return errMissingStore
}
