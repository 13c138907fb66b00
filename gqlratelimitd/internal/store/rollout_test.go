package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

func TestAStateOfARollOutTakesThePlaceOfTheOneBeforeItAndOfNoOther(t *testing.T) {
	t.Parallel()
	both(t, func(s scene) {
		get := func() *store.Rollout {
			return read(s, s.db, (*store.View).Rollout)
		}
		require.Nil(s, get())
		change(s, s.db, func(tx *store.Tx) {
			require.ErrorIs(s, tx.PutRollout(&store.Rollout{Version: 2}), store.ErrConflict)
			require.NoError(s, tx.PutRollout(&store.Rollout{Version: 1, State: []byte("one")}))
			require.ErrorIs(s, tx.PutRollout(&store.Rollout{Version: 1, State: []byte("two")}), store.ErrConflict)
			require.NoError(s, tx.PutRollout(&store.Rollout{Version: 2, State: []byte("two")}))
		})
		require.Equal(s, &store.Rollout{Version: 2, State: []byte("two")}, get())
	})
}
