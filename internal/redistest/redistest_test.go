package redistest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

func TestAServerOlderThanTheTestsNeedIsNamed(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"Redis server v=7.0.0 sha=00000000:0 malloc=libc bits=64 build=1\n",
		"Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=1\n",
		"Valkey server v=8.1.0 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=1\n",
		"Redis server v=10.0.1",
	} {
		require.NoError(t, redistest.CheckVersion(text))
	}
	err := redistest.CheckVersion("Redis server v=6.2.14 sha=00000000:0 malloc=jemalloc-5.1.0 bits=64 build=1\n")
	require.ErrorContains(t, err, "version 6.2.14")
	require.ErrorContains(t, err, "Redis 7")
	require.ErrorContains(t, redistest.CheckVersion("something else\n"), `unknown version "something else"`)
}
