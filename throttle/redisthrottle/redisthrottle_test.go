package redisthrottle_test

import (
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/throttle"
	"github.com/gqlgen-ratelimit/ratelimit/throttle/redisthrottle"
	"github.com/gqlgen-ratelimit/ratelimit/throttle/throttletest"
)

func TestTheCentreInRedisKeepsTheContract(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := redistest.Plain(t, server.Addr)
	var namespaces atomic.Int64
	throttletest.Run(t, func(t *testing.T, clock *throttletest.Clock) throttle.Centre {
		t.Helper()
		centre, err := redisthrottle.New(redisthrottle.Config{Client: client, Namespace: "n" + strconv.FormatInt(namespaces.Add(1), 10)})
		require.NoError(t, err)
		require.NoError(t, redisthrottle.SetClock(centre, clock.Now))
		return centre
	})
}
