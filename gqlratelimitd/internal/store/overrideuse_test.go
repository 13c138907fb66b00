package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

func TestWhenAnOverrideMatteredIsKeptToAMinuteAndForgottenWhenItIsSetAgain(t *testing.T) {
	t.Parallel()
	both(t, func(s scene) {
		t, db, c := s.T, s.db, s.clock
		managed := &store.Override{Tenant: "acme", Override: bucket.Override{Limit: "minute", Capacity: 5, Actor: "ada", Reason: "why"}}
		foreign := &store.Unmanaged{Override: store.Override{Tenant: "globex", Override: bucket.Override{Owner: bucket.Owner{Level: bucket.User, Name: "\xff"}, Limit: "minute", Capacity: 5, SetAt: c.now}}}
		change(t, db, func(tx *store.Tx) {
			require.NoError(t, tx.PutOverride(managed, 0))
			require.NoError(t, tx.PutUnmanaged(foreign))
		})
		note := func(uses ...store.OverrideUse) int {
			t.Helper()
			fresh := read(t, db, func(v *store.View) ([]store.OverrideUse, error) { return v.NewUses(uses) })
			change(t, db, func(tx *store.Tx) {
				for i := range fresh {
					require.NoError(t, tx.NoteUse(&fresh[i]))
				}
			})
			return len(fresh)
		}
		by := func(held, mattered time.Duration) []store.OverrideUse {
			at := store.OverrideUse{Held: c.now.Add(held)}
			if mattered >= 0 {
				at.Mattered = c.now.Add(mattered)
			}
			one, two := at, at
			one.Revision = 1
			two.Tenant, two.Level, two.Limit, two.SetAt = "globex", bucket.User, "minute", c.now
			return []store.OverrideUse{one, two}
		}
		is := func(held, mattered time.Time) {
			t.Helper()
			found := read(t, db, func(v *store.View) ([]store.ListedOverride, error) {
				return v.FindOverrides(&store.OverrideQuery{Now: c.now, Order: store.ByMattered}, 10)
			})
			require.Len(t, found, 2)
			for _, o := range found {
				require.Equal(t, []time.Time{held, mattered}, []time.Time{o.Held, o.Mattered}, o.Tenant)
			}
		}
		is(time.Time{}, time.Time{})
		require.Equal(t, 2, note(by(0, -1)...))
		is(c.now, time.Time{})
		require.Zero(t, note(by(59*time.Second, -1)...), "it was noted a moment ago")
		require.Equal(t, 2, note(by(59*time.Second, 30*time.Second)...))
		is(c.now.Add(59*time.Second), c.now.Add(30*time.Second))
		require.Equal(t, 2, note(by(0, 2*time.Minute)...))
		is(c.now.Add(59*time.Second), c.now.Add(2*time.Minute))
		require.Zero(t, note(store.OverrideUse{Revision: 7, Held: c.now.Add(time.Hour)}, store.OverrideUse{Tenant: "globex", Limit: "minute", SetAt: c.now, Held: c.now.Add(time.Hour)}),
			"of what is not there nothing is noted")

		// In the index those of which nothing is known stand at the end.
		change(t, db, func(tx *store.Tx) {
			require.NoError(t, tx.PutOverride(&store.Override{Tenant: "new", Override: managed.Override}, 0))
		})
		listed := read(t, db, func(v *store.View) ([]store.ListedOverride, error) {
			return v.FindOverrides(&store.OverrideQuery{Now: c.now, Order: store.ByMattered}, 10)
		})
		require.Equal(t, "new", listed[2].Tenant)
		change(t, db, func(tx *store.Tx) {
			require.NoError(t, tx.PutOverride(managed, 1))
			foreign.Capacity = 6
			require.NoError(t, tx.PutUnmanaged(foreign))
		})
		listed = read(t, db, func(v *store.View) ([]store.ListedOverride, error) {
			return v.FindOverrides(&store.OverrideQuery{Now: c.now}, 10)
		})
		for _, o := range listed {
			require.True(t, o.Held.IsZero(), "it is another one")
			require.True(t, o.Mattered.IsZero())
		}
	})
}
