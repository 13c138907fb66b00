package policytest

import (
	"context"
	"path/filepath"
	"sync"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
)

// refusals collects why revisions are refused.
type refusals struct {
	mu     sync.Mutex
	causes []string
}

// Observe implements event.Observer.
func (r *refusals) Observe(_ context.Context, e event.Event) {
	if refused, ok := e.(event.PolicyRefused); ok {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.causes = append(r.causes, refused.Cause)
	}
}

func (r *refusals) has(reason policy.Reason) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, cause := range r.causes {
		if cause == string(reason) {
			return true
		}
	}
	return false
}

// followerTests are about what a follower makes of a feed.
var followerTests = []test{
	{"a follower that comes late has the newest revision at once", nil, func(s *scene) {
		s.put(revision(1))
		s.put(revision(2))
		follower := s.follow(policy.Config{Interval: policy.None})
		s.true(maxCost(follower) == 2 && follower.Status().State == policy.Current, "got %v", follower.Status())
	}},
	{"a hint that is lost costs an interval", nil, func(s *scene) {
		s.put(revision(1))
		follower := s.follow(policy.Config{})
		for number := uint64(2); number < 5; number++ {
			s.put(revision(number))
			s.until("the revision", func() bool { return maxCost(follower) == int(number) })
		}
	}},
	{"a hint is enough where nothing is asked at intervals", publishes, func(s *scene) {
		s.ok(s.Publisher.Publish(s.ctx, revision(1), 0))
		ended := make(chan error, 1)
		ctx, cancel := context.WithCancel(s.ctx)
		go func() { ended <- s.Open().Hints(ctx, cancel) }()
		err := <-ended
		cancel()
		if policy.ErrNoHints == err { //nolint:errorlint // The error itself says it.
			return
		}
		follower := s.follow(policy.Config{Interval: policy.None})
		for number := uint64(2); number < 5; number++ {
			s.ok(s.Publisher.Publish(s.ctx, revision(number), number-1))
			s.until("the revision", func() bool { return maxCost(follower) == int(number) })
		}
	}},
	{"an older revision is refused, said, and does not hold", numbered, func(s *scene) {
		s.put(revision(5))
		told := &refusals{}
		follower := s.follow(policy.Config{Observe: policy.ObserveConfig{Observer: told}})
		s.put(revision(4))
		s.until("the refusal", func() bool { return told.has(policy.ReasonOlder) })
		s.true(maxCost(follower) == 5, "the older one holds")
		s.put(revision(6))
		s.until("the next one", func() bool { return maxCost(follower) == 6 && follower.Status().Refused == nil })
	}},
	{"other bytes under the same number are refused and said", numbered, func(s *scene) {
		s.put(revision(5))
		told := &refusals{}
		follower := s.follow(policy.Config{Observe: policy.ObserveConfig{Observer: told}})
		s.put(other(5, document(50)))
		s.until("the refusal", func() bool { return told.has(policy.ReasonConflict) })
		s.true(maxCost(follower) == 5, "the other one holds")
		s.put(revision(6))
		s.until("the next one", func() bool { return maxCost(follower) == 6 })
	}},
	{"what does not compile is refused, and the next one is judged all the same", nil, func(s *scene) {
		s.put(revision(1))
		told := &refusals{}
		follower := s.follow(policy.Config{Observe: policy.ObserveConfig{Observer: told}})
		s.put(other(2, []byte("tiers: [")))
		s.until("the refusal", func() bool { return told.has(policy.ReasonDocument) })
		s.true(maxCost(follower) == 1, "got %v", follower.Status())
		// A process that gets no processor for five intervals has not asked in them.
		s.until("that it is current", func() bool { return follower.Status().State == policy.Current })
		s.put(revision(3))
		s.until("the next one", func() bool { return maxCost(follower) == 3 })
	}},
	{"a source that is away leaves what holds, is told, and is followed again", nil, func(s *scene) {
		s.put(revision(1))
		follower := s.follow(policy.Config{})
		s.ok(s.Empty())
		// Where what was lost is given back it is away for an interval only.
		if !restorable(&s.Harness) {
			// It is stale as well when nobody has asked yet, because the machine is busy.
			s.until("that it is stale, and says why", func() bool {
				status := follower.Status()
				return status.State == policy.Stale && status.Failure != ""
			})
		}
		s.true(maxCost(follower) == 1, "what holds has gone")
		s.put(revision(2))
		s.until("the next one", func() bool { return maxCost(follower) == 2 && follower.Status().State == policy.Current })
	}},
	{"a source that has lost everything is given back what its followers have", restorable, func(s *scene) {
		want := revision(4)
		want.Signature = []byte("as it was signed")
		s.put(want)
		s.follow(policy.Config{})
		s.follow(policy.Config{})
		s.ok(s.Empty())
		feed := s.Open()
		s.until("the revision", func() bool {
			got, err := feed.Newest(s.ctx, policy.Head{})
			return err == nil && got.Head() == want.Head() && string(got.Signature) == string(want.Signature)
		})
	}},
	{"a follower that has a revision from its disk alone gives it to nobody", restorable, func(s *scene) {
		path := filepath.Join(s.TempDir(), "last-good")
		s.put(revision(9))
		s.ok(s.follow(policy.Config{LastGood: path}).Close())
		s.ok(s.Empty())
		follower := s.follow(policy.Config{LastGood: path})
		s.true(maxCost(follower) == 9 && follower.Status().State == policy.Never, "got %v", follower.Status())
		asked := make(chan struct{}, 1)
		counting := &countingFeed{Feed: s.Open(), asked: asked}
		second, err := policy.Follow(s.ctx, counting, policy.Config{LastGood: path, Interval: 100 * time.Millisecond})
		s.ok(err)
		s.Cleanup(func() { _ = second.Close() })
		for range 4 {
			<-asked
		}
		_, err = s.Open().Newest(s.ctx, policy.Head{})
		s.is(err, policy.ErrEmpty)
	}},
	{"a source that was restarted is followed again", restarts, func(s *scene) {
		s.put(revision(1))
		followers := []*policy.Follower{s.follow(policy.Config{}), s.follow(policy.Config{}), s.follow(policy.Config{})}
		for number := uint64(2); number < 5; number++ {
			s.ok(s.Restart())
			s.until("that it takes a revision", func() bool { return s.Put(revision(number)) == nil })
			for _, follower := range followers {
				s.until("the revision", func() bool { return maxCost(follower) == int(number) })
			}
		}
	}},
	{"an operator who brings an old document back is obeyed", func(h *Harness) bool { return h.Plain }, func(s *scene) {
		s.put(revision(1))
		follower := s.follow(policy.Config{})
		for i, cost := range []int{2, 1, 2} {
			s.put(other(1, document(cost)))
			s.until("the document", func() bool { return maxCost(follower) == cost })
			s.true(follower.Status().Number == uint64(i+2), "got %v", follower.Status())
		}
	}},
}

// countingFeed says when it was asked.
type countingFeed struct {
	policy.Feed

	asked chan struct{}
}

// Newest implements policy.Feed.
func (c *countingFeed) Newest(ctx context.Context, have policy.Head) (*policy.Revision, error) {
	r, err := c.Feed.Newest(ctx, have)
	wake(c.asked)
	return r, err
}

// Restore implements policy.Restorer where the feed does.
func (c *countingFeed) Restore(ctx context.Context, r *policy.Revision) error {
	if feed, ok := c.Feed.(policy.Restorer); ok {
		return feed.Restore(ctx, r)
	}
	return nil
}
