package backend

import (
	"context"
	"fmt"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// missingStore stands for a store that a policy names and nobody has configured, as only a source can have it
// that is no tiers.Checker: it is away, so that the fail modes decide. Nothing is asked of it but this.
type missingStore struct{ bucket.Store }

// Take implements bucket.Store.
func (missingStore) Take(context.Context, bucket.Take) (bucket.Result, error) {
	return bucket.Result{}, errMissingStore
}

// Settle implements bucket.Store.
func (missingStore) Settle(context.Context, bucket.Settlement) (bucket.Settled, error) {
	return bucket.Settled{}, errMissingStore
}

var errMissingStore = fmt.Errorf("%w: the policy names a store that ratelimit.Config.Stores does not have", bucket.ErrUnavailable)
