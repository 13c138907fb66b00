package directory_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/policy/directory"
)

// hinting is a source with hints, of which it counts the questions about changes.
type hinting struct {
	*source

	hints chan struct{}
	asks  atomic.Int64
	// none says that it has none after all.
	none bool
	made atomic.Int64
}

func (h *hinting) Changes(ctx context.Context, since directory.Mark) (directory.Page, error) {
	h.asks.Add(1)
	return h.source.Changes(ctx, since)
}

func (h *hinting) Hints(ctx context.Context, wake func()) error {
	h.made.Add(1)
	if h.none {
		return directory.ErrNoHints
	}
	wake()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case _, open := <-h.hints:
			if !open {
				return errAway
			}
			wake()
		}
	}
}

func TestAHintIsEnoughAndManyHintsAskNoMoreThanTenTimesASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		from := &hinting{source: newSource(), hints: make(chan struct{})}
		from.write(t, "acme", `{"tier":"pro"}`)
		d := open(t, from, directory.Config{Interval: time.Minute})
		pass(time.Second)
		require.EqualValues(t, 100, of(t, d, "acme"))
		asked, known := from.asks.Load(), 100
		from.write(t, "acme", raised)
		pass(time.Second)
		if from.asks.Load() > asked {
			// The first question of the interval comes anywhere in it.
			known = 700
		}
		require.EqualValues(t, known, of(t, d, "acme"), "nobody has said so")
		asked = from.asks.Load()
		from.hints <- struct{}{}
		pass(time.Millisecond)
		require.Greater(t, from.asks.Load(), asked)
		require.EqualValues(t, 700, of(t, d, "acme"))

		before := from.asks.Load()
		for range 10_000 {
			from.hints <- struct{}{}
			pass(100 * time.Microsecond)
		}
		require.LessOrEqual(t, from.asks.Load()-before, int64(12))
		require.GreaterOrEqual(t, from.asks.Load()-before, int64(9))

		// What was written while no subscription stood is read when it does again.
		pass(time.Second)
		from.write(t, "acme", `{"tier":"pro"}`)
		close(from.hints)
		pass(time.Second)
		require.EqualValues(t, 100, of(t, d, "acme"))
		require.Greater(t, from.made.Load(), int64(1))
	})
}

func TestASourceThatSaysThatItHasNoHintsIsNotAskedForThemAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		from := &hinting{source: newSource(), none: true}
		open(t, from, directory.Config{})
		pass(time.Hour)
		require.EqualValues(t, 1, from.made.Load())
	})
}
