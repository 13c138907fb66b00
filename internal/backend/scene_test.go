package backend_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// clock is a time that tests set.
type clock struct{ ms atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.ms.Store(time.Now().Add(24 * time.Hour).UnixMilli())
	return c
}

func (c *clock) now() time.Time          { return time.UnixMilli(c.ms.Load()) }
func (c *clock) advance(d time.Duration) { c.ms.Add(d.Milliseconds()) }

func compile(t testing.TB, limits ...bucket.Limit) *bucket.Limits {
	t.Helper()
	compiled, err := bucket.Compile(limits...)
	require.NoError(t, err)
	return compiled
}

func points(n int64) bucket.Amounts {
	return bucket.Amounts{{Unit: bucket.Points, N: n}}
}
