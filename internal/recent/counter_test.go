package recent_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/internal/recent"
)

var begin = time.Unix(1_800_000_000, 0)

func TestAKeyIsCountedUntilItsTimeIsOver(t *testing.T) {
	t.Parallel()
	c := recent.NewCounter[string](64)
	count := func(key string, after time.Duration) (int, time.Duration) {
		return c.Count(key, begin.Add(after), time.Minute)
	}
	for i := range 3 {
		n, left := count("a", time.Duration(i)*time.Second)
		require.Equal(t, i+1, n)
		require.Equal(t, time.Minute-time.Duration(i)*time.Second, left, "counted from the first")
	}
	n, _ := count("b", 0)
	require.Equal(t, 1, n)
	n, left := count("a", time.Minute)
	require.Equal(t, 1, n)
	require.Equal(t, time.Minute, left)
}

func TestMoreKeysThanSlotsForgetTheOneThatWasNotCountedForLongest(t *testing.T) {
	t.Parallel()
	c := recent.NewCounter[int](4)
	for key := range 5 {
		c.Count(key, begin.Add(time.Duration(key)), time.Minute)
	}
	n, _ := c.Count(4, begin.Add(5), time.Minute)
	require.Equal(t, 2, n)
	n, _ = c.Count(0, begin.Add(6), time.Minute)
	require.Equal(t, 1, n, "it made room for the fifth")
}

func TestAKeyIsCountedByMoreThanOneOnlyWhereItFits(t *testing.T) {
	t.Parallel()
	c := recent.NewCounter[string](64)
	fits := func(key string, n, most int, after time.Duration) bool {
		return c.Fits(key, n, most, begin.Add(after), time.Minute)
	}
	require.True(t, fits("a", 60, 100, 0))
	require.False(t, fits("a", 41, 100, 0))
	require.True(t, fits("a", 40, 100, 0), "what did not fit was not counted")
	require.False(t, fits("a", 1, 100, 59*time.Second))
	require.False(t, fits("a", 1, 50, 59*time.Second), "the bound may fall")
	require.False(t, fits("b", 101, 100, 0), "not even at first")
	require.False(t, fits("b", math.MaxInt, math.MaxInt-1, 0))
	require.True(t, fits("b", math.MaxInt, math.MaxInt, 0))
	require.True(t, fits("a", 100, 100, time.Minute), "counted from the first")
}

func TestACounterGrowsWithItsKeysAndForgetsNoneUntilItIsAsLargeAsItMayBe(t *testing.T) {
	bytes, _ := growth(func() any { return recent.NewCounter[int](1 << 20) })
	require.Less(t, bytes, 16<<10, "before it counts")
	c := recent.NewCounter[int](1 << 20)
	for round := range 3 {
		for key := range 10_000 {
			n, _ := c.Count(key, begin.Add(time.Duration(round)), time.Minute)
			require.Equal(t, round+1, n)
		}
	}
}
