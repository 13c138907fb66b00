package relay

import (
	"context"
	"errors"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

// carried is what was brought to Redis.
type carried struct {
	// refused is why Redis has not what the database has, and will not have it before that changes. It is nil if it has.
	refused error
	// note notes it in the database, and reports whether what was brought still is the newest. Nil is nothing to note. It may be called
	// several times.
	note func(tx *store.Tx) (newest bool, _ error)
}

// drain carries some messages, and reports whether there were any.
func (r *Relay) drain(ctx context.Context) (busy bool, _ error) {
	var page []store.Message
	err := r.cfg.Store.Read(ctx, func(v *store.View) (err error) {
		page, err = v.Outbox(r.after, messages)
		return err
	})
	if err != nil || len(page) == 0 {
		// Those that could not be carried come again.
		r.after = 0
		return false, err
	}
	var errs []error
	arrived, brought := make([]store.Message, 0, len(page)), make([]carried, 0, len(page))
	failures := 0
	for _, m := range page {
		// What cannot be carried holds up nothing that is about another thing.
		r.after = m.Sequence
		c, known, err := r.bring(ctx, &m)
		switch {
		case err != nil:
			errs = append(errs, err)
			failures++
		case known:
			arrived, brought = append(arrived, m), append(brought, c)
			r.refuse(ctx, m.Kind, m.Name, c.refused)
			failures = 0
		}
		if failures == failuresInARow || ctx.Err() != nil {
			break
		}
	}
	if len(arrived) > 0 {
		errs = append(errs, r.cfg.Store.Change(ctx, func(tx *store.Tx) error { return dequeue(tx, arrived, brought) }))
	}
	return len(arrived) > 0, errors.Join(errs...)
}

// dequeue removes messages whose things have arrived.
func dequeue(tx *store.Tx, arrived []store.Message, brought []carried) error {
	for i := range arrived {
		newest := true
		if note := brought[i].note; note != nil {
			var err error
			if newest, err = note(tx); err != nil {
				return err
			}
		}
		remove := tx.Dequeue
		if !newest {
			// Somebody else may have removed the message of what is newer, before this daemon has written what is older.
			m := arrived[i]
			remove = func(uint64) error { return tx.Enqueue(m.Kind, m.Name, m.Revision) }
		}
		if err := remove(arrived[i].Sequence); err != nil {
			return err
		}
	}
	return nil
}

// bring brings what a message is about to Redis. It is not known if a newer daemon has written the message: that one carries it.
func (r *Relay) bring(ctx context.Context, m *store.Message) (c carried, known bool, err error) {
	switch m.Kind {
	case store.PolicyMessage:
		c, err = r.bringPolicy(ctx)
	case store.TenantMessage:
		c, err = r.bringTenant(ctx, m.Name)
	case store.OverridesMessage:
		c, err = r.bringOverrides(ctx, m.Name)
	default:
		return carried{}, false, nil
	}
	return c, true, err
}
