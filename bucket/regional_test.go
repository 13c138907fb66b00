package bucket_test

import (
	"context"
	"flag"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

var perSecond = bucket.Limit{Name: "second", Unit: bucket.Points, Capacity: 4000, Refill: 2000, Period: time.Second}

// troubled returns by how much a world of regions has exceeded the limit.
func troubled(seed uint64, lease time.Duration, mistake string) (*big.Int, int64, error) {
	w := newRegionsWorld(seed, perSecond, lease, 3, 25, 25, 25)
	w.loss, w.mistake = 5, mistake
	if err := w.start(); err != nil {
		return nil, 0, err
	}
	err := w.run(2000)
	return w.excess, w.admitted, err
}

var regionWorlds = flag.Int("region-worlds", 3, "how many worlds of regions there are with each length of a lease")

func TestRegionsAdmitTogetherNoMoreThanTheLimitInAnyIntervalWhateverIsLostAwayOrStopped(t *testing.T) {
	t.Parallel()
	first := lawSeed(t)
	for i := range *regionWorlds {
		seed := first + uint64(i)
		for _, lease := range []time.Duration{2 * time.Second, 5 * time.Second, 15 * time.Second, time.Minute} {
			excess, admitted, err := troubled(seed, lease, "")
			require.NoError(t, err)
			require.Positive(t, admitted)
			require.Zero(t, excess.Sign(), "%v thousandths too much: TEST_SEED=%d -region-worlds=1", excess, seed)
		}
	}
}

func TestTheModelOfRegionsFindsMistakes(t *testing.T) {
	t.Parallel()
	for _, mistake := range []string{"home leases what others have for themselves", "the share is the whole"} {
		t.Run(mistake, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(20) {
				excess, _, err := troubled(seed, 15*time.Second, mistake)
				require.NoError(t, err)
				if excess.Sign() > 0 {
					t.Logf("seed %d: %v thousandths too much", seed, excess)
					return
				}
			}
			t.Fatal("it was not found")
		})
	}
}

// all is each region.
const all = -1

// flood has each instance of a region ask for more than there is, for a while, and returns how much was admitted.
func (w *regionsWorld) flood(t *testing.T, region int, d time.Duration) int64 {
	t.Helper()
	was := w.admitted
	for end := w.now + d; w.now < end; w.now += time.Millisecond {
		for _, i := range w.instances {
			if i.region == region || region == all {
				_, err := w.take(i, 5)
				require.NoError(t, err)
			}
			if w.now%(20*time.Millisecond) == 0 {
				i.leased.Tend(context.Background())
			}
		}
	}
	return w.admitted - was
}

func TestARegionHasItsShareAndMostOfWhatHomeLeasesAndItsShareAloneAfterTheLeaseWhileHomeIsAway(t *testing.T) {
	t.Parallel()
	w := newRegionsWorld(1, perSecond, 5*time.Second, 2, 30, 20)
	require.NoError(t, w.start())
	w.flood(t, 0, 5*time.Second)
	full := w.flood(t, 0, 10*time.Second)
	require.Greater(t, full, int64(0.95*0.8*20_000), "of a share of 30 %% and a rest of 50 %%")
	require.LessOrEqual(t, full, int64(0.8*(20_000+4000)))

	w.cut(1<<62, 0)
	during := w.flood(t, 0, 3*time.Second)
	require.Greater(t, during, int64(0.9*0.8*6000), "it goes on by what it holds")
	w.flood(t, 0, 3*time.Second)
	share := w.flood(t, 0, 10*time.Second)
	require.Greater(t, share, int64(0.95*0.3*20_000))
	require.LessOrEqual(t, share, int64(0.3*(20_000+4000)))

	// Who has just come takes nothing back for a lease.
	w.cut(0, 0)
	w.flood(t, 0, 6*time.Second)
	back := w.flood(t, 0, 10*time.Second)
	t.Logf("of 20 000 in 10 s: %d with home, %d without; %d of 6000 in the 3 s after it went; %d with home again", full, share, during, back)
	require.Greater(t, back, int64(0.95*0.8*20_000))
	require.Zero(t, w.excess.Sign())
}

