package bucket_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/fleet"
)

func TestALocalBucketStartsWithItsShareOfWhatTheStoreLastSaid(t *testing.T) {
	t.Parallel()
	for _, kind := range []bucket.WindowKind{bucket.TokenBucket, bucket.FixedWindow, bucket.SlidingWindow, bucket.HourWindow} {
		s := newScene(t, 2, fleet.Config{})
		b := bucket.Bucket{Limits: compile(t, localLimit(1000, kind))}
		for range 2 {
			for _, r := range s.replicas {
				require.Equal(t, bucket.Admitted, r.take(100, b).Verdict)
			}
			s.clock.advance(fleet.BeatEvery)
		}
		for _, r := range s.replicas {
			r.take(0, b)
		}
		left := s.remaining(b)
		s.goAway()
		for i, r := range s.replicas {
			require.Equal(t, 2, r.local.Instances())
			require.Equal(t, left*7/20, r.drain(1, b), "%v, replica %d", kind, i)
			refused := r.take(1, b)
			require.Equal(t, bucket.Limited, refused.Verdict)
			require.Positive(t, refused.RetryAfter)
			require.EqualValues(t, 1000, refused.Limits[0].Limit.Capacity, "the limit itself is shown")
			require.Zero(t, refused.Limits[0].Remaining)
		}
	}
}

func TestALocalBucketOfWhichNothingIsKnownStartsEmptyAndGainsItsShare(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1, fleet.Config{Instances: 2})
	r := s.replicas[0]
	b := bucket.Bucket{Limits: compile(t, localLimit(1200, bucket.TokenBucket))}
	s.goAway()
	require.Zero(t, r.drain(1, b))
	s.clock.advance(time.Second)
	require.EqualValues(t, 7, r.drain(1, b), "0.7 × 1200 ÷ 2 a minute")
	for range 20 {
		s.clock.advance(10 * time.Second)
		require.Equal(t, bucket.Admitted, r.take(0, b).Verdict)
	}
	require.EqualValues(t, 420, r.drain(1, b), "no more than the share of the capacity")
}

func TestWhatIsKnownFromTooLongAgoIsNotBelieved(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		config fleet.Config
		age    time.Duration
		want   int64
	}{
		{fleet.Config{Instances: 2}, time.Second, 350 + 5},
		{fleet.Config{Instances: 2}, 1100 * time.Millisecond, 0},
		{fleet.Config{Instances: 2, KnownFor: time.Minute}, 1100 * time.Millisecond, 350},
		{fleet.Config{Instances: 2, KnownFor: -1}, 0, 0},
		{fleet.Config{Instances: 1}, 10 * time.Second, 700},
	} {
		s := newScene(t, 1, test.config)
		b := bucket.Bucket{Limits: compile(t, localLimit(1000, bucket.TokenBucket))}
		s.replicas[0].take(0, b)
		s.clock.advance(test.age)
		s.goAway()
		got := s.replicas[0].drain(1, b)
		require.LessOrEqual(t, got, max(350, test.want))
		require.InDelta(t, test.want, got, 5)
	}
}

func TestWhatIsKnownOfALongLimitIsBelievedNoLongerThanOfAShortOne(t *testing.T) {
	t.Parallel()
	for _, kind := range []bucket.WindowKind{bucket.TokenBucket, bucket.FixedWindow, bucket.DayWindow, bucket.MonthWindow} {
		for age, want := range map[time.Duration]int64{5 * time.Second: 350, 5001 * time.Millisecond: 0} {
			s := newScene(t, 1, fleet.Config{Instances: 2})
			limit := localLimit(1000, kind)
			if !kind.Calendar() {
				limit.Period = 30 * 24 * time.Hour
			}
			b := bucket.Bucket{Limits: compile(t, limit)}
			s.replicas[0].take(0, b)
			s.clock.advance(age)
			s.goAway()
			require.Equal(t, want, s.replicas[0].drain(1, b), "%v after %v", kind, age)
		}
	}
}

func TestWindowsOfWhichNothingIsKnownOpenWhenTheOldOneHasSurelyEnded(t *testing.T) {
	t.Parallel()
	for kind, until := range map[bucket.WindowKind]time.Duration{bucket.FixedWindow: time.Minute, bucket.HourWindow: time.Hour} {
		s := newScene(t, 1, fleet.Config{Instances: 2})
		b := bucket.Bucket{Limits: compile(t, localLimit(1000, kind))}
		// The first moment of an hour.
		s.clock.ms.Store(s.clock.now().Truncate(time.Hour).Add(time.Hour).UnixMilli())
		s.goAway()
		require.Zero(t, s.replicas[0].drain(1, b))
		for range until/(10*time.Second) - 1 {
			s.clock.advance(10 * time.Second)
			s.replicas[0].take(0, b)
		}
		s.clock.advance(10*time.Second - time.Millisecond)
		require.Zero(t, s.replicas[0].drain(1, b), kind)
		s.clock.advance(time.Millisecond)
		require.EqualValues(t, 350, s.replicas[0].drain(1, b), kind)
	}
}

