package throttle_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/throttle"
)

func TestATierWhoseTenantsComeSeldomHasItsFloorToo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		one := running(t, quiet(throttle.NewMemory(nil)))
		stop := pressed(t, one, over(4))
		defer stop()
		busy := load{"busy", 1, 0.1, 250}
		drive(one, 40, busy, load{"other", 3, 0.5, 250})
		require.InDelta(t, 1, one.Status().Depth[2], 1e-6)
		drive(one, 40, busy)
		busy.rate = 50
		const each = 10
		ran := 0
		for range each {
			// After so long nothing is known of it.
			drive(one, 40, busy)
			if !one.Offer("seldom", 3, 0.5, 9).Shed {
				ran++
			}
		}
		require.GreaterOrEqual(t, ran, each/2-1, "of %d", each)
		drive(one, 40, busy)
		ran = 0
		for range 100 {
			if !one.Offer("seldom", 3, 0.5, 9).Shed {
				ran++
			}
		}
		require.GreaterOrEqual(t, ran, 49, "of 100 at once")
	})
}
