package bucket_test

import (
	"context"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/fleet"
)

func TestAnAnswerThatDoesNotKnowWhatIsOwedGivesNoNewShare(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1, fleet.Config{Instances: 1})
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

func TestALostReplyToASettlementHandsNoShareOutAgain(t *testing.T) {
	t.Parallel()
	for _, kind := range []bucket.WindowKind{bucket.TokenBucket, bucket.FixedWindow, bucket.SlidingWindow, bucket.HourWindow} {
		s := newScene(t, 1, fleet.Config{Instances: 1})
		r := s.replicas[0]
		b := bucket.Bucket{Limits: compile(t, localLimit(1000, kind))}
		r.take(0, b)
		s.goAway()
		require.EqualValues(t, 700, r.drain(10, b))
		for range 3 {
			s.store.fail(bucket.ErrAmbiguous, true)
			_, _, _ = r.local.Settle(context.Background(), "acme")
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

func TestAnOlderAnswerThatComesLateIsNotBelieved(t *testing.T) {
	t.Parallel()
	for _, between := range []time.Duration{0, 5 * time.Millisecond} {
		s := newScene(t, 1, fleet.Config{Instances: 1})
		b := bucket.Bucket{Limits: compile(t, localLimit(1000, bucket.HourWindow))}
		ask := func(n int64) (bucket.Take, bucket.Result) {
			take := bucket.Take{Tenant: "acme", Buckets: []bucket.Bucket{b}, Amounts: points(n)}
			result, err := s.store.Take(context.Background(), take)
			require.NoError(t, err)
			return take, result
		}
		first, early := ask(1)
		s.clock.advance(between)
		second, late := ask(999)
		s.replicas[0].local.Learn(&second, &late)
		s.replicas[0].local.Learn(&first, &early)
		s.goAway()
		require.Zero(t, s.replicas[0].drain(1, b), between)
	}
}

func TestAStoreWhoseClockWasSetBackIsBelievedAgain(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1, fleet.Config{Instances: 1})
	r := s.replicas[0]
	b := bucket.Bucket{Limits: compile(t, localLimit(1000, bucket.TokenBucket))}
	r.take(0, b)
	s.clock.advance(-time.Minute)
	require.Equal(t, bucket.Admitted, r.take(1000, b).Verdict)
	s.goAway()
	require.Zero(t, r.drain(1, b))
}

func TestNamesThatArePartOfALongTextDoNotKeepIt(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1, fleet.Config{Instances: 1})
	r := s.replicas[0]
	b := bucket.Bucket{Limits: compile(t, localLimit(6000, bucket.TokenBucket))}
	collected := make(chan struct{})
	func() {
		header := []byte("acme.alice." + strings.Repeat("x", 1<<20))
		runtime.AddCleanup(&header[0], func(int) { close(collected) }, 0)
		text := unsafe.String(&header[0], len(header))
		take := bucket.Take{Tenant: text[:4], Amounts: points(1), Buckets: []bucket.Bucket{
			b, {Owner: bucket.Owner{Level: bucket.User, Name: text[5:10]}, Limits: b.Limits},
		}}
		result, err := bucket.NewMemory(bucket.MemoryConfig{}).Take(context.Background(), bucket.Take{
			Tenant: "acme", Amounts: take.Amounts,
			Buckets: []bucket.Bucket{b, {Owner: bucket.Owner{Level: bucket.User, Name: "alice"}, Limits: b.Limits}},
		})
		require.NoError(t, err)
		result.Limits[1].Owner = take.Buckets[1].Owner
		r.local.Learn(&take, &result)
		require.Equal(t, bucket.Admitted, r.local.Take(&take, false).Verdict)
	}()
	require.Eventually(t, func() bool {
		runtime.GC()
		select {
		case <-collected:
			return true
		default:
			return false
		}
	}, patience, pollEvery)
	require.Equal(t, []string{"acme"}, r.local.Debtors(1))
}

func TestCallsThatSettleAtOnceWaitForTheOneThatDoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 1, fleet.Config{Instances: 1})
		r := s.replicas[0]
		b := bucket.Bucket{Limits: compile(t, localLimit(1000, bucket.TokenBucket))}
		r.take(0, b)
		s.goAway()
		require.EqualValues(t, 700, r.drain(10, b))
		s.comeBack()
		s.store.settles.Store(0)
		s.store.gate = make(chan struct{})
		var ended, failed atomic.Int64
		for range 3 {
			go func() {
				if _, _, err := r.local.Settle(context.Background(), "acme"); err != nil {
					failed.Add(1)
				}
				ended.Add(1)
			}()
		}
		synctest.Wait()
		require.Zero(t, ended.Load())
		gone, cancel := context.WithCancel(context.Background())
		cancel()
		_, _, err := r.local.Settle(gone, "acme")
		require.ErrorIs(t, err, bucket.ErrUnavailable)
		close(s.store.gate)
		synctest.Wait()
		require.EqualValues(t, 3, ended.Load())
		require.Zero(t, failed.Load())
		require.EqualValues(t, 1, s.store.settles.Load())
		require.EqualValues(t, 300, s.remaining(b))
	})
}

