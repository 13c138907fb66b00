// Package policytest holds the contract of policy.Feed as tests: whatever a policy comes from, instances follow it alike.
// A feed of one's own passes when
//
//	policytest.Run(t, func(t *testing.T) policytest.Harness { … })
//
// passes. The tests wait for what has to happen and never for a time to pass, but for the intervals of followers.
package policytest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// Harness is a source of revisions under test, empty at first.
type Harness struct {
	// Open returns a feed of the source, as each instance has one of its own.
	Open func() policy.Feed
	// Put makes the revision the newest one of the source without a hint and past every rule, as somebody does who writes
	// into a database by hand: also an older one.
	Put func(r *policy.Revision) error
	// Empty takes everything from the source, as a flush does.
	Empty func() error
	// Publisher publishes to the source. Nil leaves its rules out: a file has none.
	Publisher policy.Publisher
	// Restart ends the connections of the source and starts it again with what it has. Nil leaves that out.
	Restart func() error
	// Plain says that the source knows documents only: the feed gives numbers, and a document that comes back is a new revision.
	Plain bool
}

// Run checks a feed against the contract. It calls open for each test, and once before.
func Run(t *testing.T, open func(*testing.T) Harness) {
	t.Helper()
	probe := open(t)
	for _, group := range [...][]test{feedTests, followerTests, publisherTests} {
		for _, test := range group {
			if test.needs != nil && !test.needs(&probe) {
				continue
			}
			t.Run(test.rule, func(t *testing.T) {
				t.Parallel()
				test.check(&scene{T: t, Harness: open(t), ctx: t.Context()})
			})
		}
	}
}

// test is one rule of the contract.
type test struct {
	rule string
	// needs says whether the rule is about such a source. Nil is about all.
	needs func(*Harness) bool
	check func(*scene)
}

func numbered(h *Harness) bool   { return !h.Plain }
func publishes(h *Harness) bool  { return h.Publisher != nil }
func restarts(h *Harness) bool   { return h.Restart != nil }
func restorable(h *Harness) bool { _, ok := h.Open().(policy.Restorer); return ok }

// scene is a source and what is done to it. Its methods fail the test on an error.
type scene struct {
	*testing.T
	Harness

	ctx context.Context
}

// document returns a policy whose maximum cost tells it from others.
func document(maxCost int) []byte {
	return fmt.Appendf(nil, "version: 1\ndefault: free\ntiers: {free: {maxCost: %d}}\n", maxCost)
}

// revision returns a revision whose maximum cost is its number.
func revision(number uint64) *policy.Revision {
	return other(number, document(int(number)))
}

// other returns a revision with another document.
func other(number uint64, document []byte) *policy.Revision {
	return &policy.Revision{
		Number: number, Document: document, Hash: policy.HashOf(document), Author: "ada", Reason: "a test, “quoted”",
		Published: time.UnixMilli(1_790_000_000_123).UTC(),
	}
}

// put puts a revision into the source.
func (s *scene) put(r *policy.Revision) {
	s.Helper()
	s.ok(s.Put(r))
}

// newest asks a feed until it has made up its mind, which is at the second time at the latest.
func (s *scene) newest(feed policy.Feed, have policy.Head) *policy.Revision {
	s.Helper()
	r, err := feed.Newest(s.ctx, have)
	if errors.Is(err, policy.ErrNotYet) {
		r, err = feed.Newest(s.ctx, have)
	}
	s.ok(err)
	return r
}

// follow follows the source at short intervals.
func (s *scene) follow(cfg policy.Config) *policy.Follower {
	s.Helper()
	if cfg.Interval == 0 {
		cfg.Interval = 100 * time.Millisecond
	}
	cfg.Observe.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	if cfg.Observe.Observer == nil {
		cfg.Observe.Observer = event.NewLogger(cfg.Observe.Logger)
	}
	follower, err := policy.Follow(s.ctx, s.Open(), cfg)
	s.ok(err)
	s.Cleanup(func() { _ = follower.Close() })
	return follower
}

// maxCost is what tells the policies of these tests apart.
func maxCost(source tiers.Source) int {
	return int(source.Snapshot().Rules(tiers.Subject{Tenant: "x"}, tiers.Selection{}).MaxCost.Enforce)
}

// patience is for how long something that has to happen may take on a busy machine.
const patience = 30 * time.Second

// until waits for something that has to happen.
func (s *scene) until(what string, happened func() bool) {
	s.Helper()
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(patience)
	for !happened() {
		select {
		case <-ticker.C:
		case <-deadline:
			s.Fatalf("not within %v: %s", patience, what)
		}
	}
}

func (s *scene) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatalf("unexpected error: %v", err)
	}
}

func (s *scene) is(err, target error) {
	s.Helper()
	if !errors.Is(err, target) {
		s.Fatalf("the error is %v, want %v", err, target)
	}
}

func (s *scene) true(holds bool, what string, args ...any) {
	s.Helper()
	if !holds {
		s.Fatalf(what, args...)
	}
}
