package relay

import (
	"context"
	"errors"
	"fmt"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
)

// bringPolicy brings the newest revision of the policy to Redis, unless there is a newer one. Its number is only ever raised.
func (r *Relay) bringPolicy(ctx context.Context) (c carried, _ error) {
	var newest *policy.Revision
	err := r.cfg.Store.Read(ctx, func(v *store.View) error {
		head, err := v.Head()
		if err != nil || head.Policy == 0 {
			return err
		}
		newest, err = v.Revision(head.Policy)
		return err
	})
	if err != nil || newest == nil {
		return c, err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*callPatience)
	defer cancel()
	there, err := r.feed.Newest(ctx, newest.Head())
	refused := (*policy.RefusedError)(nil)
	switch {
	case err == nil && there == nil:
		return c, nil
	case errors.Is(err, policy.ErrEmpty), errors.As(err, &refused):
	case err != nil:
		return c, err
	}
	if err := r.feed.Restore(ctx, newest); err != nil {
		return c, err
	}
	r.told.wrote(ctx, store.PolicyMessage)
	// Whatever stands in its way is shown and stays.
	there, err = r.feed.Newest(ctx, newest.Head())
	switch {
	case err == nil && there != nil && there.Number > newest.Number:
		c.refused = fmt.Errorf("relay: Redis has revision %d of the policy, and the database only %d: publish it here, under a number above that", there.Number, newest.Number)
	case err == nil && there != nil:
		c.refused = fmt.Errorf("relay: Redis has another revision %d of the policy than the database: publish the next one", there.Number)
	case errors.As(err, &refused):
		c.refused = err
	case errors.Is(err, policy.ErrEmpty):
		err = errors.New("relay: Redis has lost the policy at once")
		return c, err
	case err != nil:
		return c, err
	}
	return c, nil
}