func TestARepeatedSettlementChargesNothingToTheWindowAfter(t *testing.T) {
	t.Parallel()
	for _, kind := range []bucket.WindowKind{bucket.FixedWindow, bucket.HourWindow} {
		s := newScene(t, 1, fleet.Config{Instances: 1})
		r := s.replicas[0]
		b := bucket.Bucket{Limits: compile(t, localLimit(1000, kind))}
		s.clock.advance(r.take(1, b).Limits[0].ResetAfter - 5*time.Second)
		s.goAway()
		require.Positive(t, r.drain(1, b))
		s.store.fail(bucket.ErrAmbiguous, false)
		_, _, err := r.local.Settle(context.Background(), "acme")
		require.ErrorIs(t, err, bucket.ErrAmbiguous)
		s.clock.advance(10 * time.Second)
		s.comeBack()
		s.settle()
		require.EqualValues(t, 1000, s.remaining(b), kind)
	}
}

func TestAFullShareStaysFullWhenTheStoreAnswersOthers(t *testing.T) {
	t.Parallel()
	for _, kind := range []bucket.WindowKind{bucket.TokenBucket, bucket.FixedWindow, bucket.SlidingWindow, bucket.HourWindow} {
		s := newScene(t, 1, fleet.Config{Instances: 2})
		r := s.replicas[0]
		b := bucket.Bucket{Limits: compile(t, localLimit(1000, kind))}
		r.take(0, b)
		for range 20 {
			s.goAway()
			require.Equal(t, bucket.Admitted, r.take(0, b).Verdict)
			s.comeBack()
			r.takeAs("neighbour", 0, b)
			s.clock.advance(900 * time.Millisecond)
		}
		s.goAway()
		require.EqualValues(t, 350, r.drain(1, b), kind)
	}
}

func TestAShareOfAFilledBudgetForgetsWhatTheLastOneSpent(t *testing.T) {
	t.Parallel()
	for _, kind := range []bucket.WindowKind{bucket.TokenBucket, bucket.FixedWindow, bucket.SlidingWindow, bucket.HourWindow} {
		s := newScene(t, 1, fleet.Config{Instances: 2})
		r := s.replicas[0]
		b := bucket.Bucket{Limits: compile(t, localLimit(1000, kind))}
		for range 3 {
			r.take(0, b)
			s.goAway()
			require.EqualValues(t, 350, r.drain(1, b), kind)
			s.comeBack()
			s.settle()
			require.NoError(t, s.store.Reset(t.Context(), "acme", []bucket.Bucket{b}))
			s.clock.advance(time.Millisecond)
		}
	}
}

func TestWhatWasTakenIsSettledUntilAllOfTheLimitIsBack(t *testing.T) {
	t.Parallel()
	const length = time.Minute
	for _, kind := range []bucket.WindowKind{bucket.TokenBucket, bucket.SlidingWindow} {
		for after, want := range map[time.Duration]int64{length - time.Millisecond: 500, length + length/8: 1000} {
			s := newScene(t, 1, fleet.Config{Instances: 1})
			r := s.replicas[0]
			b := bucket.Bucket{Limits: compile(t, localLimit(1000, kind))}
			r.take(0, b)
			s.goAway()
			require.Equal(t, bucket.Admitted, r.take(500, b).Verdict)
			require.Zero(t, s.store.settles.Load())
			s.clock.advance(after)
			s.comeBack()
			s.settle()
			require.Equal(t, want, s.remaining(b), "%v after %v", kind, after)
			require.Equal(t, want < 1000, s.store.settles.Load() > 0, "where all is back the store is not called")
		}
	}
}
