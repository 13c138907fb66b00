package policytest

import (
	"bytes"
	"context"
	"reflect"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// feedTests are about what a feed returns.
var feedTests = []test{
	{"a source without a revision is an error, and its feed gives the first one that comes", nil, func(s *scene) {
		feed := s.Open()
		_, err := feed.Newest(s.ctx, policy.Head{})
		s.true(err != nil, "a revision out of nothing")
		s.put(revision(1))
		r := s.newest(feed, policy.Head{})
		s.true(r != nil && bytes.Equal(r.Document, document(1)), "got %v", r)
	}},
	{"a source that has lost everything says that it is empty", restorable, func(s *scene) {
		s.put(revision(1))
		s.ok(s.Empty())
		_, err := s.Open().Newest(s.ctx, revision(1).Head())
		s.is(err, policy.ErrEmpty)
	}},
	{"a revision comes with all of its parts", numbered, func(s *scene) {
		want := revision(7)
		want.Signature = []byte{0, 1, 2, 255}
		s.put(want)
		got := s.newest(s.Open(), policy.Head{})
		s.true(reflect.DeepEqual(got, want), "got %v, want %v", got, want)
		bare := other(8, document(8))
		bare.Author, bare.Reason, bare.Published = "", "", time.Time{}
		s.put(bare)
		got = s.newest(s.Open(), policy.Head{})
		s.true(reflect.DeepEqual(got, bare), "got %v, want %v", got, bare)
	}},
	{"a document comes byte for byte, whatever bytes it has", nil, func(s *scene) {
		odd := []byte("\xef\xbb\xbf{\"a\":\t\"\x00\xff\"}\r\n\n\n# end without a line end")
		s.put(other(1, odd))
		got := s.newest(s.Open(), policy.Head{})
		s.true(bytes.Equal(got.Document, odd) && got.Hash == policy.HashOf(odd), "got %q", got.Document)
	}},
	{"a document of a megabyte comes whole", nil, func(s *scene) {
		large := append(document(1), bytes.Repeat([]byte("#"), tiers.DefaultMaxDocument-len(document(1)))...)
		s.put(other(1, large))
		got := s.newest(s.Open(), policy.Head{})
		s.true(bytes.Equal(got.Document, large), "got %d bytes", len(got.Document))
	}},
	{"a document that is larger than any that fits is refused, and the next one is judged", nil, func(s *scene) {
		s.put(revision(1))
		follower := s.follow(policy.Config{})
		huge := append(document(2), bytes.Repeat([]byte("#"), 64<<20)...)
		s.put(other(2, huge))
		s.until("that it was refused", func() bool {
			status := follower.Status()
			return status.Refused != nil || status.Failure != ""
		})
		s.put(revision(3))
		s.until("the next one", func() bool { return maxCost(follower) == 3 })
	}},
	{"what the follower has is not sent again", nil, func(s *scene) {
		feed := s.Open()
		s.put(revision(3))
		have := s.newest(feed, policy.Head{}).Head()
		s.true(s.newest(feed, have) == nil, "the same once more")
		s.put(revision(4))
		s.true(s.newest(feed, have).Number == have.Number+1, "another one")
	}},
	{"other content under the number that the follower has is given", numbered, func(s *scene) {
		s.put(other(3, document(4)))
		got := s.newest(s.Open(), revision(3).Head())
		s.true(got != nil && got.Number == 3 && got.Hash == policy.HashOf(document(4)), "got %v", got)
	}},
	{"what a feed has given is the caller's own", nil, func(s *scene) {
		feed := s.Open()
		s.put(revision(1))
		got := s.newest(feed, policy.Head{})
		clear(got.Document)
		clear(got.Signature)
		again := s.newest(feed, policy.Head{})
		s.true(bytes.Equal(again.Document, document(1)), "got %q", again.Document)
	}},
	{"a question ends with its context", nil, func(s *scene) {
		s.put(revision(1))
		ctx, cancel := context.WithCancel(s.ctx)
		cancel()
		feed := s.Open()
		// It may be answered from what is at hand.
		_, _ = feed.Newest(ctx, policy.Head{})
		s.true(s.newest(feed, policy.Head{}) != nil, "the feed is of no use afterwards")
	}},
	{"a subscription ends with its context", nil, func(s *scene) {
		ctx, cancel := context.WithCancel(s.ctx)
		ended := make(chan error, 1)
		woken := make(chan struct{}, 1)
		go func() { ended <- s.Open().Hints(ctx, func() { wake(woken) }) }()
		select {
		case <-woken:
		case err := <-ended:
			s.is(err, policy.ErrNoHints)
			ended <- err
		}
		cancel()
		s.true(<-ended != nil, "it ends and says not why")
	}},
	{"a subscription wakes when it stands, and at what is published then", publishes, func(s *scene) {
		ctx, cancel := context.WithCancel(s.ctx)
		defer cancel()
		ended := make(chan error, 1)
		woken := make(chan struct{}, 1)
		s.ok(s.Publisher.Publish(s.ctx, revision(1), 0))
		go func() { ended <- s.Open().Hints(ctx, func() { wake(woken) }) }()
		for number := uint64(1); number < 4; number++ {
			select {
			case <-woken:
			case err := <-ended:
				s.is(err, policy.ErrNoHints)
				return
			}
			s.ok(s.Publisher.Publish(s.ctx, revision(number+1), number))
		}
		<-woken
		cancel()
		s.true(<-ended != nil, "it ends and says not why")
	}},
}

func wake(woken chan struct{}) {
	select {
	case woken <- struct{}{}:
	default:
	}
}
