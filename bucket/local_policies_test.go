package bucket_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/fleet"
)

// twoPolicies are two policies of one owner, of which the second lacks the limit that the first has first.
func twoPolicies(t *testing.T) (with, without bucket.Bucket) {
	t.Helper()
	month := bucket.Limit{Name: "month", Capacity: 1000, Period: 30 * 24 * time.Hour, FailMode: bucket.FailLocal}
	requests := bucket.Limit{Name: "minute", Capacity: 10_000, Period: time.Minute, FailMode: bucket.FailLocal}
	return bucket.Bucket{Limits: compile(t, month, requests)}, bucket.Bucket{Limits: compile(t, requests)}
}

func TestALimitThatAnotherPolicyLacksStartsLocallyWithWhatTheStoreLastSaid(t *testing.T) {
	t.Parallel()
	for _, instances := range []int{1, 2} {
		// The policy that lacks it is the first to be judged, or not.
		for _, first := range []bool{true, false} {
			s := newScene(t, 1, fleet.Config{Instances: instances, Percent: 100})
			r := s.replicas[0]
			with, without := twoPolicies(t)
			require.Equal(t, bucket.Admitted, r.take(1000, with).Verdict)
			s.goAway()
			if !first {
				require.Equal(t, bucket.Limited, r.take(1, with).Verdict)
			}
			s.clock.advance(100 * time.Millisecond)
			require.Equal(t, bucket.Admitted, r.take(1, without).Verdict)
			require.Equal(t, bucket.Limited, r.take(1, with).Verdict)
		}
	}
}

func TestWhatWasTakenLocallyStaysTakenInTheNextAbsenceUnderWhateverPolicyThatBegins(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1, fleet.Config{Instances: 2, Percent: 100, KnownFor: time.Hour})
	r := s.replicas[0]
	with, without := twoPolicies(t)
	require.Equal(t, bucket.Admitted, r.take(0, with).Verdict)
	s.goAway()
	require.EqualValues(t, 500, r.drain(1, with))
	// The store answers others for a while.
	s.clock.advance(time.Minute)
	require.Equal(t, bucket.Admitted, r.take(1, without).Verdict)
	require.Zero(t, r.drain(1, with))
}

func TestTheStoreIsChargedWhatWasTakenLocallyUnderEveryPolicy(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1, fleet.Config{Instances: 1, Percent: 100})
	r := s.replicas[0]
	with, without := twoPolicies(t)
	r.take(0, with)
	s.goAway()
	require.Equal(t, bucket.Admitted, r.take(600, with).Verdict)
	require.Equal(t, bucket.Admitted, r.take(100, without).Verdict)
	s.comeBack()
	require.Equal(t, 1, r.local.Owing())
	for calls := 0; r.local.Owing() > 0; calls++ {
		require.Less(t, calls, 3)
		_, _, err := r.local.Settle(t.Context(), "acme")
		require.NoError(t, err)
	}
	states, err := s.store.Peek(t.Context(), "acme", []bucket.Bucket{with})
	require.NoError(t, err)
	require.EqualValues(t, 400, states[0].Remaining, "month")
	require.EqualValues(t, 9300, states[1].Remaining, "minute")
}

func TestALocalShareOfASmallerPolicyKnowsWhatALargerOneHasSpent(t *testing.T) {
	t.Parallel()
	for _, kind := range []bucket.WindowKind{bucket.TokenBucket, bucket.FixedWindow, bucket.SlidingWindow, bucket.HourWindow} {
		s := newScene(t, 1, fleet.Config{Instances: 1, Percent: 100})
		r := s.replicas[0]
		pro, free := bucket.Bucket{Limits: compile(t, localLimit(1000, kind))}, bucket.Bucket{Limits: compile(t, localLimit(100, kind))}
		require.Equal(t, bucket.Admitted, r.take(500, pro).Verdict)
		s.goAway()
		require.Zero(t, r.drain(1, free), kind)
		require.EqualValues(t, 499, r.drain(1, pro), "%v: what is shared is rounded down", kind)
	}
}

func TestALocalTokenBucketWaitsForWhatASlowerPolicyHasSpent(t *testing.T) {
	t.Parallel()
	for _, old := range []bucket.Limit{
		{Name: "limit", Capacity: 1000, Window: bucket.Window{Kind: bucket.YearWindow}, FailMode: bucket.FailLocal},
		{Name: "limit", Capacity: 1000, Period: 300 * 24 * time.Hour, Window: bucket.Window{Kind: bucket.FixedWindow}, FailMode: bucket.FailLocal},
	} {
		s := newScene(t, 1, fleet.Config{Instances: 1, Percent: 100})
		r := s.replicas[0]
		minute := old
		minute.Window, minute.Period = bucket.Window{}, time.Minute
		before, after := bucket.Bucket{Limits: compile(t, old)}, bucket.Bucket{Limits: compile(t, minute)}
		require.Equal(t, bucket.Admitted, r.take(1000, before).Verdict)
		require.Equal(t, bucket.Limited, r.take(1, after).Verdict)
		s.goAway()
		for range 5 {
			s.clock.advance(time.Minute)
			require.Equal(t, bucket.Limited, r.take(1, after).Verdict)
		}
		// What it has charged itself comes back as it says.
		s.clock.advance(366 * 24 * time.Hour)
		require.EqualValues(t, 1000, r.drain(1, after))
		s.clock.advance(30 * time.Second)
		require.EqualValues(t, 500, r.drain(1, after))
	}
}

func TestWhatPoliciesByTurnsHaveTakenLocallyIsSettledAsFarAsItIsOwed(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1, fleet.Config{Instances: 1, Percent: 100})
	r := s.replicas[0]
	limit := localLimit(1000, bucket.TokenBucket)
	longer := limit
	longer.Capacity, longer.Refill = 2000, 1000
	one, other := bucket.Bucket{Limits: compile(t, limit)}, bucket.Bucket{Limits: compile(t, longer)}
	r.take(0, one)
	s.goAway()
	taken := int64(0)
	for range 60 {
		for _, policy := range []bucket.Bucket{one, other} {
			s.clock.advance(5 * time.Second)
			if r.take(40, policy).Verdict == bucket.Admitted {
				taken += 40
			}
		}
	}
	require.EqualValues(t, 4800, taken)
	s.comeBack()
	s.settle()
	// 480 a minute come back by 1000 a minute.
	require.Greater(t, s.remaining(other), int64(1000))
}
