package relay

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/storetest"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

// between is a store in which something happens just before a record is set or removed, once.
type between struct {
	bucket.OverrideStore
	happens func()
}

func (b *between) once() {
	if happens := b.happens; happens != nil {
		b.happens = nil
		happens()
	}
}

func (b *between) SetOverride(ctx context.Context, tenant string, o bucket.Override) (*bucket.Override, error) {
	b.once()
	return b.OverrideStore.SetOverride(ctx, tenant, o)
}

func (b *between) DeleteOverride(ctx context.Context, tenant string, owner bucket.Owner, limit string) (*bucket.Override, error) {
	b.once()
	return b.OverrideStore.DeleteOverride(ctx, tenant, owner, limit)
}

func TestWhatHappensBetweenReadingAndWritingIsNotLost(t *testing.T) {
	t.Parallel()
	server, ctx := redistest.Start(t), t.Context()
	client := redistest.Connect(t, server.Addr)
	db, err := store.Open(ctx, store.Config{URL: storetest.SQLite(t)})
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	r, err := New(Config{Store: db, Client: client})
	require.NoError(t, err)
	slow := &between{OverrideStore: r.overrides}
	r.overrides = slow
	put := func(capacity int64, expected uint64) {
		t.Helper()
		require.NoError(t, db.Change(ctx, func(tx *store.Tx) error {
			o := &store.Override{Tenant: "acme", Removed: capacity == 0}
			o.Limit, o.Capacity, o.Actor, o.Reason = "minute", capacity, "ada", "why"
			if err := tx.PutOverride(o, expected); err != nil {
				return err
			}
			return tx.Enqueue(store.OverridesMessage, "acme", o.Revision)
		}))
	}
	drain := func() {
		t.Helper()
		for {
			busy, err := r.drain(ctx)
			require.NoError(t, err)
			if !busy {
				return
			}
		}
	}
	there := func() *bucket.Override {
		o, err := slow.GetOverride(ctx, "acme", bucket.Owner{}, "minute")
		require.NoError(t, err)
		return o
	}

	// While this daemon stands still before it writes, another one writes what is newer, and removes its message.
	put(1, 0)
	other, err := New(Config{Store: db, Client: client})
	require.NoError(t, err)
	slow.happens = func() {
		put(2, 1)
		_, err := other.drain(ctx)
		require.NoError(t, err)
		require.EqualValues(t, 2, there().Capacity)
	}
	drain()
	require.EqualValues(t, 2, there().Capacity)

	// The command sets an override at the moment in which the daemon removes its own.
	put(0, 2)
	slow.happens = func() {
		_, err := slow.SetOverride(ctx, "acme", bucket.Override{Limit: "minute", Capacity: 3, Actor: "oncall", Reason: "3 a.m.", Expires: time.Now().Add(time.Hour)})
		require.NoError(t, err)
	}
	drain()
	require.EqualValues(t, 3, there().Capacity)
	require.NoError(t, db.Read(ctx, func(v *store.View) error {
		unmanaged, err := v.Unmanaged("acme")
		require.Len(t, unmanaged, 1)
		return err
	}))

	// So it does at the moment in which the daemon sets one, which replaces it: it is in the audit log all the same.
	put(4, 0)
	require.NoError(t, db.Change(ctx, func(tx *store.Tx) error {
		return tx.RemoveUnmanaged(store.OverrideKey{Tenant: "acme", Limit: "minute"})
	}))
	_, err = slow.ClearOverrides(ctx, "acme")
	require.NoError(t, err)
	slow.happens = func() {
		_, err := slow.SetOverride(ctx, "acme", bucket.Override{Limit: "minute", Capacity: 5, Actor: "oncall", Reason: "4 a.m."})
		require.NoError(t, err)
	}
	drain()
	require.EqualValues(t, 4, there().Capacity)
	require.NoError(t, db.Read(ctx, func(v *store.View) error {
		size, err := v.Audit().Size(ctx)
		require.EqualValues(t, 2, size)
		return err
	}))
}
