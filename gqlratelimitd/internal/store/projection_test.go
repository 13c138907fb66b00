package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

func TestWhatAnOverrideHasComeToIsKeptUntilItIsSetAgain(t *testing.T) {
	t.Parallel()
	both(t, func(s scene) {
		t, db := s.T, s.db
		o := &store.Override{Tenant: "a\x00", Override: bucket.Override{Owner: bucket.Owner{Level: bucket.User, Name: "\xff"}, Limit: "minute", Capacity: 1, Actor: "ada", Reason: "why"}}
		intents := func() []store.Intent {
			return read(t, db, func(v *store.View) ([]store.Intent, error) { return v.OpenIntents("a\x00", time.Now()) })
		}
		change(t, db, func(tx *store.Tx) { require.NoError(t, tx.PutOverride(o, 0)) })
		require.Equal(t, []store.Intent{{Override: *o}}, intents())
		apply := func(revision uint64) (newest bool) {
			change(t, db, func(tx *store.Tx) {
				var err error
				newest, err = tx.ApplyOverride(o.Key(), revision)
				require.NoError(t, err)
			})
			return newest
		}
		require.False(t, apply(7))
		require.Zero(t, intents()[0].Applied)
		require.True(t, apply(1))
		require.Equal(t, []store.Intent{{Override: *o, Applied: 1}}, intents())
		change(t, db, func(tx *store.Tx) { require.NoError(t, tx.PutOverride(o, 1)) })
		require.False(t, apply(1), "it was set again")
		require.EqualValues(t, 1, intents()[0].Applied)
		require.EqualValues(t, 2, intents()[0].Revision)
	})
}

func TestRecordsThatNobodyHasSetHereAreKeptByteForByte(t *testing.T) {
	t.Parallel()
	both(t, func(s scene) {
		t, db, c := s.T, s.db, s.clock
		mode := bucket.Shadow
		all := []store.Override{
			{Tenant: "a", Override: bucket.Override{Blocked: true, Actor: "\x00\xff", Reason: "\x00", SetAt: c.now, Expires: c.now.Add(time.Hour)}},
			{Tenant: "a", Override: bucket.Override{Limit: "\x00\xff", Capacity: 5, Refill: 2, Period: time.Minute, Mode: &mode}},
			{Tenant: "b\xff", Override: bucket.Override{Owner: bucket.Owner{Level: bucket.Operation, Name: "Query.x", Part: "\x00"}, Unlimited: true}},
		}
		change(t, db, func(tx *store.Tx) {
			for i := range all {
				require.NoError(t, tx.PutUnmanaged(&all[i]))
			}
			require.NoError(t, tx.PutUnmanaged(&all[0]), "once more")
			o := &store.Override{Tenant: "aa", Override: bucket.Override{Blocked: true, Actor: "ada", Reason: "why"}}
			require.NoError(t, tx.PutOverride(o, 0))
			o.Tenant = "a"
			require.NoError(t, tx.PutOverride(o, 0))
		})
		of := func(tenant string) []store.Override {
			return read(t, db, func(v *store.View) ([]store.Override, error) { return v.Unmanaged(tenant) })
		}
		require.Equal(t, all[:2], of("a"))
		require.Equal(t, all[2:], of("b\xff"))
		require.Empty(t, of("aa"))
		for i := range all {
			require.Equal(t, &all[i], read(t, db, func(v *store.View) (*store.Override, error) { return v.UnmanagedOverride(all[i].Key()) }))
		}
		tenants := func(after string, n int) []string {
			return read(t, db, func(v *store.View) ([]string, error) { return v.OverrideTenants(after, n) })
		}
		require.Equal(t, []string{"a", "aa", "b\xff"}, tenants("", 10))
		require.Equal(t, []string{"aa"}, tenants("a", 1))
		require.EqualValues(t, 3, read(t, db, (*store.View).CountUnmanaged))
		change(t, db, func(tx *store.Tx) { require.NoError(t, tx.RemoveUnmanaged(all[1].Key())) })
		require.Equal(t, all[:1], of("a"))
	})
}

func TestNotedSwitchesAreKeptUntilTheyAreForgotten(t *testing.T) {
	t.Parallel()
	both(t, func(s scene) {
		t, db := s.T, s.db
		noted := func() []string { return read(t, db, (*store.View).NotedSwitches) }
		require.Empty(t, noted())
		change(t, db, func(tx *store.Tx) {
			for _, one := range []string{"b", "a", "b"} {
				require.NoError(t, tx.NoteSwitch(one))
			}
		})
		require.Equal(t, []string{"a", "b"}, noted())
		change(t, db, func(tx *store.Tx) {
			require.NoError(t, tx.ForgetSwitch("a"))
			require.NoError(t, tx.ForgetSwitch("a"))
		})
		require.Equal(t, []string{"b"}, noted())
	})
}

func TestALeaseIsTakenByWhoKnowsItsBeat(t *testing.T) {
	t.Parallel()
	both(t, func(s scene) {
		t, db := s.T, s.db
		take := func(holder string, expected store.Lease) (is store.Lease) {
			change(t, db, func(tx *store.Tx) {
				var err error
				is, err = tx.TakeLease("relay", holder, expected)
				require.NoError(t, err)
			})
			return is
		}
		a := take("a", store.Lease{})
		require.Equal(t, store.Lease{Holder: "a", Beat: 1}, a)
		require.Equal(t, a, take("b", store.Lease{}))
		b := take("b", a)
		require.Equal(t, store.Lease{Holder: "b", Beat: 2}, b)
		require.Equal(t, b, take("a", a), "who has lost it does not keep it")
		require.Equal(t, store.Lease{Beat: 3}, take("", b))
		require.Equal(t, store.Lease{Beat: 3}, read(t, db, func(v *store.View) (store.Lease, error) { return v.Lease("relay") }))
		require.Zero(t, read(t, db, func(v *store.View) (store.Lease, error) { return v.Lease("else") }))
	})
}

func TestTheOldestMessageSaysForHowLongSomethingWaits(t *testing.T) {
	t.Parallel()
	both(t, func(s scene) {
		t, db, c := s.T, s.db, s.clock
		waiting := func() (messages int64, since time.Time) {
			require.NoError(t, db.Read(t.Context(), func(v *store.View) (err error) {
				messages, since, err = v.Waiting()
				return err
			}))
			return messages, since
		}
		n, since := waiting()
		require.Zero(t, n)
		require.True(t, since.IsZero())
		first := c.now
		change(t, db, func(tx *store.Tx) { require.NoError(t, tx.Enqueue("tenant", "a", 1)) })
		c.now = c.now.Add(time.Minute)
		change(t, db, func(tx *store.Tx) { require.NoError(t, tx.Enqueue("tenant", "b", 2)) })
		n, since = waiting()
		require.EqualValues(t, 2, n)
		require.Equal(t, first, since)
	})
}

func TestARecordThatWasRemovedIsTheLastChangeOfItsTenant(t *testing.T) {
	t.Parallel()
	both(t, func(s scene) {
		t, db := s.T, s.db
		last := func() *store.Tenant {
			return read(t, db, func(v *store.View) (*store.Tenant, error) { return v.LastTenant("acme") })
		}
		require.Nil(t, last())
		change(t, db, func(tx *store.Tx) {
			require.NoError(t, tx.PutTenant(&store.Tenant{Name: "acme", Record: []byte("{}")}, 0))
			require.NoError(t, tx.PutTenant(&store.Tenant{Name: "acme"}, 1))
		})
		require.EqualValues(t, 2, last().Revision)
		require.Nil(t, last().Record)
	})
}
