package bucket_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

func TestWhatIsHeldIsToldByUnitWithWhatIsLeftOfItAndInTheStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newLeasedScene(t,
			bucket.Limit{Name: "hour", Capacity: 36_000, Refill: 36_000, Period: time.Hour},
			bucket.Limit{Name: "window", Unit: bucket.Requests, Capacity: 10_000, Period: time.Hour, Window: bucket.Window{Kind: bucket.FixedWindow}},
		)
		require.Empty(t, s.leased.Held(), "before anything is leased")
		take := s.of(20)
		take.Amounts = append(take.Amounts, bucket.Amount{Unit: bucket.Requests, N: 1})
		for range 100 {
			_, err := s.leased.Take(t.Context(), take)
			require.NoError(t, err)
			time.Sleep(20 * time.Millisecond) //nolint:forbidigo // In the bubble.
		}
		held := s.leased.Held()
		require.Len(t, held, 2)
		points, requests := held[0], held[1]
		require.Equal(t, bucket.Points, points.Unit)
		require.Positive(t, points.Level)
		require.Less(t, points.Level, points.Capacity)
		require.LessOrEqual(t, points.Capacity, int64(27_000), "a quarter stays in the store")
		require.Positive(t, points.Free)
		require.LessOrEqual(t, points.Free+points.Capacity, int64(36_000))

		require.Equal(t, bucket.Requests, requests.Unit)
		require.Positive(t, requests.Capacity)
		require.Equal(t, requests.Capacity, requests.Level, "of a window it is what is there")
		require.LessOrEqual(t, requests.Free+requests.Level, int64(10_000-100))

		before := points.Level
		_, err := s.leased.Take(t.Context(), take)
		require.NoError(t, err)
		require.Equal(t, before-20, s.leased.Held()[0].Level, "what is taken is gone at once")

		require.NoError(t, s.leased.Shutdown(t.Context()))
		require.Empty(t, s.leased.Held(), "after everything was given back")
	})
}
