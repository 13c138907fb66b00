package recent_test

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/internal/recent"
)

func always() bool { return true }

// growth returns the bytes and objects of the heap that the result of a function keeps alive.
func growth(build func() any) (bytes, objects int) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&before)
	kept := build()
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(kept)
	return int(after.HeapAlloc) - int(before.HeapAlloc), int(after.HeapObjects) - int(before.HeapObjects)
}

func TestAKeyOfASetIsRememberedUntilItsTimeIsOver(t *testing.T) {
	t.Parallel()
	s := recent.NewSet[string, int](0, begin)
	add := func(key int, after, holds time.Duration) recent.Verdict {
		return s.Add("a", key, begin.Add(after), holds, always)
	}
	require.Equal(t, recent.Added, add(1, 0, time.Minute))
	require.Equal(t, recent.Known, add(1, time.Minute-time.Second, time.Minute))
	require.Equal(t, recent.Added, add(2, time.Minute-time.Second, time.Minute))
	require.Equal(t, recent.Added, add(1, time.Minute, time.Minute), "counted from the first")
	require.Equal(t, recent.Added, add(3, 0, 0))
	require.Equal(t, recent.Known, add(3, 0, 0), "an eighth of a second is the least")
	require.Equal(t, recent.Added, add(4, 0, math.MaxInt64), "beyond any number of ticks")
	require.Equal(t, recent.Known, add(4, 10*365*24*time.Hour, time.Second))
	require.Equal(t, recent.Added, add(5, -time.Hour, time.Hour), "a clock that was set back")
}

func TestAKeyThatNobodyWantsIsNotRemembered(t *testing.T) {
	t.Parallel()
	s := recent.NewSet[string, int](0, begin)
	never := func() bool { return false }
	require.Equal(t, recent.Declined, s.Add("a", 1, begin, time.Minute, never))
	require.Equal(t, recent.Added, s.Add("a", 1, begin, time.Minute, always))
	require.Equal(t, recent.Known, s.Add("a", 1, begin, time.Minute, never), "nobody is asked about what is known")
}

func TestAFullSetSaysSoAndForgetsNothingThatHolds(t *testing.T) {
	t.Parallel()
	s := recent.NewSet[int, int](1<<14, begin)
	added := 0
	for key := range 1 << 16 {
		if s.Add(key, key, begin, time.Minute, always) == recent.Added {
			added++
			require.Equal(t, recent.Known, s.Add(key, key, begin, time.Minute, always))
		}
	}
	require.Greater(t, added, 1<<14*3/4)
	require.LessOrEqual(t, added, 1<<14)
	known := 0
	for key := range 1 << 16 {
		if s.Add(key, key, begin.Add(time.Second), time.Minute, func() bool { return false }) == recent.Known {
			known++
		}
	}
	require.GreaterOrEqual(t, known, added)
	require.LessOrEqual(t, known, added+2, "two keys of one hash pass for the same")
	require.Equal(t, recent.Added, s.Add(1, -1, begin.Add(time.Minute), time.Minute, always), "what is past makes room")
}

func TestAGroupThatFillsItsPartLeavesRoomForOthers(t *testing.T) {
	t.Parallel()
	s := recent.NewSet[string, int](1<<14, begin)
	full := 0
	for key := range 1 << 14 {
		if s.Add("flood", key, begin, time.Hour, always) == recent.Full {
			full++
		}
	}
	require.Greater(t, full, 1<<13)
	groups := 0
	for i := range 1000 {
		if s.Add(fmt.Sprint("group-", i), -i-1, begin, time.Hour, always) == recent.Added {
			groups++
		}
	}
	require.Greater(t, groups, 990, "an eighth of a part is free for seven in eight of the groups that share it")
}

func TestASetTakesAFewBytesAKeyAndNoObject(t *testing.T) {
	const keys = 200_000
	bytes, objects := growth(func() any {
		s := recent.NewSet[int, int](1<<20, begin)
		for key := range keys {
			require.NotEqual(t, recent.Full, s.Add(key, key, begin, time.Hour, always))
		}
		return s
	})
	require.Less(t, bytes, 24*keys)
	require.Less(t, objects, 1000)
}

func BenchmarkSetKnown(b *testing.B) {
	s := recent.NewSet[int, int](1<<18, begin)
	for key := range 100_000 {
		s.Add(key, key, begin, time.Hour, always)
	}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for key := 0; pb.Next(); key++ {
			s.Add(key%100_000, key%100_000, begin, time.Hour, always)
		}
	})
}
