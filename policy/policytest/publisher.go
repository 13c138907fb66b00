package policytest

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/gqlgen-ratelimit/ratelimit/policy"
)

// publisherTests are about who may publish.
var publisherTests = []test{
	{"a revision is published over the expected one only", publishes, func(s *scene) {
		feed := s.Open()
		s.is(s.Publisher.Publish(s.ctx, revision(2), 1), policy.ErrConflict)
		s.ok(s.Publisher.Publish(s.ctx, revision(1), 0))
		s.ok(s.Publisher.Publish(s.ctx, revision(4), 1))
		err := s.Publisher.Publish(s.ctx, revision(5), 1)
		conflict := (*policy.ConflictError)(nil)
		s.true(errors.As(err, &conflict) && conflict.Newest == revision(4).Head(), "the error is %v", err)
		s.true(s.newest(feed, policy.Head{}).Number == 4, "it was published all the same")
	}},
	{"a number only grows", publishes, func(s *scene) {
		s.ok(s.Publisher.Publish(s.ctx, revision(5), 0))
		for _, number := range []uint64{0, 4, 5} {
			s.true(s.Publisher.Publish(s.ctx, other(number, document(77)), 5) != nil, "number %d over 5", number)
		}
		s.true(s.newest(s.Open(), policy.Head{}).Hash == revision(5).Hash, "it was published all the same")
	}},
	{"a repeat of what was published succeeds, since the answer may have been lost", publishes, func(s *scene) {
		for range 3 {
			s.ok(s.Publisher.Publish(s.ctx, revision(1), 0))
		}
		s.is(s.Publisher.Publish(s.ctx, other(1, document(2)), 0), policy.ErrConflict)
	}},
	{"what does not compile is not published", publishes, func(s *scene) {
		cut := revision(1)
		cut.Document = cut.Document[:len(cut.Document)-3]
		for _, wrong := range []*policy.Revision{other(1, []byte("tiers: [")), cut, revision(0)} {
			err := s.Publisher.Publish(s.ctx, wrong, 0)
			refused := (*policy.RefusedError)(nil)
			s.true(errors.As(err, &refused), "the error is %v", err)
		}
		_, err := s.Open().Newest(s.ctx, policy.Head{})
		s.true(err != nil, "there is a revision")
	}},
	{"of many who publish over the same revision one wins", publishes, func(s *scene) {
		const publishers, rounds = 8, 20
		for round := range uint64(rounds) {
			var all sync.WaitGroup
			var won, lost atomic.Int64
			for p := range publishers {
				all.Go(func() {
					err := s.Publisher.Publish(s.ctx, other(round+1, document(int(round)*publishers+p+1)), round)
					switch {
					case err == nil:
						won.Add(1)
					case errors.Is(err, policy.ErrConflict):
						lost.Add(1)
					default:
						s.Errorf("unexpected error: %v", err)
					}
				})
			}
			all.Wait()
			s.true(won.Load() == 1 && lost.Load() == publishers-1, "round %d: %d have won, %d have lost", round, won.Load(), lost.Load())
			s.true(s.newest(s.Open(), policy.Head{}).Number == round+1, "the round has another number")
		}
	}},
	{"what is given back never replaces what is newer", restorable, func(s *scene) {
		feed := s.Open().(policy.Restorer) //nolint:errcheck // The rule is about those that are one.
		s.ok(feed.Restore(s.ctx, revision(5)))
		s.ok(feed.Restore(s.ctx, revision(4)))
		s.ok(feed.Restore(s.ctx, other(5, document(77))))
		s.true(s.newest(feed, policy.Head{}).Head() == revision(5).Head(), "it was replaced")
		s.ok(feed.Restore(s.ctx, revision(6)))
		s.true(s.newest(feed, policy.Head{}).Number == 6, "the newer one is not there")
	}},
}
