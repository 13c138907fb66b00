package policy_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

var errAway = errors.New("the feed is away")

func TestAnInstanceKnowsWhetherItIsInTouchWithItsFeed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		feed := &memory{err: errAway}
		f, o := follow(t, feed, policy.Config{First: first(t)})
		require.Equal(t, policy.Never, f.Status().State)
		pass(time.Hour)
		require.Equal(t, policy.Never, f.Status().State)

		feed.set(revision(1), nil)
		pass(2 * time.Second)
		require.Equal(t, policy.Current, f.Status().State)
		require.Empty(t, f.Status().Failure)
		changed := f.Status().Changed
		pass(time.Hour)
		s := f.Status()
		require.Equal(t, changed, s.Changed, "asking is not changing")
		require.Less(t, s.Age(time.Now()), 2*time.Second)

		feed.set(nil, errAway)
		pass(3500 * time.Millisecond)
		require.Equal(t, policy.Current, f.Status().State, "before five intervals are over")
		pass(4 * time.Second)
		s = f.Status()
		require.Equal(t, policy.Stale, s.State)
		require.Equal(t, errAway.Error(), s.Failure)
		require.Equal(t, 1, maxCost(f))
		require.Greater(t, s.Age(time.Now()), 5*time.Second)

		feed.set(revision(1), nil)
		pass(2 * time.Second)
		require.Equal(t, policy.Current, f.Status().State)
		require.Equal(t, []string{
			"applied 0 of first", " to never", "applied 1 of feed", "never to current", "current to stale", "stale to current",
		}, o.short())
	})
}

func TestAFeedThatIsBehindIsNotInTouch(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]*policy.Revision{"nothing": nil, "an older revision": revision(1)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				feed := &memory{newest: revision(2)}
				f, _ := follow(t, feed, policy.Config{})
				feed.set(answer, nil)
				pass(time.Minute)
				require.Equal(t, policy.Stale, f.Status().State)
				require.NotEmpty(t, f.Status().Failure)
				require.Equal(t, 2, maxCost(f))
			})
		})
	}
}

func TestWhatIsPublishedBeforeTheSubscriptionStandsIsNotMissed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		feed := &memory{newest: revision(1), standing: make(chan struct{}), hints: make(chan struct{})}
		f, _ := follow(t, feed, policy.Config{Interval: policy.None})
		feed.set(revision(2), nil)
		pass(time.Hour)
		require.Equal(t, 1, maxCost(f), "there was no hint")
		close(feed.standing)
		pass(time.Millisecond)
		require.Equal(t, 2, maxCost(f))

		// A subscription that has ended is made again, and what came meanwhile is read.
		hints := feed.hints
		feed.set(revision(3), nil)
		close(hints)
		pass(time.Second)
		require.Equal(t, 3, maxCost(f))
	})
}

func TestWhoeverSendsHintsCannotMakeAnInstanceAskWithoutEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		feed := &memory{newest: revision(1), standing: make(chan struct{}), hints: make(chan struct{})}
		close(feed.standing)
		follow(t, feed, policy.Config{Interval: policy.None})
		pass(time.Second)
		before := feed.questions()
		for range 10_000 {
			feed.hints <- struct{}{}
			pass(100 * time.Microsecond)
		}
		require.LessOrEqual(t, feed.questions()-before, 51, "10 000 hints in a second")
		require.GreaterOrEqual(t, feed.questions()-before, 40)
	})
}

