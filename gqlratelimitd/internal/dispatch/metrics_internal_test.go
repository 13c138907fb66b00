package dispatch

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

// hanging is a database that answers nothing, and counts who asks.
type hanging struct{ asked int }

var errHangs = errors.New("it hangs")

func (h *hanging) Read(ctx context.Context, _ func(*store.View) error) error {
	h.asked++
	<-ctx.Done()
	return errHangs
}

func TestADatabaseThatHangsHoldsUpAScrapeForTwoSecondsAndNotEachOfThem(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun, kept, db := time.Now(), &totals{}, &hanging{}
		for range 5 {
			_, err := kept.get(context.Background(), db, begun)
			require.ErrorIs(t, err, errHangs)
		}
		require.Equal(t, observePatience, time.Since(begun))
		require.Equal(t, 1, db.asked)
	})
}