func TestNobodyElseHasWhatARegionHoldsThatIsCutOffUntilItsLeaseHasEnded(t *testing.T) {
	t.Parallel()
	w := newRegionsWorld(6, perSecond, 15*time.Second, 1, 30, 20)
	require.NoError(t, w.start())
	w.flood(t, 0, 3*time.Second)
	w.cut(1<<62, 0)
	during := w.flood(t, all, 12*time.Second)
	w.flood(t, all, 5*time.Second)
	afterwards := w.flood(t, all, 10*time.Second)
	t.Logf("%d of 24 000 in 12 s, and %d of 20 000 in 10 s after the end of the lease", during, afterwards)
	require.Zero(t, w.excess.Sign(), "%v thousandths too much", w.excess)
	require.Greater(t, afterwards, int64(0.9*20_000), "the other region has what it held")
}

func TestARegionWhoseStoreIsAwayGoesOnByWhatHomeHasLeased(t *testing.T) {
	t.Parallel()
	w := newRegionsWorld(2, perSecond, 5*time.Second, 1, 30, 20)
	require.NoError(t, w.start())
	w.flood(t, 0, 5*time.Second)
	w.regions[0].away = 1 << 62
	admitted, absent := 0, 0
	for range 1000 {
		w.now += 10 * time.Millisecond
		result, err := w.take(w.instances[0], 5)
		if err != nil {
			require.ErrorIs(t, err, bucket.ErrUnavailable)
			absent++
		} else if result.Verdict == bucket.Admitted {
			admitted++
		}
		w.instances[0].leased.Tend(t.Context())
	}
	require.Greater(t, admitted, 950, "half of 2000 points a second are leased, and 500 are asked for; not leased: %d", absent)
	require.Zero(t, w.excess.Sign())
}

func TestClientsOfARegionAreToldOfTheLimitAndNotOfItsPart(t *testing.T) {
	t.Parallel()
	w := newRegionsWorld(3, perSecond, 0, 1, 30)
	require.NoError(t, w.start())
	for _, leased := range []bool{false, true} {
		result, err := w.take(w.instances[0], 5)
		require.NoError(t, err)
		require.Equal(t, bucket.Admitted, result.Verdict)
		require.Len(t, result.Limits, 1)
		require.Equal(t, perSecond, result.Limits[0].Limit.Policy())
		require.LessOrEqual(t, result.Limits[0].Remaining, int64(4000), leased)
		w.flood(t, 0, 500*time.Millisecond)
	}
}

// leasing starts the world and returns an instance that decides by itself.
func (w *regionsWorld) leasing(t *testing.T) *regionInstance {
	t.Helper()
	require.NoError(t, w.start())
	i := w.instances[0]
	for i.leased.Stats().Admitted == 0 {
		w.now += 20 * time.Millisecond
		_, err := w.take(i, 1)
		require.NoError(t, err)
		i.leased.Tend(t.Context())
	}
	return i
}

// What was charged to a lease and comes to more is a debt of the share, and what comes to less is held again.
func TestAChargeOfALeaseIsSettledWithTheShareIfItWasWorthMore(t *testing.T) {
	t.Parallel()
	w := newRegionsWorld(4, perSecond, 0, 1, 30)
	i := w.leasing(t)
	for range 50 {
		w.now += 20 * time.Millisecond
		i.leased.Tend(t.Context())
	}
	region, err := bucket.NewRegional(w.regions[0], w.home, bucket.RegionalConfig{Region: "region 0", Shares: w.shares})
	require.NoError(t, err)
	left := func() int64 {
		states, err := region.Peek(t.Context(), "acme", []bucket.Bucket{{Limits: w.limits}})
		require.NoError(t, err)
		return states[0].Remaining
	}
	require.Equal(t, int64(1200), left(), "30 %% of 4000")
	for _, actual := range []int64{110, 1} {
		here := i.leased.Stats().Admitted
		result, err := w.take(i, 10)
		require.NoError(t, err)
		require.Equal(t, here+1, i.leased.Stats().Admitted)
		settled, err := i.leased.Settle(t.Context(), bucket.Settlement{Receipt: result.Receipt, Actual: points(actual)})
		require.NoError(t, err)
		require.True(t, settled.Applied)
		require.Equal(t, int64(1100), left())
	}
}