func TestAnAbsenceThatNobodyHasSeenLastsAddsNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1, fleet.Config{Instances: 2})
	r := s.replicas[0]
	b := bucket.Bucket{Limits: compile(t, localLimit(1200, bucket.TokenBucket))}
	s.goAway()
	require.Zero(t, r.drain(1, b))
	s.clock.advance(10 * time.Second)
	require.EqualValues(t, 70, r.drain(1, b))
	s.clock.advance(10*time.Second + time.Millisecond)
	require.Zero(t, r.drain(1, b), "the store may have been there, and has given all to others")
}

func TestAShareThatRoundsToNothingRefuses(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1, fleet.Config{Instances: 8})
	r := s.replicas[0]
	small := bucket.Bucket{Limits: compile(t, localLimit(11, bucket.TokenBucket))}
	r.take(1, small)
	s.goAway()
	require.Equal(t, bucket.Never, r.take(1, small).Verdict)
	s.clock.advance(time.Hour)
	require.Equal(t, bucket.Never, r.take(1, small).Verdict)
	require.Equal(t, bucket.Admitted, r.take(0, small).Verdict, "what takes nothing needs no share")
}

func TestNothingIsAdmittedWhileNobodyKnowsHowManyInstancesThereAre(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1, fleet.Config{})
	b := bucket.Bucket{Limits: compile(t, localLimit(1000, bucket.TokenBucket))}
	s.goAway()
	require.Equal(t, bucket.Never, s.replicas[0].take(1, b).Verdict)
	require.Zero(t, s.replicas[0].local.Instances())
}

func TestWhatWasTakenIsSettledOnce(t *testing.T) {
	t.Parallel()
	s := newScene(t, 2, fleet.Config{Instances: 2})
	b := bucket.Bucket{Limits: compile(t, localLimit(1000, bucket.TokenBucket))}
	for _, r := range s.replicas {
		r.take(0, b)
	}
	s.goAway()
	for _, r := range s.replicas {
		require.EqualValues(t, 350, r.drain(10, b))
	}
	s.comeBack()
	s.settle()
	require.EqualValues(t, 300, s.remaining(b))
	s.settle()
	require.EqualValues(t, 300, s.remaining(b))
}

func TestASettlementWithoutAnAnswerIsRepeatedAndAppliedOnce(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1, fleet.Config{Instances: 1})
	r := s.replicas[0]
	b := bucket.Bucket{Limits: compile(t, localLimit(1000, bucket.TokenBucket))}
	r.take(0, b)
	s.goAway()
	require.EqualValues(t, 700, r.drain(10, b))
	s.store.settles.Store(0)
	s.store.fail(bucket.ErrAmbiguous, true)
	for range 3 {
		_, _, err := r.local.Settle(context.Background(), "acme")
		require.ErrorIs(t, err, bucket.ErrAmbiguous)
		require.Equal(t, 1, r.local.Owing())
	}
	s.comeBack()
	s.settle()
	require.EqualValues(t, 4, s.store.settles.Load())
	require.EqualValues(t, 300, s.remaining(b), "the first was applied, and no other")
}

func TestWhatCouldNotBeSettledIsSettledLater(t *testing.T) {
	t.Parallel()
	for _, kind := range []bucket.WindowKind{bucket.TokenBucket, bucket.FixedWindow, bucket.SlidingWindow, bucket.HourWindow} {
		s := newScene(t, 1, fleet.Config{Instances: 1})
		r := s.replicas[0]
		b := bucket.Bucket{Limits: compile(t, localLimit(1000, kind))}
		r.take(0, b)
		s.goAway()
		for range 3 {
			require.Equal(t, bucket.Admitted, r.take(100, b).Verdict)
			_, _, err := r.local.Settle(context.Background(), "acme")
			require.ErrorIs(t, err, bucket.ErrUnavailable)
		}
		s.comeBack()
		s.settle()
		require.EqualValues(t, 700, s.remaining(b), kind)
	}
}

func TestWhatWasTakenInAWindowThatHasEndedIsNotSettled(t *testing.T) {
	t.Parallel()
	for _, kind := range []bucket.WindowKind{bucket.TokenBucket, bucket.FixedWindow, bucket.SlidingWindow, bucket.HourWindow} {
		// Whether or not there is another take after the end.
		for _, more := range []int64{0, 3} {
			s := newScene(t, 1, fleet.Config{Instances: 1})
			b := bucket.Bucket{Limits: compile(t, localLimit(1000, kind))}
			s.replicas[0].take(0, b)
			s.goAway()
			require.EqualValues(t, 700, s.replicas[0].drain(10, b))
			s.clock.advance(2 * time.Hour)
			if more > 0 {
				require.Equal(t, bucket.Admitted, s.replicas[0].take(more, b).Verdict)
			}
			s.comeBack()
			s.settle()
			require.Equal(t, 1000-more, s.remaining(b), kind)
		}
	}
}

