package pace_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/internal/pace"
)

// subscriptions are when each was made and ended.
type subscriptions struct{ made, ended []time.Time }

// subscribe makes so many that stand for so long each. A negative time is one that never stands.
func subscribe(t *testing.T, n int, life time.Duration) subscriptions {
	t.Helper()
	var s subscriptions
	pace.Subscribe(t.Context(), func(stands func()) bool {
		s.made = append(s.made, time.Now())
		if life >= 0 {
			stands()
			require.True(t, pace.Sleep(t.Context(), life))
			stands()
		}
		s.ended = append(s.ended, time.Now())
		return len(s.made) < n
	})
	require.Len(t, s.made, n)
	return s
}

func TestASubscriptionThatStoodIsMadeAgainAtOnceAndOneThatEndsAtOnceNotWithoutEnd(t *testing.T) {
	t.Parallel()
	for _, life := range []time.Duration{time.Minute, time.Second, 50 * time.Millisecond, time.Millisecond, 0} {
		synctest.Test(t, func(t *testing.T) {
			s := subscribe(t, 200, life)
			for i := 1; i < len(s.made); i++ {
				require.GreaterOrEqual(t, s.made[i].Sub(s.made[i-1]), 25*time.Millisecond, "%v", life)
				if life >= 50*time.Millisecond {
					require.LessOrEqual(t, s.made[i].Sub(s.ended[i-1]), 20*time.Millisecond, "%v", life)
				}
			}
		})
	}
}

func TestASubscriptionThatDoesNotStandIsTriedLessAndLess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := subscribe(t, 30, -1)
		wait := 50 * time.Millisecond
		for i := 1; i < len(s.made); i++ {
			gap := s.made[i].Sub(s.ended[i-1])
			require.GreaterOrEqual(t, gap, wait/2)
			require.LessOrEqual(t, gap, wait)
			wait = min(2*wait, 5*time.Second)
		}
	})
}

func TestWhoWaitsToSubscribeEndsWithTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		pace.Subscribe(ctx, func(func()) bool { return true })
		require.Equal(t, time.Minute, time.Since(began))
	})
}
