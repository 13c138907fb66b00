package follow_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/internal/follow"
)

// source is what is followed. It has a number, or an error.
type source struct {
	mu    sync.Mutex
	value int
	err   error
	asked []time.Time
	// good is what was judged last that holds, and hinted counts questions because of hints.
	good, hinted    int
	refuses, behind bool
	wake            func()
}

var errAway = errors.New("away")

func (s *source) read(context.Context) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, time.Now())
	return s.value, s.err
}

func (s *source) judge(_ context.Context, answer follow.Answer[int]) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if answer.Cause == follow.ByHint {
		s.hinted++
	}
	switch {
	case answer.Err != nil:
		return answer.Err
	case s.refuses:
		return follow.Refused(errors.New("refused"))
	}
	if s.behind {
		return follow.Behind(errAway)
	}
	s.good = answer.Value
	return nil
}

func (s *source) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *source) questions() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// start follows the source, until the test stops it.
func (s *source) start(cfg follow.Config[int]) (f *follow.Follower[int], stop func()) {
	cfg.Source, cfg.Read, cfg.Judge, cfg.Patience = "the source", s.read, s.judge, time.Second
	f = follow.New(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { f.Run(ctx) })
	return f, func() {
		cancel()
		running.Wait()
	}
}

func TestQuestionsComeAtTheIntervalWithJitter(t *testing.T) {
	t.Parallel()
	for _, atOnce := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s, began := &source{value: 7}, time.Now()
			f, stop := s.start(follow.Config[int]{Interval: time.Second, AtOnce: atOnce})
			require.Equal(t, follow.Never, f.State().Contact)
			time.Sleep(100 * time.Second) //nolint:forbidigo // the clock of a synctest bubble
			stop()
			asked := s.questions()
			require.InDelta(t, 100, len(asked), 15)
			require.LessOrEqual(t, asked[0].Sub(began), time.Second)
			require.Equal(t, atOnce, asked[0].Equal(began))
			for i := 1; i < len(asked); i++ {
				require.InDelta(t, time.Second, asked[i].Sub(asked[i-1]), float64(time.Second/5))
			}
			require.Equal(t, 7, s.good)
		})
	}
}

func TestAQuestionWithoutAnAnswerIsAskedAgainSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &source{value: 7, err: errAway}
		f, stop := s.start(follow.Config[int]{Interval: time.Second, AtOnce: true})
		defer stop()
		time.Sleep(990 * time.Millisecond) //nolint:forbidigo // the clock of a synctest bubble
		n := len(s.questions())
		require.Less(t, 4, n)
		require.Greater(t, 8, n)
		time.Sleep(100 * time.Second) //nolint:forbidigo // the clock of a synctest bubble
		require.InDelta(t, 100, len(s.questions())-n, 20, "and then no more than ever")
		require.Equal(t, follow.Never, f.State().Contact)
		require.ErrorIs(t, f.State().Err, errAway)
		require.InDelta(t, 101*time.Second, f.State().Age, float64(time.Second))
	})
}

func TestTheStateSaysWhetherAnInstanceIsInTouch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &source{value: 7}
		f, stop := s.start(follow.Config[int]{Interval: time.Second, AtOnce: true})
		defer stop()
		time.Sleep(10 * time.Second) //nolint:forbidigo // the clock of a synctest bubble
		require.Equal(t, follow.Current, f.State().Contact)
		s.set(func() { s.value, s.refuses = 8, true })
		time.Sleep(10 * time.Second) //nolint:forbidigo // the clock of a synctest bubble
		require.Equal(t, follow.Current, f.State().Contact, "it has answered")
		require.NoError(t, f.State().Err)
		s.set(func() { s.err = errAway })
		time.Sleep(3 * time.Second) //nolint:forbidigo // the clock of a synctest bubble
		require.Equal(t, follow.Current, f.State().Contact)
		require.ErrorIs(t, f.State().Err, errAway)
		time.Sleep(4 * time.Second) //nolint:forbidigo // the clock of a synctest bubble
		require.Equal(t, follow.Stale, f.State().Contact)
		require.Equal(t, 7, s.good, "what was good last holds")
		s.set(func() { s.err, s.refuses = nil, false })
		time.Sleep(2 * time.Second) //nolint:forbidigo // the clock of a synctest bubble
		require.Equal(t, follow.Current, f.State().Contact)
		require.Equal(t, 8, s.good)
	})
}

func TestASourceThatIsBehindIsOutOfTouchAndNotAskedSooner(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &source{behind: true}
		f, stop := s.start(follow.Config[int]{Interval: time.Second, AtOnce: true})
		defer stop()
		time.Sleep(10 * time.Second) //nolint:forbidigo // the clock of a synctest bubble
		require.Equal(t, follow.Never, f.State().Contact)
		require.ErrorIs(t, f.State().Err, errAway)
		require.InDelta(t, 10, len(s.questions()), 3)
	})
}

func TestWhatIsPendingIsNoAnswerAndNoFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &source{err: follow.ErrPending}
		f, stop := s.start(follow.Config[int]{Interval: time.Second, AtOnce: true})
		defer stop()
		time.Sleep(10 * time.Second) //nolint:forbidigo // the clock of a synctest bubble
		require.Equal(t, follow.Never, f.State().Contact)
		require.NoError(t, f.State().Err)
		require.InDelta(t, 10, len(s.questions()), 3)
	})
}

func TestHintsAreHeardAndAskWithoutEndForNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &source{value: 1}
		_, stop := s.start(follow.Config[int]{AtOnce: true, Subscribe: func(ctx context.Context, wake func()) error {
			s.set(func() { s.wake = wake })
			wake()
			<-ctx.Done()
			return ctx.Err()
		}})
		defer stop()
		time.Sleep(time.Hour) //nolint:forbidigo // the clock of a synctest bubble
		require.LessOrEqual(t, len(s.questions()), 2, "there is no interval")
		s.set(func() { s.value = 2 })
		s.wake()
		synctest.Wait()
		require.Equal(t, 2, s.good)
		n := len(s.questions())
		for range 1000 {
			s.wake()
			time.Sleep(time.Millisecond) //nolint:forbidigo // the clock of a synctest bubble
		}
		require.InDelta(t, 50, len(s.questions())-n, 2)
		require.Positive(t, s.hinted)
	})
}

func TestASourceThatPanicsIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		subscribed := 0
		f := follow.New(follow.Config[int]{
			Source: "the source", Interval: time.Second, Patience: time.Second,
			Read:  func(context.Context) (int, error) { panic("broken") },
			Judge: func(_ context.Context, answer follow.Answer[int]) error { return answer.Err },
			Subscribe: func(context.Context, func()) error {
				if subscribed++; subscribed > 3 {
					return follow.ErrNoHints
				}
				panic("broken")
			},
		})
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		f.Run(ctx)
		require.ErrorContains(t, f.State().Err, "the source panicked")
		require.Equal(t, 4, subscribed)
	})
}