func TestInstancesThatStartTogetherDoNotAskTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const instances = 40
		var feeds [instances]*memory
		began := time.Now()
		for i := range feeds {
			feeds[i] = &memory{newest: revision(1)}
			follow(t, feeds[i], policy.Config{})
		}
		pass(time.Minute)
		tenths := map[int64]bool{}
		for _, feed := range feeds {
			asked := feed.times()[1:]
			tenths[int64(asked[0].Sub(began)/(100*time.Millisecond))] = true
			require.LessOrEqual(t, asked[0].Sub(began), time.Second)
			for i := 1; i < len(asked); i++ {
				gap := asked[i].Sub(asked[i-1])
				require.GreaterOrEqual(t, gap, 800*time.Millisecond)
				require.LessOrEqual(t, gap, 1200*time.Millisecond)
			}
		}
		require.Greater(t, len(tenths), 5, "the first questions come anywhere in the first second")
	})
}

func TestAFeedThatHangsOrPanicsWedgesNothing(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(context.Context, policy.Head) (*policy.Revision, error){
		"hangs": func(ctx context.Context, _ policy.Head) (*policy.Revision, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
		"panics": func(context.Context, policy.Head) (*policy.Revision, error) { panic("a feed") },
		"gives a revision that is none": func(context.Context, policy.Head) (*policy.Revision, error) {
			return &policy.Revision{}, nil
		},
		"has nothing to say": func(context.Context, policy.Head) (*policy.Revision, error) { return nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				feed := &memory{answering: answer}
				began := time.Now()
				f, _ := follow(t, feed, policy.Config{First: first(t)})
				require.LessOrEqual(t, time.Since(began), 2*time.Second, "the start is as patient as it is told to be")
				pass(time.Minute)
				require.Equal(t, 999, maxCost(f))
				feed.set(revision(1), nil)
				pass(5 * time.Second)
				require.Equal(t, 1, maxCost(f))
				feed.mu.Lock()
				feed.answering = answer
				feed.mu.Unlock()
				pass(time.Minute)
				require.Equal(t, 1, maxCost(f))
				feed.set(revision(2), nil)
				pass(5 * time.Second)
				require.Equal(t, 2, maxCost(f))
			})
		})
	}
}

func TestACheckRefusesARevisionAndNotTheNextOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		feed := &memory{newest: revision(1)}
		f, o := follow(t, feed, policy.Config{})
		checked := 0
		require.NoError(t, f.Check(func(s *tiers.Snapshot) error {
			checked++
			switch maxCost(s) {
			case 2:
				return errors.New("no such store")
			case 3:
				panic("a check")
			}
			return nil
		}))
		for number := uint64(2); number <= 3; number++ {
			feed.set(revision(number), nil)
			pass(time.Minute)
			require.Equal(t, 1, maxCost(f))
			require.Equal(t, policy.ReasonCheck, f.Status().Refused.Cause)
			require.Equal(t, policy.Current, f.Status().State)
		}
		require.Equal(t, 3, checked, "what was refused is not judged at each interval")
		feed.set(revision(4), nil)
		pass(time.Minute)
		require.Equal(t, 4, maxCost(f))
		require.Nil(t, f.Status().Refused)
		require.Equal(t, []string{"applied 1 of feed", "refused 2 check", "refused 3 check", "applied 4 of feed"}, o.short())
	})
}

func TestARefusedRevisionThatIsTakenBackIsToldOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		feed := &memory{newest: revision(1)}
		f, o := follow(t, feed, policy.Config{})
		for range 2 {
			feed.set(other(2, []byte("[")), nil)
			pass(time.Minute)
			feed.set(revision(1), nil)
			pass(time.Minute)
			require.Nil(t, f.Status().Refused)
		}
		require.Equal(t, []string{
			"applied 1 of feed", "refused 2 document", "applied 1 of feed again", "refused 2 document", "applied 1 of feed again",
		}, o.short())
	})
}

