package store_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

func TestTheAuditLogKeepsItsRows(t *testing.T) {
	t.Parallel()
	both(t, func(s scene) {
		t, db := s.T, s.db
		add := func(reason string) (stored *audit.Entry) {
			change(t, db, func(tx *store.Tx) {
				e := entry("ada", "policy.publish", "policy", "")
				e.Reason, e.Before = reason, []byte(`{"b":1,"a":[1.0,1e2,"\u00e9"],"b":2}`)
				var err error
				stored, err = audit.Append(t.Context(), tx.Audit(), e)
				require.NoError(t, err)
			})
			return stored
		}
		var want []string
		for _, reason := range []string{"quotes \" and \\, lines\n, <html>, 日本語, \u2028", "b", "c", "d", "e"} {
			record, err := add(reason).Record()
			require.NoError(t, err)
			want = append(want, string(record))
		}
		require.NoError(t, db.Read(t.Context(), func(v *store.View) error {
			for from := range 6 {
				for n := 1; n < 7; n++ {
					rows, err := v.Audit().Rows(t.Context(), int64(from), n)
					require.NoError(t, err)
					records := []string{}
					for _, row := range rows {
						records = append(records, string(row.Record))
					}
					require.Equal(t, want[from:min(from+n, 5)], records, "%d from %d", n, from)
				}
			}
			return nil
		}))
		broken := errors.New("the change failed")
		require.ErrorIs(t, db.Change(t.Context(), func(tx *store.Tx) error {
			_, err := audit.Append(t.Context(), tx.Audit(), entry("ada", "policy.publish", "policy", ""))
			require.NoError(t, err)
			for _, sequence := range []int64{0, 4, 7} {
				require.Error(t, tx.Audit().Append(t.Context(), sequence, audit.Row{Record: []byte("{}")}))
			}
			return broken
		}), broken)
		require.Len(t, requireLog(t, db), 5)

		const writers, each = 8, 10
		var all sync.WaitGroup
		for range writers {
			all.Go(func() {
				for range each {
					add("at once")
				}
			})
		}
		all.Wait()
		require.Len(t, requireLog(t, db), 5+writers*each)
	})
}
