package policy_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gqlgen-ratelimit/ratelimit/event"
	_ "github.com/gqlgen-ratelimit/ratelimit/internal/seed" // the same cases in every run
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// revisions is how many revisions a history has; rapid draws a hundred histories.
var revisions = flag.Int("revisions", 20, "revisions of each history that is compared")

// tooLarge is a revision that is valid but for the size of its document.
var tooLarge = other(1, append(document(1), bytes.Repeat([]byte("#"), tiers.DefaultMaxDocument)...))

// history is a follower, its feed, and what it should serve.
type history struct {
	*rapid.T

	feed     *memory
	follower *policy.Follower
	path     string
	keys     []ed25519.PublicKey
	// wants is the newest valid revision, nil for the first policy.
	wants *policy.Revision
	// fits says whether the revision that the feed has is valid in itself.
	fits bool
	// backup is a last good file of before.
	backup []byte
	// cost is the maximum cost of the next document.
	cost int
	// reading wakes the one who sees what is served while it changes.
	reading chan struct{}
	reader  sync.WaitGroup
}

func TestWhatIsServedIsAlwaysTheNewestValidRevision(t *testing.T) {
	t.Parallel()
	firstPolicy := first(t)
	folder := t.TempDir()
	histories := 0
	rapid.Check(t, func(rt *rapid.T) {
		histories++
		h := &history{T: rt, feed: &memory{}, path: filepath.Join(folder, "last-good"), cost: 1000}
		_ = os.Remove(h.path)
		if rapid.Bool().Draw(rt, "with keys") {
			h.keys = []ed25519.PublicKey{publicOf(keyOf(1))}
		}
		h.start(firstPolicy)
		defer func() { h.stop() }()
		for range *revisions {
			h.put()
			h.reading <- struct{}{}
			_ = h.follower.Reload(t.Context()) // What is refused is the point.
			h.compare("after a revision")
			if rapid.IntRange(0, 11).Draw(rt, "restart") == 0 {
				h.restart(firstPolicy)
				h.compare("after a restart")
			}
		}
	})
	t.Logf("%d revisions", histories**revisions)
}

// refusedCost is one that the check of the server refuses.
const refusedCost = 666

var errRefusedCost = errors.New("no such store")

// start starts a follower, and a reader that sees each policy it serves.
func (h *history) start(firstPolicy *tiers.Snapshot) {
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	follower, err := policy.Follow(h.Context(), h.feed, policy.Config{
		Interval: policy.None, LastGood: h.path, First: firstPolicy, Keys: h.keys,
		Observe: policy.ObserveConfig{Logger: quiet, Observer: event.NewLogger(quiet)},
	})
	require.NoError(h, err)
	h.follower = follower
	require.NoError(h, follower.Check(func(s *tiers.Snapshot) error {
		switch maxCost(s) {
		case refusedCost:
			return errRefusedCost
		case refusedCost + 1:
			panic("a check")
		}
		return nil
	}))
	h.reading = make(chan struct{}, 1)
	h.reader.Go(func() {
		last := uint64(0)
		for range h.reading {
			for range 20 {
				generation := follower.Snapshot().Generation()
				if generation < last {
					h.Errorf("revision %d was served after %d", generation, last)
					return
				}
				last = generation
			}
		}
	})
}

func (h *history) stop() {
	close(h.reading)
	h.reader.Wait()
	require.NoError(h, h.follower.Close())
}

func (h *history) compare(when string) {
	cost, number := 999, uint64(0)
	if h.wants != nil {
		number = h.wants.Number
		_, err := fmt.Sscanf(string(h.wants.Document), "version: 1\ndefault: free\ntiers: {free: {maxCost: %d}}", &cost)
		require.NoError(h, err)
	}
	require.Equal(h, number, h.follower.Status().Number, when)
	require.Equal(h, cost, maxCost(h.follower), when)
}

