package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

func TestWhatHasBeenAnnouncedSomewhereStaysSo(t *testing.T) {
	t.Parallel()
	for kind, empty := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			db := open(t, store.Config{URL: empty(t)})
			announced := func(name string) int64 {
				return read(t, db, func(v *store.View) (int64, error) { return v.Announced(name) })
			}
			require.Zero(t, announced("redis"))
			for _, next := range []int64{3, 7, 5, 7} {
				change(t, db, func(tx *store.Tx) { require.NoError(t, tx.Announce("redis", next)) })
			}
			change(t, db, func(tx *store.Tx) { require.NoError(t, tx.Announce("other", 1)) })
			require.EqualValues(t, 7, announced("redis"))
			require.EqualValues(t, 1, announced("other"))
		})
	}
}
