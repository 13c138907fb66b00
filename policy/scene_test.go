package policy_test

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// document returns a policy whose maximum cost tells it from others.
func document(maxCost int) []byte {
	return fmt.Appendf(nil, "version: 1\ndefault: free\ntiers: {free: {maxCost: %d}}\n", maxCost)
}

// revision returns a revision whose maximum cost is its number.
func revision(number uint64) *policy.Revision { return other(number, document(int(number))) }

// other returns a revision with another document.
func other(number uint64, document []byte) *policy.Revision {
	return &policy.Revision{Number: number, Document: document, Hash: policy.HashOf(document)}
}

// signed returns the revision with a signature.
func signed(r *policy.Revision, key ed25519.PrivateKey) *policy.Revision {
	r.Sign(key)
	return r
}

// keyOf returns a key, the same for the same number.
func keyOf(n byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed([]byte(strings.Repeat(string(rune('a'+n)), ed25519.SeedSize)))
}

func publicOf(key ed25519.PrivateKey) ed25519.PublicKey {
	return key.Public().(ed25519.PublicKey)
}

func maxCost(source tiers.Source) int {
	return int(source.Snapshot().Rules(tiers.Subject{Tenant: "x"}, tiers.Selection{}).MaxCost.Enforce)
}

// first is the policy of maximum cost 999.
func first(t testing.TB) *tiers.Snapshot {
	t.Helper()
	snapshot, err := tiers.Load(document(999), 0)
	require.NoError(t, err)
	return snapshot
}

// memory is a feed whose test says what it answers. It works in bubbles of synctest.
type memory struct {
	mu     sync.Mutex
	newest *policy.Revision
	err    error
	// answering replaces the answer where it is set.
	answering func(ctx context.Context, have policy.Head) (*policy.Revision, error)
	asked     []time.Time
	restored  []*policy.Revision
	hints     chan struct{}
	// standing is closed for subscriptions to stand. Nil means that there are no hints.
	standing chan struct{}
}

func (m *memory) Newest(ctx context.Context, have policy.Head) (*policy.Revision, error) {
	m.mu.Lock()
	m.asked = append(m.asked, time.Now())
	newest, err, answering := m.newest, m.err, m.answering
	m.mu.Unlock()
	switch {
	case answering != nil:
		return answering(ctx, have)
	case err != nil:
		return nil, err
	case newest == nil:
		return nil, policy.ErrEmpty
	case newest.Head() == have:
		return nil, nil
	}
	own := *newest
	return &own, nil
}

func (m *memory) Hints(ctx context.Context, wake func()) error {
	if m.standing == nil {
		return policy.ErrNoHints
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-m.standing:
	}
	wake()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case _, open := <-m.hints:
			if !open {
				return policy.ErrEmpty
			}
			wake()
		}
	}
}

func (m *memory) Restore(_ context.Context, r *policy.Revision) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.restored = append(m.restored, r)
	return m.err
}

// set says what the feed answers from now on.
func (m *memory) set(r *policy.Revision, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.newest, m.err, m.answering = r, err, nil
}

func (m *memory) questions() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.asked)
}

// given returns what it was given back.
func (m *memory) given() []*policy.Revision {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.restored)
}

// times returns when it was asked.
func (m *memory) times() []time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.asked)
}

// told keeps what an observer was told, and what was logged.
type told struct {
	mu     sync.Mutex
	events []event.Event
	log    strings.Builder
}

func (o *told) Observe(_ context.Context, e event.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.events = append(o.events, e)
}

func (o *told) Write(line []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.log.Write(line)
}

func (o *told) said() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.log.String()
}

// short is what was told, a word or two for each event.
func (o *told) short() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var short []string
	for _, e := range o.events {
		switch e := e.(type) {
		case event.PolicyApplied:
			again := ""
			if e.Again {
				again = " again"
			}
			short = append(short, fmt.Sprintf("applied %d of %s%s", e.Revision, e.Origin, again))
		case event.PolicyRefused:
			short = append(short, fmt.Sprintf("refused %d %s", e.Revision, e.Cause))
		case event.PolicyState:
			unsaved := ""
			if e.Unsaved != "" {
				unsaved = " unsaved"
			}
			short = append(short, fmt.Sprintf("%s to %s%s", e.From, e.To, unsaved))
		}
	}
	return short
}

func (o *told) configure(cfg *policy.Config) {
	cfg.Observe.Logger = slog.New(slog.NewTextHandler(o, nil))
	if cfg.Observe.Observer == nil {
		cfg.Observe.Observer = o
	}
}

// follow starts a follower that ends with the test, and returns what it tells.
func follow(t testing.TB, feed policy.Feed, cfg policy.Config) (*policy.Follower, *told) {
	t.Helper()
	o := &told{}
	o.configure(&cfg)
	f, err := policy.Follow(t.Context(), feed, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f, o
}

// pass lets time pass in a bubble.
func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // In a synctest bubble: no time passes.
	synctest.Wait()
}
