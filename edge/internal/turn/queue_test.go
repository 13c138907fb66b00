package turn_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/edge/internal/turn"
)

// line is a queue, and what it has answered.
type line struct{ *turn.Queue }

// begin asks for a turn of a client, and returns where the answer comes.
func (l line) begin(t *testing.T, client string) <-chan *turn.Turn {
	t.Helper()
	answers := make(chan *turn.Turn, 1)
	go func() { answers <- l.Enter(t.Context(), [3]string{client}) }()
	synctest.Wait()
	return answers
}

func TestTheQueueIsBoundedAndHalfOfItForOneClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := line{turn.New(2, 4, time.Second)}
		for _, runs := range []string{"a", "b"} {
			require.NotNil(t, <-l.begin(t, runs))
		}
		require.Empty(t, l.begin(t, "a"), "it waits")
		require.Empty(t, l.begin(t, "a"), "it waits")
		require.Equal(t, 2, l.Waits())
		require.Nil(t, <-l.begin(t, "a"), "half of the queue is its own")
		require.Equal(t, 2, l.Waits(), "at once")
		require.Empty(t, l.begin(t, "c"), "it waits")
		require.Empty(t, l.begin(t, "c"), "it waits")
		require.Empty(t, l.begin(t, "d"), "the last of those who have most waiting gives way")
		require.Nil(t, <-l.begin(t, "d"), "the queue is full")
		require.Equal(t, 2, l.Runs())
		require.Equal(t, 4, l.Waits())
	})
}

func TestWhoFillsTheQueueGivesWayToWhoHasFewerWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := line{turn.New(2, 6, 5*time.Second)}
		require.NotNil(t, <-l.begin(t, "a"))
		require.NotNil(t, <-l.begin(t, "b"))
		var first, second [3]<-chan *turn.Turn
		for i := range first {
			first[i], second[i] = l.begin(t, "a"), l.begin(t, "b")
		}
		honest := l.begin(t, "c")
		require.Empty(t, honest, "it waits")
		require.Nil(t, <-second[2], "the last that came")
		require.Empty(t, first[2], "the others still wait")
	})
}

func TestTheNextTurnIsOfWhoHasFewestUnderWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := line{turn.New(6, 6, 5*time.Second)}
		var last *turn.Turn
		for _, runs := range []string{"a", "a", "b", "b", "d", "d"} {
			last = <-l.begin(t, runs)
			require.NotNil(t, last)
		}
		busy, honest := l.begin(t, "a"), l.begin(t, "c")
		l.Leave(last)
		require.NotNil(t, <-honest, "although it came later")
		require.Empty(t, busy, "it waits")
	})
}

func TestATurnThatIsOverCannotEndAnother(t *testing.T) {
	t.Parallel()
	l := turn.New(1, 0, time.Second)
	first := l.Enter(t.Context(), [3]string{"a"})
	l.Leave(first)
	require.NotNil(t, l.Enter(t.Context(), [3]string{"a"}))
	l.Leave(first)
	require.Nil(t, l.Enter(t.Context(), [3]string{"b"}))
}

func TestATurnOfWhichNothingMoreIsHeardEndsByItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := turn.New(1, 0, time.Second)
		require.NotNil(t, l.Enter(t.Context(), [3]string{"a"}))
		require.Nil(t, l.Enter(t.Context(), [3]string{"b"}))
		time.Sleep(11 * time.Second) //nolint:forbidigo // in a bubble
		require.NotNil(t, l.Enter(t.Context(), [3]string{"b"}))
	})
}
