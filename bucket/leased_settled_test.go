package bucket_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// settle settles a receipt to so many points, and reports whether it did.
func (s *leasedScene) settle(r bucket.Receipt, actual int64) bool {
	s.Helper()
	settled, err := s.leased.Settle(s.Context(), bucket.Settlement{Receipt: r, Actual: points(actual)})
	require.NoError(s, err)
	return settled.Applied
}

// takeHere takes points until that is decided here, and adds what it takes to a sum.
func (s *leasedScene) takeHere(n int64, taken *int64) bucket.Receipt {
	s.Helper()
	for {
		here := s.leased.Stats().Admitted
		result := s.take(n)
		require.Equal(s, bucket.Admitted, result.Verdict)
		*taken += n
		if s.leased.Stats().Admitted > here {
			return result.Receipt
		}
		time.Sleep(5 * time.Millisecond) //nolint:forbidigo // The clock of the bubble is not the real one: this waits for nothing.
	}
}

// leftAfterShutdown is what the store has of the only limit when everything was given back.
func (s *leasedScene) leftAfterShutdown() int64 {
	s.Helper()
	require.NoError(s, s.leased.Shutdown(s.Context()))
	states, err := s.store.Peek(s.Context(), "acme", s.of(0).Buckets)
	require.NoError(s, err)
	return states[0].Remaining
}

// daily is a window of 80 000, of which nothing comes back by itself.
func daily() bucket.Limit {
	return bucket.Limit{Name: "day", Capacity: 80_000, Period: 24 * time.Hour, Window: bucket.Window{Kind: bucket.FixedWindow}}
}

func TestARefundAfterTenThousandOtherSettlementsIsNotLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newLeasedScene(t, daily())
		taken := s.lease()
		long := s.takeHere(10_000, &taken)
		for range 10_000 {
			require.True(t, s.settle(s.takeHere(3, &taken), 1))
			taken -= 2
			time.Sleep(200 * time.Microsecond) //nolint:forbidigo // The clock of the bubble is not the real one: this waits for nothing.
		}
		require.True(t, s.settle(long, 0))
		require.False(t, s.settle(long, 0))
		require.Equal(t, 80_000-taken+10_000, s.leftAfterShutdown())
	})
}

func TestThousandsOfTakesThatRunAtOnceAreSettledOnceEachInAnyOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newLeasedScene(t, daily())
		taken := s.lease()
		var receipts []bucket.Receipt
		for range 3000 {
			receipts = append(receipts, s.takeHere(3, &taken))
			time.Sleep(200 * time.Microsecond) //nolint:forbidigo // The clock of the bubble is not the real one: this waits for nothing.
		}
		for again := range 2 {
			// The newest first: what was taken long before is settled as well.
			for i := len(receipts) - 1; i >= 0; i-- {
				require.Equal(t, again == 0, s.settle(receipts[i].Clone(), 1), "settlement %d of the %d. take", again, i)
			}
		}
		require.Equal(t, 80_000-taken+2*3000, s.leftAfterShutdown())
	})
}

func TestWhatIsDeclinedKeptAndSettledInAnyOrderComesBackOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newLeasedScene(t, hourly("hour", 80_000))
		taken := s.lease()
		for i := range 300 {
			here := s.leased.Stats().Admitted
			result := s.hold(10)
			require.Equal(t, bucket.Admitted, result.Verdict)
			taken += 10
			if s.leased.Stats().Admitted == here {
				continue
			}
			switch r := result.Receipt; i % 3 {
			case 0:
				require.True(t, s.leased.Decline(r).IsZero())
				require.True(t, s.leased.Decline(r.Clone()).IsZero(), "declined again")
				require.False(t, s.settle(r, 0), "settled after it was declined")
				taken -= 10
			case 1:
				s.leased.Keep(r)
				require.True(t, s.settle(r, 0))
				require.True(t, s.leased.Decline(r).IsZero(), "declined after it was settled")
				taken -= 10
			default:
				s.leased.Keep(r)
			}
			time.Sleep(5 * time.Millisecond) //nolint:forbidigo // The clock of the bubble is not the real one: this waits for nothing.
		}
		require.InDelta(t, 80_000-taken, s.leftAfterShutdown(), 2)
	})
}

