package observe_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/internal/observe"
)

// clock is the time of a client that is refused.
type clock struct {
	early *observe.Early
	now   time.Time
}

func newClock() *clock { return &clock{observe.NewEarly(), time.Unix(1_700_000_000, 0)} }

func (c *clock) refused(user string, after, retryAfter time.Duration) bool {
	c.now = c.now.Add(after)
	return c.early.Refused("tenant", user, c.now, retryAfter)
}

func TestAClientThatIsRefusedBeforeItWasToComeBackHasRetriedEarly(t *testing.T) {
	t.Parallel()
	c := newClock()
	require.False(t, c.refused("a", 0, 10*time.Second), "nobody has told it before")
	require.True(t, c.refused("a", 9*time.Second, time.Second))
	require.False(t, c.refused("a", 1*time.Second, 10*time.Second), "its time is over")
	require.True(t, c.refused("a", 2*time.Second, 10*time.Second), "it was told again")
}

func TestWhatWasUnderWayWhenItsClientWasRefusedIsNoRetry(t *testing.T) {
	t.Parallel()
	c := newClock()
	require.False(t, c.refused("a", 0, 10*time.Second))
	require.False(t, c.refused("a", 999*time.Millisecond, 10*time.Second))
	require.True(t, c.refused("a", time.Millisecond, 10*time.Second))
}

func TestAnotherUserOfTheTenantWasNotTold(t *testing.T) {
	t.Parallel()
	c := newClock()
	require.False(t, c.refused("a", 0, 10*time.Second))
	require.False(t, c.refused("b", 2*time.Second, 10*time.Second))
	require.False(t, c.early.Refused("tenanta", "", c.now, time.Minute), "names do not run together")
}

func TestWhoRetriesWithinALongWaitIsFoundAgainAndAgain(t *testing.T) {
	t.Parallel()
	c := newClock()
	require.False(t, c.refused("a", 0, 30*24*time.Hour))
	found := 0
	for range 60 {
		if c.refused("a", 10*time.Second, 30*24*time.Hour) {
			found++
		}
	}
	require.Equal(t, 58, found, "one in five minutes is where it is told again")
}

func TestAFloodOfClientsIsRememberedInAFixedRoomAndCountsNobodyTooMuch(t *testing.T) {
	t.Parallel()
	c := newClock()
	for n := range 200_000 {
		require.False(t, c.refused(fmt.Sprint(n), 0, time.Hour))
	}
	require.LessOrEqual(t, c.early.Room(), 65_536)
}
