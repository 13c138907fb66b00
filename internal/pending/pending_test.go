package pending_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/internal/pending"
)

func TestWaitReturnsWhenNothingIsUnderWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c pending.Counter
		require.NoError(t, c.Wait(t.Context()))
		c.Add(2)
		returned := 0
		var waiting sync.WaitGroup
		var mu sync.Mutex
		for range 3 {
			waiting.Go(func() {
				_ = c.Wait(t.Context())
				mu.Lock()
				defer mu.Unlock()
				returned++
			})
		}
		c.Add(-1)
		synctest.Wait()
		mu.Lock()
		require.Zero(t, returned)
		mu.Unlock()
		c.Add(-1)
		waiting.Wait()
		require.Equal(t, 3, returned)

		c.Add(1)
		ended, end := context.WithCancel(t.Context())
		end()
		require.ErrorIs(t, c.Wait(ended), context.Canceled)
	})
}
