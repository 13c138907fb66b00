package relay

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

func TestOfWhatStandsInThePlaceOfTheWitnessNoMoreIsReadThanItHas(t *testing.T) {
	t.Parallel()
	server, ctx := redistest.Start(t), t.Context()
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	t.Cleanup(func() { _ = client.Close() })
	w := &witness{client: client, key: "rl:main:relay", life: "here"}
	stands, err := w.stands(ctx)
	require.NoError(t, err)
	require.False(t, stands, "nobody has left one")
	require.NoError(t, w.begin(ctx))
	stands, err = w.stands(ctx)
	require.NoError(t, err)
	require.True(t, stands)

	sent := func() int {
		text, err := client.Info(ctx, "stats").Result()
		require.NoError(t, err)
		n, err := strconv.Atoi(regexp.MustCompile(`total_net_output_bytes:(\d+)`).FindStringSubmatch(text)[1])
		require.NoError(t, err)
		return n
	}
	const large = 1 << 20
	require.NoError(t, client.Append(ctx, w.key, strings.Repeat("x", large)).Err())
	before := sent()
	stands, err = w.stands(ctx)
	require.NoError(t, err)
	require.False(t, stands, "it only begins as the witness does")
	require.Less(t, sent()-before, large)
}
