package bucket_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

func TestTheEstimateOfTheServersClockIsKeptUntilAReplyContradictsIt(t *testing.T) {
	t.Parallel()
	estimate, start := bucket.NewOffset()
	after := func(ms int64) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	require.Zero(t, estimate.ApplyBefore(after(100)), "nothing is known")
	for _, reply := range []struct {
		what                string
		sent, received, now int64
		want                int64
	}{
		{"the first reply counts", 10, 10, 1_000_010, 1_000_100},
		{"a slow one says less and is passed over", 20, 40, 1_000_030, 1_000_100},
		{"one that is too late for the estimate moves it forward", 20, 40, 1_005_030, 1_005_090},
		{"one that is too early for it moves it back", 20, 40, 1_000_030, 1_000_090},
		{"the ends of what is possible contradict nothing", 20, 40, 1_000_009, 1_000_090},
		{"a millisecond beyond does", 20, 40, 1_000_008, 1_000_068},
	} {
		estimate.Learn(after(reply.sent), after(reply.received), reply.now)
		require.Equal(t, reply.want, estimate.ApplyBefore(after(100)), reply.what)
	}
}
