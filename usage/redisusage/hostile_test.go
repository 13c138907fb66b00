package redisusage_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/usage"
	"github.com/gqlgen-ratelimit/ratelimit/usage/redisusage"
)

func TestForeignWritesAreLeftOut(t *testing.T) {
	t.Parallel()
	addr := redistest.Start(t).Addr
	client, test, ctx := redistest.Connect(t, addr), plain(t, addr), t.Context()
	hour := time.Now().UTC().Truncate(time.Hour)
	want := []usage.Refused{{Run: run, Tenant: "acme", Limit: "blocked", Hour: hour, N: 3}}
	require.NoError(t, store(ctx, client, run, want))
	hash := "rl:main:refused:" + strconv.FormatInt(hour.Unix()/3600, 10)
	for field, value := range map[string]string{
		"x": "1", "": "1", run: "1", run + ":": "1", run + ":-1:x": "1", run + ":9:x": "1", run + ":99999999999:x": "1", "norun:1:xy": "1",
		run + ":1:xy": "-1", run + ":1:xz": "no number", run + ":1:xa": "1" + strings.Repeat("0", 18) + "0", run + ":1:x" + strings.Repeat("y", 1<<16): "1",
		run + ":1:xb": strings.Repeat("x", 1<<20),
	} {
		require.NoError(t, test.HSet(ctx, hash, field, value).Err())
	}
	for key, value := range map[string]string{
		"rl:main:{x}:n2:": "", "rl:main:{x}:n2:-1": "", "rl:main:{x}:n2:1:u:exports": "", "rl:main:{a b}:n2:1": "", "rl:main:{~none}:n2:1": strings.Repeat("x", 1<<14),
		"rl:main:{x}:n2:99999999999": "", "rl:main:{}:l2:1": "", "rl:other:{x}:n2:1": "",
	} {
		require.NoError(t, test.Set(ctx, key, value, 0).Err())
	}
	require.NoError(t, test.LPush(ctx, "rl:main:{~list}:n2:1", "a list").Err())

	source := reader(t, client)
	require.Equal(t, want, all(t, func(cursor string) ([]usage.Refused, string, error) { return source.Refused(ctx, hour, cursor) }))
	require.Empty(t, all(t, func(cursor string) ([]bucket.UsageFound, string, error) { return source.Found(ctx, cursor) }))
	require.NoError(t, test.Set(ctx, hash, "no hash", 0).Err())
	_, _, err := source.Refused(ctx, hour, "")
	require.Error(t, err)
}

func TestRefusalsHaveALife(t *testing.T) {
	t.Parallel()
	addr := redistest.Start(t).Addr
	require.NoError(t, store(t.Context(), redistest.Connect(t, addr), run, []usage.Refused{{Tenant: "acme", Limit: "x", Hour: time.Now(), N: 1}}))
	keys, err := plain(t, addr).Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	require.Len(t, keys, 1)
	life, err := plain(t, addr).PTTL(t.Context(), keys[0]).Result()
	require.NoError(t, err)
	require.Greater(t, life, usage.CountsLife)
	require.LessOrEqual(t, life, usage.CountsLife+time.Hour)
}

func TestConfigMistakes(t *testing.T) {
	t.Parallel()
	_, err := redisusage.NewReader(redisusage.Config{Namespace: "a:b"}, nil)
	for _, field := range []string{"Client", "Namespace", "store"} {
		require.ErrorContains(t, err, field)
	}
}