// What home lends is not the whole: more than that may be in the share.
func TestWhatIsMoreThanHomeLendsIsTakenFromTheShareOfTheRegion(t *testing.T) {
	t.Parallel()
	w := newRegionsWorld(6, perSecond, 0, 1, 60)
	i := w.leasing(t)
	// 40 % of 4000 are 1600, and 60 % are 2400.
	result, err := w.take(i, 2000)
	require.NoError(t, err)
	require.Equal(t, bucket.Admitted, result.Verdict)
}

func TestABlockAtHomeReachesWhoLeasesOfItAndOneOfTheRegionAllOfIts(t *testing.T) {
	t.Parallel()
	w := newRegionsWorld(5, perSecond, 0, 1, 30, 20)
	require.NoError(t, w.start())
	w.flood(t, 0, time.Second)
	block := bucket.Override{Blocked: true, Reason: "abuse", Actor: "jo"}
	_, err := w.regions[0].SetOverride(t.Context(), "acme", block)
	require.NoError(t, err)
	_, err = w.home.SetOverride(t.Context(), "acme", block)
	require.NoError(t, err)
	w.flood(t, 0, 2*time.Second)
	require.Zero(t, w.flood(t, 0, time.Second))
	require.Positive(t, w.flood(t, 1, time.Second), "the share of the other region")
}

func TestMistakesInRegionsAreSaidAllAtOnce(t *testing.T) {
	t.Parallel()
	one, other := bucket.NewMemory(bucket.MemoryConfig{}), bucket.NewMemory(bucket.MemoryConfig{})
	_, err := bucket.NewRegional(one, one, bucket.RegionalConfig{
		Region: "asia", Shares: map[string]int{"eu": 60, "us": 60, "moon": 0}, Lease: time.Hour,
	})
	require.ErrorIs(t, err, bucket.ErrInvalid)
	for _, said := range []string{`"asia" has no share`, "120 %", `"moon" is 0 %`, "1h0m0s", "a store of its own"} {
		require.ErrorContains(t, err, said)
	}
	r, err := bucket.NewRegional(one, other, bucket.RegionalConfig{Region: "eu", Shares: map[string]int{"eu": 30}})
	require.NoError(t, err)
	require.Equal(t, 30, r.Share())
	small := compile(t, bucket.Limit{Name: "day", Capacity: 3, Period: 24 * time.Hour})
	require.ErrorContains(t, r.Check(small), `limit "day" cannot be divided: 30 % of it are less than 1; from 4 on it can`)
	_, err = r.CheckLimits(small, bucket.LeaseAlways)
	require.ErrorContains(t, err, `"day" cannot be divided`)
	two, err := bucket.NewRegional(one, other, bucket.RegionalConfig{Region: "eu", Shares: map[string]int{"eu": 30, "us": 10}})
	require.NoError(t, err)
	nine := compile(t, bucket.Limit{Name: "day", Capacity: 9, Period: 24 * time.Hour})
	require.NoError(t, two.Check(nine))
	_, err = two.CheckLimits(nine, bucket.LeaseAlways)
	require.ErrorContains(t, err, "10 % of it are less than 1; from 10 on it can", "the other region could not have it")
	large := compile(t, bucket.Limit{Name: "day", Capacity: 4, Period: 24 * time.Hour})
	for lease, said := range map[bucket.LeaseMode]string{
		bucket.LeaseOff: "never the 70 % of home: say lease: always", bucket.LeaseAuto: "until they are busy there: say lease: always", bucket.LeaseAlways: "",
	} {
		warning, err := r.CheckLimits(large, lease)
		require.NoError(t, err)
		require.Contains(t, warning, said)
		require.Equal(t, said == "", warning == "")
	}
	_, err = r.Take(t.Context(), bucket.Take{Tenant: "acme", Buckets: []bucket.Bucket{{Limits: small}}, Amounts: points(1)})
	require.ErrorIs(t, err, bucket.ErrInvalid)
	require.NoError(t, r.Check(compile(t, perSecond)))
}