func TestReloadSaysWhyTheNewestRevisionDoesNotHold(t *testing.T) {
	t.Parallel()
	feed := &memory{newest: revision(1)}
	f, o := follow(t, feed, policy.Config{Interval: policy.None})
	feed.set(other(2, []byte("version: 1\ndefault: free\ntiers: {free: {maxCost: many}}\n")), nil)
	var mistakes *tiers.PolicyError
	for range 3 {
		require.ErrorAs(t, f.Reload(t.Context()), &mistakes, "each time, not only the first")
		require.Equal(t, 3, mistakes.Mistakes[0].Line)
	}
	feed.set(nil, errAway)
	require.ErrorIs(t, f.Reload(t.Context()), errAway)
	feed.set(revision(3), nil)
	require.NoError(t, f.Reload(t.Context()))
	require.Equal(t, 3, maxCost(f))
	require.EqualValues(t, 3, f.Snapshot().Generation(), "it is the number of the revision")
	require.Equal(t, []string{"applied 1 of feed", "refused 2 document", "applied 3 of feed"}, o.short())
	require.NoError(t, f.Close())
	feed.set(revision(4), nil)
	require.NoError(t, f.Reload(t.Context()), "also after Close")
	require.Equal(t, 4, maxCost(f))
}

// It counts allocations, and so runs alone.
func TestADecisionWaitsForNothingAndAllocatesNothing(t *testing.T) {
	feed := &memory{newest: revision(1)}
	f, _ := follow(t, feed, policy.Config{Interval: policy.None})
	alone := f.Snapshot()
	room := make([]bucket.Bucket, 0, 4)
	subject := tiers.Subject{Tenant: "x", User: "y"}
	decide := func(source tiers.Source) func() {
		return func() { _ = source.Snapshot().RulesInto(room, subject, tiers.Selection{}) }
	}
	entered, leave := make(chan struct{}), make(chan struct{})
	require.NoError(t, f.Check(func(s *tiers.Snapshot) error {
		if maxCost(s) == 2 {
			close(entered)
			<-leave
		}
		return nil
	}))
	feed.set(revision(2), nil)
	reloaded := make(chan error)
	go func() { reloaded <- f.Reload(t.Context()) }()
	<-entered
	// A policy is being judged, with all the locks that this takes.
	require.Equal(t, 1, maxCost(f))
	require.EqualValues(t, 1, f.Status().Number)
	require.Equal(t, testing.AllocsPerRun(1000, decide(alone)), testing.AllocsPerRun(1000, decide(f)))
	require.Zero(t, testing.AllocsPerRun(1000, decide(f)))
	close(leave)
	require.NoError(t, <-reloaded)
	require.Equal(t, 2, maxCost(f))
}

func TestAFollowerStandsWhereverASourceDoes(t *testing.T) {
	t.Parallel()
	feed := &memory{newest: revision(1)}
	f, _ := follow(t, feed, policy.Config{Interval: policy.None})
	rollout := tiers.NewRollout(f)
	emergency := tiers.NewModeSwitch(rollout)
	var refuse error
	require.NoError(t, emergency.Check(func(*tiers.Snapshot) error { return refuse }))
	require.Equal(t, 1, maxCost(emergency))
	refuse = errAway
	feed.set(revision(2), nil)
	require.ErrorIs(t, f.Reload(t.Context()), errAway, "the check came through the switch and the roll-out")
	refuse = nil
	require.NoError(t, f.Reload(t.Context()), "an operator's reload judges it anew")
	require.Equal(t, 2, maxCost(emergency))
}

func TestWhatAFeedHasLostIsGivenBackAtAnIntervalAndNotAtHints(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		feed := &memory{newest: revision(5), standing: make(chan struct{}), hints: make(chan struct{})}
		close(feed.standing)
		follow(t, feed, policy.Config{Interval: time.Minute})
		pass(time.Second)
		feed.set(revision(4), nil)
		for range 10 {
			feed.hints <- struct{}{}
			pass(50 * time.Millisecond)
		}
		before := len(feed.given())
		require.LessOrEqual(t, before, 1, "the first question of the interval may have come")
		pass(2 * time.Minute)
		require.Greater(t, len(feed.given()), before)
		require.Equal(t, revision(5).Head(), feed.given()[0].Head())
	})
}
