package policy_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/policy"
)

// most returns how many of the times fall into so long a time at most.
func most(times []time.Time, in time.Duration) (n int) {
	slices.SortFunc(times, time.Time.Compare)
	for first, last := 0, 0; last < len(times); last++ {
		for times[last].Sub(times[first]) >= in {
			first++
		}
		n = max(n, last-first+1)
	}
	return n
}

func TestAQuestionThatWasNotAnsweredIsAskedAgainSoonAndThenLessAndLessSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		feed := &memory{newest: revision(1)}
		f, _ := follow(t, feed, policy.Config{})
		pass(10 * time.Second)
		// It fails once, time and again.
		for number := uint64(2); number < 20; number++ {
			var failed time.Time
			feed.mu.Lock()
			feed.answering = func(context.Context, policy.Head) (*policy.Revision, error) {
				failed = time.Now()
				feed.set(revision(number), nil)
				return nil, errAway
			}
			feed.mu.Unlock()
			pass(1200 * time.Millisecond)
			for failed.IsZero() {
				pass(time.Millisecond)
			}
			pass(time.Until(failed.Add(50 * time.Millisecond)))
			require.EqualValues(t, number, maxCost(f))
		}
		// It is away.
		feed.set(nil, errAway)
		before := feed.questions()
		pass(time.Minute)
		asked := feed.times()[before:]
		wait := 50 * time.Millisecond
		for i := 1; i < len(asked); i++ {
			gap, least, longest := asked[i].Sub(asked[i-1]), wait/2, wait
			if wait >= time.Second {
				least, longest = 800*time.Millisecond, 1200*time.Millisecond
			} else {
				wait *= 2
			}
			require.GreaterOrEqual(t, gap, least, i)
			require.LessOrEqual(t, gap, longest, i)
		}
		require.LessOrEqual(t, most(asked, time.Second), 6)
	})
}

func TestAHintWhoseQuestionWasNotAnsweredIsNotLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		feed := &memory{newest: revision(1), standing: make(chan struct{}), hints: make(chan struct{})}
		close(feed.standing)
		f, _ := follow(t, feed, policy.Config{Interval: policy.None})
		pass(time.Second)
		feed.set(nil, errAway)
		feed.hints <- struct{}{}
		pass(time.Millisecond)
		feed.set(revision(2), nil)
		pass(50 * time.Millisecond)
		require.Equal(t, 2, maxCost(f))

		feed.set(nil, errAway)
		before := feed.questions()
		feed.hints <- struct{}{}
		pass(time.Hour)
		require.LessOrEqual(t, feed.questions()-before, 6, "who asks at hints only gives up")
		feed.set(revision(3), nil)
		feed.hints <- struct{}{}
		pass(time.Millisecond)
		require.Equal(t, 3, maxCost(f))
	})
}

func TestHintsOfAFeedThatDoesNotAnswerDoNotKeepItFromBeingAskedAtTheInterval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		feed := &memory{newest: revision(1), standing: make(chan struct{}), hints: make(chan struct{})}
		close(feed.standing)
		follow(t, feed, policy.Config{})
		pass(time.Second)
		feed.set(nil, errAway)
		before := feed.questions()
		for range 400 {
			feed.hints <- struct{}{}
			pass(25 * time.Millisecond)
		}
		require.LessOrEqual(t, feed.questions()-before, 400+12+6)
		require.GreaterOrEqual(t, feed.questions()-before, 400+8)
	})
}

// TestAFleetWhoseFeedComesBackDoesNotAskAsOne has a feed go away and come back, with all subscriptions, for many followers.
func TestAFleetWhoseFeedComesBackDoesNotAskAsOne(t *testing.T) {
	t.Parallel()
	const followers = 200
	for _, away := range []time.Duration{500 * time.Millisecond, 3 * time.Second, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			var fleet [followers]*outage
			for i := range fleet {
				fleet[i] = &outage{memory: &memory{newest: revision(1)}, cut: make(chan struct{})}
				follow(t, fleet[i], policy.Config{})
			}
			pass(10 * time.Second)
			for _, feed := range fleet {
				feed.set(nil, errAway)
				close(feed.cut)
			}
			pass(away)
			back := time.Now()
			for _, feed := range fleet {
				feed.mu.Lock()
				feed.cut = make(chan struct{})
				feed.mu.Unlock()
				feed.set(revision(2), nil)
			}
			pass(20 * time.Second)
			var asked []time.Time
			for _, feed := range fleet {
				var before []time.Time
				for _, at := range feed.times() {
					if at.Before(back) {
						before = append(before, at)
					} else {
						asked = append(asked, at)
					}
				}
				require.LessOrEqual(t, most(before, time.Second), 9, "a follower asks a feed that is away")
			}
			require.LessOrEqual(t, most(asked, 50*time.Millisecond), followers*3/5, "after %v", away)
		})
	}
}

// outage is a feed whose subscriptions end when it goes away.
type outage struct {
	*memory

	cut chan struct{}
}

func (o *outage) Hints(ctx context.Context, wake func()) error {
	o.mu.Lock()
	cut, err := o.cut, o.err
	o.mu.Unlock()
	if err != nil {
		return err
	}
	wake()
	select {
	case <-ctx.Done():
	case <-cut:
	}
	return errAway
}
