package bucket_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

func TestNothingIsSettledOfAWindowThatHasEndedWithoutAnotherTake(t *testing.T) {
	t.Parallel()
	for _, kind := range []bucket.WindowKind{bucket.TokenBucket, bucket.FixedWindow, bucket.SlidingWindow, bucket.HourWindow} {
		s := newScene(t, 1, bucket.LocalConfig{Instances: 1})
		b := bucket.Bucket{Limits: compile(t, localLimit(1000, kind))}
		s.replicas[0].take(0, b)
		s.goAway()
		require.EqualValues(t, 700, s.replicas[0].drain(10, b))
		s.clock.advance(2 * time.Hour)
		s.comeBack()
		s.settle()
		require.EqualValues(t, 1000, s.remaining(b), kind)
	}
}

func TestAnAnswerThatDoesNotKnowWhatIsOwedGivesNoNewShare(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1, bucket.LocalConfig{Instances: 1})
	r := s.replicas[0]
	b := bucket.Bucket{Limits: compile(t, localLimit(1000, bucket.TokenBucket))}
	r.take(0, b)
	s.goAway()
	require.EqualValues(t, 700, r.drain(10, b))
	s.comeBack()
	take := bucket.Take{Tenant: "acme", Buckets: []bucket.Bucket{b}, Amounts: points(1)}
	result, err := s.store.Take(context.Background(), take)
	require.NoError(t, err)
	owes, _ := r.local.Learn(&take, &result)
	require.True(t, owes)
	s.goAway()
	require.Zero(t, r.drain(1, b))
}

func TestWhatACacheAnswersIsNotWhatTheStoreSays(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1, bucket.LocalConfig{Instances: 1})
	r := s.replicas[0]
	b := bucket.Bucket{Limits: compile(t, localLimit(1000, bucket.TokenBucket))}
	take := bucket.Take{Tenant: "acme", Buckets: []bucket.Bucket{b}, Amounts: points(1)}
	result, err := s.store.Take(context.Background(), take)
	require.NoError(t, err)
	result.Origin = bucket.FromCache
	r.local.Learn(&take, &result)
	s.goAway()
	require.Zero(t, r.drain(1, b), "nothing is known")
}

func TestALostReplyToASettlementHandsNoShareOutAgain(t *testing.T) {
	t.Parallel()
	for _, kind := range []bucket.WindowKind{bucket.TokenBucket, bucket.FixedWindow, bucket.SlidingWindow, bucket.HourWindow} {
		s := newScene(t, 1, bucket.LocalConfig{Instances: 1})
		r := s.replicas[0]
		b := bucket.Bucket{Limits: compile(t, localLimit(1000, kind))}
		r.take(0, b)
		s.goAway()
		require.EqualValues(t, 700, r.drain(10, b))
		for range 3 {
			s.store.fail(bucket.ErrAmbiguous, true)
			_, _ = r.local.Settle(context.Background(), "acme")
			s.comeBack()
			s.settle()
			s.goAway()
			require.Zero(t, r.drain(1, b), kind)
		}
		s.comeBack()
		r.take(0, b)
		s.goAway()
		require.EqualValues(t, 210, r.drain(10, b), "%v: the next answer of the store says what is left", kind)
	}
}
