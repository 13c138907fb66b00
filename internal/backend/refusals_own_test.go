package backend_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/backend"
)

func TestAGateJudgesATakeByWhatItAsksOfEachOwner(t *testing.T) {
	t.Parallel()
	c := newGated(t, backend.GateConfig{})
	limits := compile(t, bucket.Limit{Name: "minute", Unit: bucket.Requests, Capacity: 5, Period: time.Minute})
	take := func(calls int64, room bucket.Amounts) bucket.Take {
		login := bucket.Bucket{Owner: bucket.Owner{Level: bucket.Operation, Name: "Mutation.login"}, Limits: limits}
		login.Amounts = append(room[:0], bucket.Amount{Unit: bucket.Requests, N: calls})
		return bucket.Take{Buckets: []bucket.Bucket{login}, Amounts: bucket.Amounts{{Unit: bucket.Requests, N: 1}}}
	}
	c.take(take(3, nil))
	room := make(bucket.Amounts, 1)
	require.Equal(t, bucket.Limited, c.take(take(4, room)).Verdict)
	asked := c.asked(func() {
		room[0].N = 1 // The caller uses its room again.
		for range 100 {
			again := c.take(take(4, nil))
			require.Equal(t, bucket.Limited, again.Verdict)
			require.Equal(t, backend.FromMemory, again.Origin)
			require.EqualValues(t, 4, again.Limits[0].Asked)
			require.Equal(t, 24*time.Second, again.RetryAfter)
		}
	})
	require.Zero(t, asked)
	require.Equal(t, bucket.Admitted, c.take(take(2, nil)).Verdict, "what is left suffices for fewer calls")
}
