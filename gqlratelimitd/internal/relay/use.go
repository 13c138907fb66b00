package relay

import (
	"context"
	"log/slog"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/digest"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/internal/pace"
)

const (
	// usesPatience is for how long the digests of all instances may take.
	usesPatience = 10 * time.Second
	// maxUses is how many overrides are noted at once.
	maxUses = 10_000
)

// watchUses notes for as long as this daemon leads which overrides instances have decided something under.
func (r *Relay) watchUses(ctx context.Context) {
	for ctx.Err() == nil {
		if err := r.noteUses(ctx); err != nil && ctx.Err() == nil {
			// It is an observation, and comes again.
			r.cfg.Logger.DebugContext(ctx, "relay: when overrides held was not noted", slog.String("error", shortened(err)))
		}
		pace.Wait(ctx, pace.Jittered(r.cfg.Uses), nil)
	}
}

// noteUses notes what the digests of this moment say.
func (r *Relay) noteUses(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, usesPatience)
	defer cancel()
	// Those that can be read are good beside an error.
	digests, unread := r.digests.Digests(limited)
	uses := usesOf(digests, r.cfg.Now())
	if len(uses) == 0 {
		return unread
	}
	err := r.cfg.Store.Read(ctx, func(v *store.View) (err error) {
		uses, err = v.NewUses(uses)
		return err
	})
	if err != nil || len(uses) == 0 {
		return err
	}
	return r.cfg.Store.Change(ctx, func(tx *store.Tx) error {
		for i := range uses {
			if err := tx.NoteUse(&uses[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// useKey is which override was used.
type useKey struct {
	revision      uint64
	tenant, limit string
	level         bucket.Level
	at            int64
}

// usesOf returns when each override was used last, by what instances say. Anybody who can write into the Redis can have said it, so that
// nothing was used in the future.
func usesOf(digests []digest.Digest, now time.Time) (uses []store.OverrideUse) {
	known := make(map[useKey]int)
	for i := range digests {
		for j := range digests[i].Overrides {
			o := &digests[i].Overrides[j]
			key := useKey{}
			if revision, ours := markOf(o.Actor); ours {
				key.revision = revision
			} else {
				key = useKey{tenant: o.Tenant, limit: o.Limit, level: levelOf(o.Level), at: o.SetAt.UnixMilli()}
			}
			at, there := known[key]
			if !there {
				if len(uses) == maxUses {
					continue
				}
				at = len(uses)
				known[key] = at
				uses = append(uses, store.OverrideUse{
					Revision: key.revision, Tenant: key.tenant, Limit: key.limit, Level: key.level, SetAt: time.UnixMilli(key.at).UTC(),
				})
			}
			uses[at].Held, uses[at].Mattered = latest(uses[at].Held, o.Held, now), latest(uses[at].Mattered, o.Changed, now)
		}
	}
	return uses
}

// latest is the later of two times, and not in the future.
func latest(a, b, now time.Time) time.Time {
	if b.After(now) {
		b = now
	}
	if a.Before(b) {
		return b
	}
	return a
}

// levelOf reads the word of a level. Another word is that of a tenant, of whom there is no such record then.
func levelOf(word string) bucket.Level {
	for _, level := range [...]bucket.Level{bucket.Team, bucket.User, bucket.Operation} {
		if level.String() == word {
			return level
		}
	}
	return bucket.Tenant
}
