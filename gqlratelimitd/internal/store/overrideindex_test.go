package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

func TestTheIndexOfOverridesHasEachOnceHoweverItsPagesAreCut(t *testing.T) {
	t.Parallel()
	both(t, func(s scene) {
		t, db := s.T, s.db
		begin := s.clock.now
		for i := range 24 {
			o := bucket.Override{Owner: bucket.Owner{Level: bucket.Level(i % 4), Name: fmt.Sprintf("\x00%d\xff", i)}, Limit: fmt.Sprintf("l%d?", i%2), Capacity: 5, Actor: "ada", Reason: "why"}
			if i%5 > 0 {
				o.Expires = begin.Add(time.Duration(i%5) * time.Hour)
			}
			change(t, db, func(tx *store.Tx) {
				tenant := fmt.Sprintf("t%d", i/6)
				require.NoError(t, tx.PutOverride(&store.Override{Tenant: tenant, Override: o}, 0))
				foreign := o
				if foreign.SetAt = begin; i%3 == 0 {
					foreign.Owner.Name += "x"
				}
				require.NoError(t, tx.PutUnmanaged(&store.Override{Tenant: tenant, Override: foreign}))
			})
		}
		find := func(q store.OverrideQuery, n int) []store.ListedOverride {
			return read(t, db, func(v *store.View) ([]store.ListedOverride, error) { return v.FindOverrides(&q, n) })
		}
		for name, test := range map[string]struct {
			query store.OverrideQuery
			want  int
		}{
			"all": {store.OverrideQuery{Ended: true}, 24}, "that hold": {store.OverrideQuery{Now: begin.Add(2 * time.Hour)}, 14},
			"of a tenant": {store.OverrideQuery{Tenant: "t2"}, 6},
		} {
			whole := find(test.query, store.MaxPage)
			require.Len(t, whole, test.want, name)
			for _, n := range []int{1, 2, 5} {
				var all []store.ListedOverride
				for at := test.query; ; {
					page := find(at, n)
					if len(page) == 0 {
						break
					}
					all = append(all, page...)
					key := page[len(page)-1].Key()
					at.After = &key
				}
				require.Equal(t, whole, all, "%s, %d on a page", name, n)
			}
		}
		replaced := 0
		for _, o := range find(store.OverrideQuery{Ended: true}, store.MaxPage) {
			if o.Replaced {
				replaced++
			}
		}
		require.Equal(t, 16, replaced)
	})
}
