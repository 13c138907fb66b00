package backend_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/backend"
)

// slow is a store whose replies take a while.
type slow struct {
	*countingStore

	clock *clock
	takes time.Duration
}

func (s *slow) Take(ctx context.Context, take bucket.Take) (bucket.Result, error) {
	result, err := s.countingStore.Take(ctx, take)
	s.clock.advance(s.takes)
	return result, err
}

func TestARefusalIsAsOldAsItsQuestionHoweverLongTheReplyTook(t *testing.T) {
	t.Parallel()
	for _, takes := range []time.Duration{0, 50 * time.Millisecond, 150 * time.Millisecond, 900 * time.Millisecond, 3 * time.Second} {
		c, b := newGated(t, backend.GateConfig{}), tenPerSecond(t)
		store := &slow{countingStore: c.store, clock: c.clock}
		c.SetStore(store)
		require.Equal(t, bucket.Admitted, c.take(bucket.Take{Buckets: b, Amounts: points(10)}).Verdict)
		store.takes = takes
		require.Equal(t, bucket.Limited, c.take(bucket.Take{Buckets: b, Amounts: points(10)}).Verdict)
		store.takes = 0
		for range 20 {
			limits, err := c.store.Peek(t.Context(), "acme", b)
			require.NoError(t, err)
			got := c.take(bucket.Take{Buckets: b, Amounts: points(8)})
			if limits[0].Remaining >= 8 {
				require.Equal(t, bucket.Admitted, got.Verdict, "the reply took %v", takes)
				break
			}
			require.Equal(t, bucket.Limited, got.Verdict)
			c.clock.advance(100 * time.Millisecond)
		}
	}
}
