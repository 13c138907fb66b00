package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

// listed are overrides in words.
func listed(found []store.ListedOverride) (words []string) {
	for _, o := range found {
		text := fmt.Sprintf("%s/%s/%s", o.Tenant, o.Owner.Name, o.Limit)
		if o.Unmanaged {
			text += " unmanaged"
		}
		if o.Replaced {
			text += " replaced"
		}
		words = append(words, text)
	}
	return words
}

func TestTheIndexOfOverridesHasEachOnceHoweverItsPagesAreCut(t *testing.T) {
	t.Parallel()
	both(t, func(s scene) {
		t, db, c := s.T, s.db, s.clock
		begin := c.now
		record := func(i int) bucket.Override {
			o := bucket.Override{Owner: bucket.Owner{Level: bucket.User, Name: fmt.Sprintf("\x00%d\xff", i%3)}, Limit: fmt.Sprintf("l%d?", i%2), Actor: fmt.Sprintf("a%d", i%2), Reason: "why"}
			if o.Blocked = i%4 == 0; !o.Blocked {
				o.Capacity = 5
			}
			if i%5 > 0 {
				o.Expires = begin.Add(time.Duration(i%5) * time.Hour)
			}
			return o
		}
		for i := range 24 {
			change(t, db, func(tx *store.Tx) {
				tenant := fmt.Sprintf("t%d", i/6)
				o := record(i)
				if i%2 == 0 {
					o.Actor += " (https://login.example.org)"
				}
				require.NoError(t, tx.PutOverride(&store.Override{Tenant: tenant, Override: o}, 0))
				foreign := record(i)
				foreign.SetAt = c.now
				if i%3 == 0 {
					foreign.Owner.Name += "x"
				}
				require.NoError(t, tx.PutUnmanaged(&store.Unmanaged{Override: store.Override{Tenant: tenant, Override: foreign}}))
			})
			if i%4 == 3 {
				c.now = c.now.Add(time.Second)
			}
		}
		yes, no := true, false
		for name, q := range map[string]store.OverrideQuery{
			"all": {Ended: true}, "that hold": {Now: begin.Add(2 * time.Hour)}, "of a tenant": {Tenant: "t2"}, "blocks": {Blocked: &yes}, "no blocks": {Blocked: &no},
			"set here": {Unmanaged: &no}, "set elsewhere": {Unmanaged: &yes}, "by": {By: "a0"}, "until": {Now: begin, Until: begin.Add(2 * time.Hour)},
		} {
			for _, q.Order = range []store.OverrideOrder{store.BySet, store.ByExpiry} {
				whole := read(t, db, func(v *store.View) ([]store.ListedOverride, error) { return v.FindOverrides(&q, store.MaxPage) })
				require.NotEmpty(t, whole, name)
				for i := range whole[1:] {
					require.LessOrEqual(t, whole[i].Mark(q.Order).Sort, whole[i+1].Mark(q.Order).Sort, name)
				}
				for _, n := range []int{1, 2, 5} {
					var all []store.ListedOverride
					at := q
					for {
						page := read(t, db, func(v *store.View) ([]store.ListedOverride, error) { return v.FindOverrides(&at, n) })
						if len(page) == 0 {
							break
						}
						all = append(all, page...)
						at.After = page[len(page)-1].Mark(q.Order)
					}
					require.Equal(t, listed(whole), listed(all), "%s, %d on a page", name, n)
				}
			}
		}
		count := func(q store.OverrideQuery) int {
			return len(read(t, db, func(v *store.View) ([]store.ListedOverride, error) { return v.FindOverrides(&q, store.MaxPage) }))
		}
		require.Equal(t, 48, count(store.OverrideQuery{Ended: true}))
		require.Equal(t, 12, count(store.OverrideQuery{Ended: true, Blocked: &yes}))
		require.Equal(t, 24, count(store.OverrideQuery{Ended: true, By: "a0"}), "with an issuer and without")
		require.Equal(t, 12, count(store.OverrideQuery{Ended: true, By: "a0 (https://login.example.org)"}))
		require.Zero(t, count(store.OverrideQuery{Ended: true, By: "a"}))
		replaced := 0
		for _, o := range read(t, db, func(v *store.View) ([]store.ListedOverride, error) {
			return v.FindOverrides(&store.OverrideQuery{Ended: true, Unmanaged: &no}, store.MaxPage)
		}) {
			if o.Replaced {
				replaced++
			}
		}
		require.Equal(t, 16, replaced)
	})
}

func BenchmarkAPageOfTheIndexOf100000Overrides(b *testing.B) {
	db := open(b, store.Config{URL: kinds["SQLite"](b)})
	now := time.Now()
	require.NoError(b, db.Change(b.Context(), func(tx *store.Tx) error {
		for i := range 100_000 {
			o := bucket.Override{Limit: "minute", Capacity: 5, Expires: now.Add(time.Duration(i%1000-500) * time.Minute), Actor: fmt.Sprintf("a%d", i%100), Reason: "why"}
			if o.Blocked = i%1000 == 0; o.Blocked {
				o.Limit, o.Capacity = "", 0
			}
			if err := tx.PutOverride(&store.Override{Tenant: fmt.Sprint(i), Override: o}, 0); err != nil {
				return err
			}
		}
		return nil
	}))
	yes := true
	for name, q := range map[string]store.OverrideQuery{
		"set": {Now: now}, "expires": {Now: now, Order: store.ByExpiry}, "blocked": {Now: now, Blocked: &yes}, "by": {Now: now, By: "a7", Order: store.ByExpiry},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				require.NoError(b, db.Read(b.Context(), func(v *store.View) error {
					_, err := v.FindOverrides(&q, 100)
					return err
				}))
			}
		})
	}
}
