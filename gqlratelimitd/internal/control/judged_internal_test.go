package control

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/storetest"
)

func TestWhatIsCheckedAgainstAPolicyThatIsAlwaysReplacedIsAConflictInTheEnd(t *testing.T) {
	t.Parallel()
	db, err := store.Open(t.Context(), store.Config{URL: storetest.SQLite(t)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	c := &Control{cfg: Config{Store: db}, compiles: newTurn()}
	for name, test := range map[string]struct {
		err   error
		times int
	}{
		"always replaced": {ErrPolicyChanged, 5},
		"anything else":   {errors.New("broken"), 1},
		"done":            {nil, 1},
	} {
		times := 0
		_, err := judged(t.Context(), c, func(*compiled) (int, error) {
			times++
			return 0, test.err
		})
		require.Equal(t, test.err, err, name)
		require.Equal(t, test.times, times, name)
	}
	require.ErrorIs(t, ErrPolicyChanged, ErrConflict)
	require.ErrorContains(t, ErrPolicyChanged, "send it again")
}