// put draws what the feed has next, and judges it by a rule of one line.
func (h *history) put() {
	holds := uint64(0)
	if h.wants != nil {
		holds = h.wants.Number
	}
	h.cost++
	r := other(holds+rapid.Uint64Range(1, 3).Draw(h.T, "newer by"), document(h.cost))
	h.fits = true
	kind := rapid.SampledFrom([]string{
		"valid", "valid", "valid", "older", "the same number", "invalid", "cut", "changed", "too large", "no number", "a huge number",
		"refused by a check", "panics in a check", "unsigned", "a stranger", "moved", "away", "empty", "panics", "says nothing",
	}).Draw(h.T, "kind")
	key := keyOf(1)
	switch kind {
	case "older":
		r.Number = rapid.Uint64Range(1, max(1, holds)).Draw(h.T, "older")
	case "the same number":
		r.Number = max(1, holds)
	case "invalid":
		r, h.fits = other(r.Number, document(-h.cost)), false
	case "too large":
		h.fits = false
		r.Document, r.Hash = tooLarge.Document, tooLarge.Hash
	case "no number":
		r.Number, h.fits = 0, false
	case "a huge number":
		r.Number, h.fits = policy.MaxNumber+rapid.Uint64Min(1).Draw(h.T, "beyond")%1000+1, false
	case "refused by a check":
		r, h.fits = other(r.Number, document(refusedCost)), false
	case "panics in a check":
		r, h.fits = other(r.Number, document(refusedCost+1)), false
	case "a stranger":
		key, h.fits = keyOf(2), h.keys == nil
	}
	r.Sign(key)
	h.tamper(kind, r)
	h.feed.set(r, nil)
	switch kind {
	case "away":
		h.feed.set(nil, errAway)
	case "empty":
		h.feed.set(nil, nil)
	case "panics":
		h.feed.answering = func(context.Context, policy.Head) (*policy.Revision, error) { panic("a feed") }
	case "says nothing":
		h.feed.answering = func(context.Context, policy.Head) (*policy.Revision, error) { return nil, nil }
	}
	h.fits = h.fits && h.feed.err == nil && h.feed.newest != nil && h.feed.answering == nil
	h.judge()
}

// tamper changes what was signed.
func (h *history) tamper(kind string, r *policy.Revision) {
	switch kind {
	case "cut":
		r.Document, h.fits = r.Document[:len(r.Document)-3], false
	case "changed":
		r.Document, h.fits = document(h.cost+1_000_000), false
	case "unsigned":
		r.Signature, h.fits = nil, h.keys == nil
	case "moved":
		r.Number++
		h.fits = h.keys == nil
	}
}

// judge is the rule.
func (h *history) judge() {
	if newest := h.feed.newest; h.fits && (h.wants == nil || newest.Number > h.wants.Number) {
		h.wants = newest
	}
}

// restart ends the follower and starts another one, on a disk that may have suffered.
func (h *history) restart(firstPolicy *tiers.Snapshot) {
	h.stop()
	var data []byte
	if h.wants != nil {
		var err error
		data, err = os.ReadFile(h.path)
		require.NoError(h, err)
	}
	disk := rapid.SampledFrom([]string{"as it was", "as it was", "half written", "changed", "gone", "of before", "foreign"}).Draw(h.T, "disk")
	switch {
	case disk == "gone":
		_ = os.Remove(h.path)
		h.wants = nil
	case data == nil || disk == "as it was":
	case disk == "half written":
		h.damage(data[:rapid.IntRange(0, len(data)-1).Draw(h.T, "length")])
	case disk == "changed":
		changed := bytes.Clone(data)
		changed[rapid.IntRange(0, len(data)-1).Draw(h.T, "where")] ^= 1 << rapid.IntRange(0, 7).Draw(h.T, "bit")
		read := &policy.Revision{}
		switch err := read.UnmarshalBinary(changed); {
		case err == nil && reflect.DeepEqual(read, h.wants):
			// A letter of another case says the same.
		case err == nil && h.keys == nil:
			// Who keeps no keys cannot see that a number or a name was changed.
			h.damage(nil)
		default:
			h.damage(changed)
		}
	case disk == "foreign":
		h.damage(document(3))
	case h.backup != nil:
		// Who restores a backup goes back to it.
		require.NoError(h, os.WriteFile(h.path, h.backup, 0o600))
		before := &policy.Revision{}
		require.NoError(h, before.UnmarshalBinary(h.backup))
		h.wants = before
	}
	h.backup = data
	h.judge()
	h.start(firstPolicy)
}

// damage writes what is no last good policy.
func (h *history) damage(data []byte) {
	require.NoError(h, os.WriteFile(h.path, data, 0o600))
	h.wants = nil
}
