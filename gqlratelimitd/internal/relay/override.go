package relay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

// bringOverrides brings the override records of a tenant in Redis to what the database has, and notes those that come from somewhere
// else. Redis is read before the database, so that a change that comes meanwhile is seen.
func (r *Relay) bringOverrides(ctx context.Context, tenant string) (c carried, _ error) {
	records, err := r.recordsOf(ctx, tenant)
	if err != nil {
		return c, err
	}
	intents, err := r.intentsOf(ctx, tenant, records)
	if err != nil {
		return c, err
	}
	p := planOf(r.cfg.Now(), records, intents)
	applied := p.settled
	var refused []error
	for _, i := range p.set {
		replaced, err := r.setOverride(ctx, tenant, recordOf(i))
		switch {
		case errors.Is(err, bucket.ErrOverridesFull):
			refused = append(refused, fmt.Errorf("relay: the override of %s: %w", wordsOf(tenant, i.Owner, i.Limit), err))
			continue
		case errors.Is(err, bucket.ErrInvalid):
			// By the clock of Redis it is over, or a newer daemon knows more than this one.
			if i.Expires.IsZero() || r.cfg.Now().Before(i.Expires) {
				refused = append(refused, fmt.Errorf("relay: the override of %s: %w", wordsOf(tenant, i.Owner, i.Limit), err))
			}
			if slices.ContainsFunc(records, func(o bucket.Override) bool { return o.Owner == i.Owner && o.Limit == i.Limit }) {
				p.remove = append(p.remove, i)
			}
			continue
		case err != nil:
			return c, err
		}
		r.told.wrote(ctx, store.OverridesMessage)
		applied = append(applied, i)
		if replaced != nil && !slices.Contains(setAts(p.replaced), replaced.SetAt.UnixMilli()) {
			if _, ours := markOf(replaced.Actor); !ours {
				// It was set a moment ago.
				p.replaced = append(p.replaced, *replaced)
			}
		}
	}
	for _, i := range p.remove {
		kept, err := r.removeOverride(ctx, tenant, i)
		if err != nil {
			return c, err
		}
		applied = append(applied, i)
		p.foreign = append(p.foreign, kept...)
	}
	c.refused = errors.Join(refused...)
	c.note = func(tx *store.Tx) (bool, error) { return noteOverrides(ctx, tx, tenant, applied, &p) }
	return c, nil
}

func setAts(records []bucket.Override) (ats []int64) {
	for i := range records {
		ats = append(ats, records[i].SetAt.UnixMilli())
	}
	return ats
}

// recordsOf returns what Redis has of a tenant. Records that nobody can read are refused by the store: another version wrote them.
func (r *Relay) recordsOf(ctx context.Context, tenant string) ([]bucket.Override, error) {
	ctx, cancel := context.WithTimeout(ctx, callPatience)
	defer cancel()
	return r.overrides.ListOverrides(ctx, tenant)
}

// intentsOf returns what of the database Redis has to have, has to lose, or was not given yet. What was over long ago and has no record is none of it, however
// much there ever was.
func (r *Relay) intentsOf(ctx context.Context, tenant string, records []bucket.Override) (intents []store.Intent, _ error) {
	err := r.cfg.Store.Read(ctx, func(v *store.View) (err error) {
		if intents, err = v.OpenIntents(tenant, r.cfg.Now().Add(-keptAfterEnd)); err != nil {
			return err
		}
		open := make(map[store.OverrideKey]bool, len(intents))
		for n := range intents {
			open[intents[n].Key()] = true
		}
		for n := range records {
			record := &records[n]
			key := store.OverrideKey{Tenant: tenant, Owner: record.Owner, Limit: record.Limit}
			// Of a record that does not come from here, or has a limit that the database could not have, nothing more has to be known.
			if _, ours := markOf(record.Actor); !ours || open[key] || !utf8.ValidString(key.Limit) || strings.Contains(key.Limit, "\x00") {
				continue
			}
			intent, err := v.Intent(key)
			if err != nil {
				return err
			}
			if intent != nil {
				intents = append(intents, *intent)
			}
		}
		return nil
	})
	return intents, err
}

func (r *Relay) setOverride(ctx context.Context, tenant string, record bucket.Override) (*bucket.Override, error) {
	ctx, cancel := context.WithTimeout(ctx, callPatience)
	defer cancel()
	return r.overrides.SetOverride(ctx, tenant, record)
}

// removeOverride removes the record of an intent. One that somebody else has set at the same moment is put back, and returned.
func (r *Relay) removeOverride(ctx context.Context, tenant string, i *store.Intent) (kept []bucket.Override, _ error) {
	ctx, cancel := context.WithTimeout(ctx, callPatience)
	defer cancel()
	removed, err := r.overrides.DeleteOverride(ctx, tenant, i.Owner, i.Limit)
	if err != nil || removed == nil {
		return nil, err
	}
	r.told.wrote(ctx, store.OverridesMessage)
	if _, ours := markOf(removed.Actor); ours {
		return nil, nil
	}
	_, err = r.overrides.SetOverride(ctx, tenant, *removed)
	if errors.Is(err, bucket.ErrInvalid) {
		err = nil
	}
	return []bucket.Override{*removed}, err
}