func TestTheNextAbsenceStartsFromWhatTheSettlementHasLeft(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1, fleet.Config{Instances: 1})
	r := s.replicas[0]
	b := bucket.Bucket{Limits: compile(t, localLimit(1000, bucket.TokenBucket))}
	r.take(0, b)
	want := int64(1000)
	for range 5 {
		s.goAway()
		require.Equal(t, want*7/10, r.drain(1, b))
		want -= want * 7 / 10
		s.comeBack()
		require.Equal(t, bucket.Admitted, r.take(0, b).Verdict, "the answer settles")
		require.Equal(t, want, s.remaining(b))
	}
}

func TestLimitsThatFailAnotherWayAreNotJudgedHere(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1, fleet.Config{Instances: 1})
	open := localLimit(10, bucket.TokenBucket)
	open.Name, open.FailMode = "open", bucket.FailOpen
	shadow := localLimit(20, bucket.TokenBucket)
	shadow.Name, shadow.Mode = "shadow", bucket.Shadow
	b := bucket.Bucket{Limits: compile(t, open, localLimit(1000, bucket.TokenBucket), shadow)}
	s.replicas[0].take(0, b)
	s.goAway()
	require.EqualValues(t, 700, s.replicas[0].drain(7, b))
	result := s.replicas[0].take(7, b)
	require.Len(t, result.Limits, 2)
	require.Equal(t, "minute", result.Limits[0].Limit.Name)
	require.True(t, result.Limits[1].Exceeded)
	s.comeBack()
	s.settle()
	states, err := s.store.Peek(context.Background(), "acme", []bucket.Bucket{b})
	require.NoError(t, err)
	require.EqualValues(t, 10, states[0].Remaining)
	require.EqualValues(t, 300, states[1].Remaining)
	require.EqualValues(t, 6, states[2].Remaining, "a limit in shadow is charged what it had")
}

func TestOverrideRecordsHoldAsTheStoreHasLastShownThem(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1, fleet.Config{Instances: 1})
	r := s.replicas[0]
	b := bucket.Bucket{Limits: compile(t, localLimit(1000, bucket.TokenBucket))}
	_, err := s.store.SetOverride(context.Background(), "acme", bucket.Override{
		Limit: "minute", Capacity: 100, Reason: "test", Actor: "test",
	})
	require.NoError(t, err)
	r.take(1, b)
	r.take(100, b)
	s.goAway()
	require.EqualValues(t, 99*7/10, r.drain(1, b))
	s.clock.advance(2 * time.Minute)
	require.EqualValues(t, 70, r.drain(1, b))
	s.comeBack()
	s.settle()
	require.EqualValues(t, 30, s.remaining(b))
}

func TestEveryMistakeInTheConfigurationOfALocalIsReported(t *testing.T) {
	t.Parallel()
	_, err := bucket.NewLocal(bucket.NewMemory(bucket.MemoryConfig{}), fleet.Config{Instances: 1001, Percent: 101})
	for _, part := range []string{"Instances is 1001", "Percent is 101"} {
		require.ErrorContains(t, err, part)
	}
}

// TestInstancesTogetherAdmitNoMoreThanTheBudget lets instances take at random from what a store and their
// local buckets have, through absences of the store, and compares with what one bucket would have admitted.
func TestInstancesTogetherAdmitNoMoreThanTheBudget(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 5))
		n := 1 + random.IntN(5)
		s := newScene(t, n, fleet.Config{Instances: n, KnownFor: -1})
		limit := localLimit(100+random.Int64N(2000), bucket.TokenBucket)
		b := bucket.Bucket{Limits: compile(t, limit)}
		// debt is that of one bucket from which everything admitted is taken, in units of 1/60000 token.
		debt := int64(0)
		away := false
		for range 1500 {
			elapsed := time.Duration(random.Int64N(900)) * time.Millisecond
			s.clock.advance(elapsed)
			debt = max(0, debt-limit.Capacity*elapsed.Milliseconds())
			if random.IntN(100) == 0 {
				if away = !away; away {
					s.goAway()
				} else {
					s.comeBack()
					s.settle()
				}
				// Each replica finds out, as it does under load or while the extension runs.
				for _, r := range s.replicas {
					r.take(0, b)
				}
			}
			amount := 1 + random.Int64N(limit.Capacity/10)
			if s.replicas[random.IntN(n)].take(amount, b).Verdict == bucket.Admitted {
				debt += amount * 60_000
			}
			require.LessOrEqual(t, debt, limit.Capacity*60_000, "seed %d", seed)
		}
	}
}

func TestALocalBucketIsAskedForItsOwnAmounts(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1, fleet.Config{Instances: 1})
	r := s.replicas[0]
	b := bucket.Bucket{Limits: compile(t, localLimit(100, bucket.TokenBucket))}
	r.take(0, b)
	s.goAway()
	b.Amounts = points(30)
	for _, want := range []bucket.Verdict{bucket.Admitted, bucket.Admitted, bucket.Limited} {
		require.Equal(t, want, r.take(1, b).Verdict, "0.7 × 100 hold two times 30")
	}
	b.Amounts = nil
	require.Equal(t, bucket.Admitted, r.take(10, b).Verdict)
	s.comeBack()
	s.settle()
	require.EqualValues(t, 30, s.remaining(b))
}
