package redisdigest_test

import (
	"bytes"
	"compress/flate"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

// TestAFewBytesInRedisAreNotManyInWhoReadsThem is not parallel: it looks at the memory of the process.
func TestAFewBytesInRedisAreNotManyInWhoReadsThem(t *testing.T) {
	server := redistest.Start(t)
	test := plain(t, server.Addr)
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.BestCompression)
	require.NoError(t, err)
	_, err = w.Write([]byte(`{"version":1,"from":"2026-11-22T02:00:00Z","to":"2026-11-22T02:00:01Z","records":[{}` + strings.Repeat(",{}", 1023) + `]}`))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	const parts = 1024
	all := make([]any, parts)
	for i := range all {
		all[i] = packed.Bytes()
	}
	const run = "0000000000000001"
	require.NoError(t, test.ZAdd(t.Context(), "rl:main:digest", redis.Z{Score: 1, Member: run}).Err())
	require.NoError(t, test.RPush(t.Context(), "rl:main:digest:{"+run+"}:records", all...).Err())
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, n := heap(), 0
	for chunk, err := range reader(t, redistest.Connect(t, server.Addr)).Chunks(t.Context(), time.Time{}) {
		require.NoError(t, err)
		require.Len(t, chunk.Records, 1024)
		if n++; n == 1 {
			require.Less(t, heap()-before, uint64(100<<20))
		}
	}
	require.Equal(t, parts, n)
}
