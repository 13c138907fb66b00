package bucket_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	_ "github.com/gqlgen-ratelimit/ratelimit/internal/seed"
)

// hold takes points that may be declined.
func (s *leasedScene) hold(n int64) bucket.Result {
	s.Helper()
	take := s.of(n)
	take.Declinable = true
	result, err := s.leased.Take(s.Context(), take)
	require.NoError(s, err)
	return result
}

// lease begins to lease, with takes of one point each.
func (s *leasedScene) lease() (taken int64) {
	s.Helper()
	for before := s.store.takes; ; taken++ {
		require.Equal(s, bucket.Admitted, s.take(1).Verdict)
		if s.leased.Stats().Admitted > 0 {
			require.Positive(s, before+int(taken))
			return taken + 1
		}
		time.Sleep(time.Millisecond) //nolint:forbidigo // In the bubble.
	}
}

func TestWhatIsDeclinedIsAsIfItHadNeverBeenTaken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		// So much comes back that it has repaid each take a hundred times before it is declined.
		s := newLeasedScene(t, bucket.Limit{Name: "second", Capacity: 10_000, Refill: 10_000, Period: time.Second})
		s.lease()
		admitted, declined := 0, 0
		begin := time.Now()
		for i := range 2000 {
			// Others ask for all that there is, while one take in two is declined after a while.
			time.Sleep(10 * time.Millisecond) //nolint:forbidigo // In the bubble.
			held := s.hold(50)
			time.Sleep(5 * time.Millisecond) //nolint:forbidigo // In the bubble.
			for s.take(10).Verdict == bucket.Admitted {
				admitted += 10
			}
			switch {
			case held.Verdict != bucket.Admitted:
			case i%2 == 0:
				if rest := s.leased.Decline(held.Receipt); rest.IsZero() {
					declined++
				}
			default:
				s.leased.Keep(held.Receipt)
				admitted += 50
			}
		}
		for s.take(10).Verdict == bucket.Admitted {
			admitted += 10
		}
		require.Greater(t, declined, 800)
		come := 10_000 * time.Since(begin).Seconds()
		require.LessOrEqual(t, float64(admitted), 10_000+come)
		require.Greater(t, float64(admitted), 0.95*come, "nothing of what was declined is lost")
	})
}

func TestDecliningAdmitsNoMoreThanTheLimitInAnyInterval(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		const capacity, rate = 2000, 1000
		synctest.Test(t, func(t *testing.T) {
			s := newLeasedScene(t, bucket.Limit{Name: "second", Capacity: capacity, Refill: rate, Period: time.Second})
			type spent struct {
				at     time.Time
				points int64
			}
			var all []spent
			var held []bucket.Result
			var amounts []int64
			all = append(all, spent{time.Now(), s.lease()})
			for range rapid.IntRange(1, 60).Draw(r, "steps") {
				switch rapid.IntRange(0, 4).Draw(r, "step") {
				case 0:
					time.Sleep(time.Duration(rapid.IntRange(0, 3000).Draw(r, "pause")) * time.Millisecond) //nolint:forbidigo // In the bubble.
				case 1:
					n := rapid.Int64Range(10, 900).Draw(r, "points")
					for s.take(n).Verdict == bucket.Admitted {
						all = append(all, spent{time.Now(), n})
					}
				case 2:
					n := rapid.Int64Range(1, 900).Draw(r, "held")
					here := s.leased.Stats().Admitted
					switch result := s.hold(n); {
					case result.Verdict != bucket.Admitted:
					case s.leased.Stats().Admitted == here:
						// What the store has charged is not held, and is spent now.
						all = append(all, spent{time.Now(), n})
					default:
						held, amounts = append(held, result), append(amounts, n)
					}
				default:
					if len(held) == 0 {
						continue
					}
					receipt, n := held[0].Receipt, amounts[0]
					held, amounts = held[1:], amounts[1:]
					if rapid.Bool().Draw(r, "keeps") {
						s.leased.Keep(receipt)
						all = append(all, spent{time.Now(), n})
					} else if rest := s.leased.Decline(receipt); !rest.IsZero() {
						_, err := s.leased.Settle(t.Context(), bucket.Settlement{Receipt: rest, Actual: points(0)})
						require.NoError(t, err)
					}
				}
				for i := range all {
					sum := int64(0)
					for _, one := range all[i:] {
						sum += one.points
					}
					most := capacity + int64(time.Since(all[i].at).Seconds()*rate)
					require.LessOrEqual(t, sum, most, "since the %d. take", i)
				}
			}
		})
	})
}

// refusedMeanwhile takes points of the tenant that one of its users is refused, and does something before the store says so.
func (s *leasedScene) refusedMeanwhile(n int64, does func()) {
	s.Helper()
	none, err := bucket.Compile(bucket.Limit{Name: "none", Capacity: n - 1, Refill: 1, Period: time.Hour})
	require.NoError(s, err)
	take := s.of(n)
	take.Buckets = append(take.Buckets, bucket.Bucket{Owner: bucket.Owner{Level: bucket.User, Name: "ann"}, Limits: none})
	mixed := s.leased.Stats().Mixed
	s.store.meanwhile = does
	result, err := s.leased.Take(s.Context(), take)
	require.NoError(s, err)
	require.NotEqual(s, bucket.Admitted, result.Verdict)
	require.Equal(s, mixed+1, s.leased.Stats().Mixed, "it was taken here before the store was asked")
}

func TestWhatTheStoreRefusesOfATakeIsAsIfItHadNeverBeenTaken(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]bucket.Limit{
		"of a bucket that refills meanwhile": {Name: "second", Capacity: 1000, Refill: 1000, Period: time.Second},
		"of a window that ends meanwhile":    {Name: "window", Capacity: 1000, Period: 3 * time.Second, Window: bucket.Window{Kind: bucket.FixedWindow}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newLeasedScene(t, limit)
				s.lease()
				admitted := int64(0)
				spend := func() {
					for s.take(10).Verdict == bucket.Admitted {
						admitted += 10
					}
				}
				// It holds what it is asked for, a hundred at a time.
				for range 40 {
					time.Sleep(100 * time.Millisecond) //nolint:forbidigo // In the bubble.
					s.take(100)
				}
				for range 12 {
					time.Sleep(250 * time.Millisecond) //nolint:forbidigo // In the bubble.
					s.take(100)
				}
				admitted = 0
				s.refusedMeanwhile(100, func() {
					time.Sleep(limit.Period) //nolint:forbidigo // In the bubble.
					spend()
				})
				spend()
				require.LessOrEqual(t, admitted, int64(1000))
				require.Greater(t, admitted, int64(900), "others can have what comes back")
			})
		})
	}
}
