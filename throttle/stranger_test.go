package throttle_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

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

// beside is what comes in each second beside a hundred tenants who ask for ten points each, where the servers bear 1200 points.
type beside struct {
	rate int
	cost int64
	// names is how many come by turns, zero if each comes once.
	names int
}

// run returns which share of the hundred runs in a minute.
func (b beside) run(t *testing.T) float64 {
	t.Helper()
	one := running(t, quiet(throttle.NewMemory(nil)))
	asked, ran, came := 0, 0, 0
	for second := range 100 {
		points := int64(0)
		for slice := range 100 {
			for i := range 10 {
				runs := !one.Offer(fmt.Sprint("known", (slice*10+i)%100), 1, 0.01, 1).Shed
				if runs {
					points++
				}
				if second >= 40 {
					asked++
					if runs {
						ran++
					}
				}
			}
			for ; came < (second*100+slice)*b.rate/100; came++ {
				name := came
				if b.names > 0 {
					name %= b.names
				}
				if !one.Offer(fmt.Sprint("other", name), 1, 0.01, b.cost).Shed {
					points += b.cost
				}
			}
			time.Sleep(time.Second / 100) //nolint:forbidigo // in a synctest bubble
		}
		one.Signal("load", float64(points)/1200, 1)
	}
	return float64(ran) / float64(asked)
}

func TestNamesThatComeOnceDoNotTakeWhatKnownTenantsAskFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		others beside
		least  float64
	}{
		"20 new names a second with 100 points": {beside{20, 100, 0}, 0.8},
		"50 new names a second with 50 points":  {beside{50, 50, 0}, 0.6},
		"1000 new names a second with a point":  {beside{1000, 1, 0}, 0.45},
		"100 names by turns with 100 points":    {beside{20, 100, 100}, 0.4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { require.Greater(t, c.others.run(t), c.least) })
		})
	}
}

func TestTenantsWhoComeSeldomRunBesideThoseWhoAskForMuch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		one := running(t, quiet(throttle.NewMemory(nil)))
		asked, ran := 0, 0
		for second := range 600 {
			points := 0
			for i := range 2000 {
				if !one.Offer(fmt.Sprint("busy", i%20), 1, 0.1, 1).Shed {
					points++
				}
				// Each of a thousand tenants comes once in ten minutes.
				if i%1200 == second%2*600 {
					asked++
					if !one.Offer(fmt.Sprint("seldom", asked), 1, 0.1, 10).Shed {
						ran++
						points += 10
					}
				}
				if i%20 == 0 {
					time.Sleep(10 * time.Millisecond) //nolint:forbidigo // in a synctest bubble
				}
			}
			one.Signal("load", float64(points)/1200, 1)
		}
		require.Greater(t, asked, 900)
		require.Greater(t, float64(ran)/float64(asked), 0.95)
	})
}

func TestATenantWithAnotherFloorIsCutToTheSameLevel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		one := running(t, quiet(throttle.NewMemory(nil)))
		loads := []load{{"greedy", 1, 0.05, 1000}}
		for _, tenant := range one.Apart(10, func(i int) string { return fmt.Sprint("modest", i) }, "greedy") {
			loads = append(loads, load{tenant, 1, 0.1, 50})
		}
		drive(one, 15, loads...)
		stop := pressed(t, one, over(4))
		ran := drive(one, 2, loads...)
		require.Less(t, ran[0], 0.7)
		for _, share := range ran[1:] {
			require.InDelta(t, 1, share, 0.021)
		}
		drive(one, 30, loads...)
		ran = drive(one, 1, loads...)
		stop()
		require.InDelta(t, 0.05, ran[0], 0.03, "its floor")
		sum := 0.0
		for _, share := range ran[1:] {
			sum += share / 10
		}
		require.InDelta(t, 0.1, sum, 0.03, "their floor")
	})
}

func TestWhatIsToRunRunsAfterALongOverload(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		one := running(t, quiet(throttle.NewMemory(nil)))
		pressure := over(16)
		stop := pressed(t, one, pressure)
		defer stop()
		// tens returns what was to run, and what ran, of ten seconds of a hundred tenants with ten operations a second each.
		tens := func() (wanted, ran float64) {
			for i := range 10_000 {
				wanted += 1 - one.Status().Shed
				if !one.Offer(fmt.Sprint("t", i%100), 1, 0, 5).Shed {
					ran++
				}
				if i%10 == 0 {
					time.Sleep(10 * time.Millisecond) //nolint:forbidigo // in a synctest bubble
				}
			}
			return wanted, ran
		}
		for range 3 {
			tens()
		}
		pressure.Store(0)
		tens()
		for range 10 {
			wanted, ran := tens()
			require.Greater(t, ran, wanted/2, "of %v", wanted)
		}
	})
}
