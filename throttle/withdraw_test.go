package throttle_test

import (
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/throttle"
)

// crowded is what the servers behind a throttle are asked for: small and large tenants who run what is admitted, and one whose
// operations limits refuse, however many it sends.
type crowded struct {
	one *throttle.Throttle
	// refusing says that a small tenant sends what is refused, and of which cost.
	refusing int64
	small    []string
}

// second asks for a second of load, and returns which shares of the small and of the large tenants have run. The servers bear 1200 points of 2000.
func (c *crowded) second() (small, large float64) {
	const slices, perSlice = 50, 20
	ranSmall, ranLarge := 0, 0
	for range slices {
		for i := range perSlice {
			if !c.one.Offer(c.small[i%len(c.small)], 1, 0.1, 1).Shed {
				ranSmall++
			}
			if !c.one.Offer("large", 2, 0.25, 1).Shed {
				ranLarge++
			}
			if c.refusing > 0 && !c.one.Offer("refused", 1, 0.1, c.refusing).Shed {
				c.one.Withdraw("refused", 1, 0.1, c.refusing)
			}
		}
		time.Sleep(time.Second / slices) //nolint:forbidigo // in a synctest bubble
	}
	c.one.Signal("load", float64(ranSmall+ranLarge)/1200, 1)
	return float64(ranSmall) / (slices * perSlice), float64(ranLarge) / (slices * perSlice)
}

func TestWhatLimitsRefuseIsNoLoadThatCouldBeShedInThePlaceOfOthers(t *testing.T) {
	t.Parallel()
	for name, from := range map[string]int{"before anything is shed": 0, "while others are shed": 30} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := &crowded{one: running(t, quiet(throttle.NewMemory(nil)))}
				c.small = c.one.Apart(20, func(i int) string { return fmt.Sprint("small", i) }, "refused", "large")
				sumSmall, sumLarge := 0.0, 0.0
				for second := range 180 {
					if second == from {
						c.refusing = 500
					}
					small, large := c.second()
					if second >= 120 {
						sumSmall, sumLarge = sumSmall+small/60, sumLarge+large/60
					}
				}
				require.Greater(t, sumLarge, 0.95, "the large tenants have to be spared before the small ones are at their floor")
				require.Less(t, sumSmall, 0.4)
				require.Less(t, math.Abs(sumSmall+sumLarge-1.2), 0.15, "the servers bear 1200 points a second")
			})
		})
	}
}

func TestATenantIsShedByWhatItRunsAndNotByWhatItsLimitsRefuse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		one := running(t, quiet(throttle.NewMemory(nil)))
		modest := one.Apart(2, func(i int) string { return fmt.Sprint("modest", i) }, "greedy")
		// second asks for 800 points of one tenant and 50 of another one each, and of the last one for 2000 that are refused besides.
		second := func() (ran [3]int) {
			for range 50 {
				for range 16 {
					if !one.Offer("greedy", 1, 0.1, 1).Shed {
						ran[0]++
					}
				}
				for i, tenant := range modest {
					if !one.Offer(tenant, 1, 0.1, 1).Shed {
						ran[1+i]++
					}
				}
				if !one.Offer(modest[1], 1, 0.1, 40).Shed {
					one.Withdraw(modest[1], 1, 0.1, 40)
				}
				time.Sleep(20 * time.Millisecond) //nolint:forbidigo // in a synctest bubble
			}
			return ran
		}
		for range 15 {
			second()
		}
		pressure := over(4)
		stop := pressed(t, one, pressure)
		defer stop()
		second()
		ran := second()
		require.Less(t, ran[0], 640)
		require.GreaterOrEqual(t, ran[1], 49)
		require.GreaterOrEqual(t, ran[2], 49)
	})
}