func TestWhatIsDeclinedTwiceIsPutBackOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newLeasedScene(t, hourly("hour", 80_000))
		taken := s.lease()
		// There is room for more than comes back.
		s.takeHere(500, &taken)
		before := s.leased.Held()[0].Level
		r := s.hold(100).Receipt
		require.Equal(t, before-100, s.leased.Held()[0].Level)
		for range 3 {
			require.True(t, s.leased.Decline(r.Clone()).IsZero())
			require.Equal(t, before, s.leased.Held()[0].Level)
		}
	})
}

func TestAReceiptOfNoLeaseHereIsSettledByTheStoreOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newLeasedScene(t, daily())
		taken := s.lease()
		r := bucket.OfNoLease(s.takeHere(10, &taken))
		for range 3 {
			s.settle(r, 0)
		}
		require.Equal(t, 80_000-taken+10, s.leftAfterShutdown())
	})
}

func TestAReceiptThatManySettleAtOnceIsSettledByOneOfThem(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newLeasedScene(t, hourly("hour", 80_000))
		taken := s.lease()
		for range 50 {
			r := s.takeHere(10, &taken)
			var all sync.WaitGroup
			var applied atomic.Int64
			for range 8 {
				all.Go(func() {
					if settled, err := s.leased.Settle(t.Context(), bucket.Settlement{Receipt: r.Clone(), Actual: points(0)}); err == nil && settled.Applied {
						applied.Add(1)
					}
				})
			}
			all.Wait()
			require.EqualValues(t, 1, applied.Load())
			taken -= 10
		}
		require.InDelta(t, 80_000-taken, s.leftAfterShutdown(), 2)
	})
}

func TestATakeIsSettledOnceWhateverTheOrderAndAQuarterOfAMillionTakesBackAreKnown(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		var takes bucket.SettledTakes
		settled, newest := map[int64]bool{}, int64(0)
		for range rapid.IntRange(1, 300).Draw(r, "settlements") {
			take := newest + rapid.Int64Range(0, 3).Draw(r, "after")
			switch rapid.IntRange(0, 5).Draw(r, "which") {
			case 0:
				take = newest + rapid.Int64Range(0, 600_000).Draw(r, "far ahead")
			case 1, 2:
				take = newest - min(newest, rapid.Int64Range(0, 600_000).Draw(r, "far back"))
			case 3:
				for take = range settled {
					break
				}
			}
			is := takes.Add(take)
			require.False(r, is && settled[take], "take %d comes back twice", take)
			if take+250_000 > newest {
				require.Equal(r, !settled[take], is, "take %d of %d", take, newest)
			}
			settled[take], newest = true, max(newest, take)
			require.LessOrEqual(r, takes.Pages(), 64)
		}
	})
}

func TestWhatIsKnownOfSettledTakesGrowsWithThem(t *testing.T) {
	t.Parallel()
	var takes bucket.SettledTakes
	require.Zero(t, takes.Pages(), "who settles nothing pays nothing")
	for take := range int64(4096) {
		require.True(t, takes.Add(take))
	}
	require.Equal(t, 1, takes.Pages())
	for take := range int64(1_000_000) {
		takes.Add(take)
	}
	require.Equal(t, 64, takes.Pages())
	last := int64(64*4096 + 5)
	var ring bucket.SettledTakes
	require.True(t, ring.Add(last))
	require.False(t, ring.Add(last-64*4096-1), "its page is that of the last one now")
	require.True(t, ring.Add(last-63*4096))
	require.True(t, takes.Add(10_000_000))
	require.Equal(t, 1, takes.Pages(), "what is too far back is forgotten")
}
