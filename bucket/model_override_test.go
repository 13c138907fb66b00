package bucket_test

import (
	"context"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// drawRecord draws an override record of one of the owners.
func (r *run) drawRecord(t *rapid.T) bucket.Override {
	o := bucket.Override{Owner: r.buckets[rapid.IntRange(0, 1).Draw(t, "owner")].Owner, Reason: "model", Actor: "rapid"}
	if rapid.Bool().Draw(t, "single") {
		o.Limit = fmt.Sprint("limit-", rapid.IntRange(0, 6).Draw(t, "limit"))
	}
	mode := rapid.SampledFrom([]bucket.Mode{bucket.Enforce, bucket.Warn, bucket.Shadow, bucket.Off}).Draw(t, "mode")
	switch kind := rapid.IntRange(0, 11).Draw(t, "record"); {
	case kind == 0:
		o.Unlimited = true
	case kind == 1 && o.Limit == "":
		o.Blocked = true
	case kind < 4 || o.Limit == "":
		o.Mode = &mode
	default:
		limit := drawLimit(t)
		o.Capacity, o.Refill, o.Period = limit.Capacity, limit.Refill, limit.Period
		if kind < 7 {
			o.Refill, o.Period = 0, 0
		}
	}
	if rapid.Bool().Draw(t, "expires") {
		o.Expires = time.UnixMilli(r.clock.unixMilli() + rapid.Int64Range(0, 20_000).Draw(t, "life"))
	}
	return o
}

func (r *run) setRecord(t *rapid.T) {
	o := r.drawRecord(t)
	if !o.Expires.IsZero() && o.Expires.UnixMilli() <= r.clock.unixMilli() {
		for _, store := range r.stores {
			_, err := store.(bucket.OverrideStore).SetOverride(context.Background(), r.tenant, o)
			require.ErrorIs(r, err, bucket.ErrInvalid)
		}
		return
	}
	replaced := both(r, func(_ int, store bucket.Store) (*bucket.Override, error) {
		return store.(bucket.OverrideStore).SetOverride(context.Background(), r.tenant, o)
	})
	require.Equal(r, r.removeRecord(o.Owner, o.Limit), replaced, "replaced")
	o.SetAt = time.UnixMilli(r.clock.unixMilli())
	r.records = append(r.records, o)
	r.forget()
}

func (r *run) removeRecords(t *rapid.T) {
	if rapid.IntRange(0, 2).Draw(t, "all") == 0 {
		removed := both(r, func(_ int, store bucket.Store) ([]bucket.Override, error) {
			return store.(bucket.OverrideStore).ClearOverrides(context.Background(), r.tenant)
		})
		require.Equal(r, r.living(), removed, "cleared")
		r.records = nil
		return
	}
	o := r.drawRecord(t)
	removed := both(r, func(_ int, store bucket.Store) (*bucket.Override, error) {
		return store.(bucket.OverrideStore).DeleteOverride(context.Background(), r.tenant, o.Owner, o.Limit)
	})
	require.Equal(r, r.removeRecord(o.Owner, o.Limit), removed, "deleted")
	r.forget()
}

// living returns the records that have not expired.
func (r *run) living() (all []bucket.Override) {
	for _, o := range r.records {
		if o.Expires.IsZero() || o.Expires.UnixMilli() > r.clock.unixMilli() {
			all = append(all, o)
		}
	}
	return all
}

// removeRecord takes a record away, and with it those that have expired, as every change does.
func (r *run) removeRecord(owner bucket.Owner, limit string) (removed *bucket.Override) {
	var kept []bucket.Override
	for _, o := range r.living() {
		if o.Owner == owner && o.Limit == limit {
			removed = &o
		} else {
			kept = append(kept, o)
		}
	}
	r.records = kept
	return removed
}

// forgetRecords lets go the records when the last has expired, and in Redis, whose own clock stands
// still.
func (r *run) forgetRecords() {
	if len(r.records) > 0 && len(r.living()) == 0 {
		r.records = nil
		require.NoError(r, r.client.Del(context.Background(), r.redis.OverridesKey(r.tenant)).Err())
	}
}

// override puts the owners under the limits that the records make, and says whether one is blocked.
func (r *run) override() (blocked bool) {
	for i, owner := range r.owners {
		owner.limits = nil
		all := map[string]bucket.Override{}
		for _, o := range r.living() {
			if o.Owner == r.buckets[i].Owner {
				all[o.Limit] = o
				blocked = blocked || o.Blocked
			}
		}
		for _, policy := range r.buckets[i].Limits.All() {
			limit := policy
			whole, single := all[""], all[limit.Name]
			if single.Capacity > 0 {
				if limit.Capacity == limit.Refill {
					limit.Refill = single.Capacity
				}
				limit.Capacity = single.Capacity
			}
			if single.Refill > 0 {
				limit.Refill = single.Refill
			}
			if single.Period > 0 {
				limit.Period = single.Period
			}
			switch {
			case whole.Unlimited || single.Unlimited:
				limit.Mode = bucket.Off
			case single.Mode != nil:
				limit.Mode = *single.Mode
			case whole.Mode != nil:
				limit.Mode = *whole.Mode
			}
			_, isSingle := all[limit.Name]
			overridden := isSingle || whole.Mode != nil || whole.Unlimited
			if _, err := bucket.Compile(limit); err != nil {
				limit, overridden = policy, false
			}
			if limit.Mode != bucket.Off {
				owner.limits = append(owner.limits, modelLimit{Limit: limit, overridden: overridden})
			}
		}
	}
	return blocked
}
