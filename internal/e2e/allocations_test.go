//go:build !race

package e2e_test

import (
	"math"
	"net/http"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/throttle"
)

// TestTheLimiterAllocatesNoMoreOfARequestThanItDid bounds what the hooks and the Handler take from the heap for a request that is
// admitted by a store in this process under four limits. Whoever brings it down brings the numbers down; whoever makes
// it fail says in the commit what the memory is for. The race detector empties pools by chance.
func TestTheLimiterAllocatesNoMoreOfARequestThanItDid(t *testing.T) { //nolint:paralleltest // It counts what the process allocates.
	for _, test := range []struct {
		name           string
		configure      func(*ratelimit.Config)
		objects, bytes float64
	}{
		{"short", tellingOne, 16, 2880},
		{"short, without headers", func(cfg *ratelimit.Config) { cfg.Response.Headers = ratelimit.HeadersNone }, 14, 2820},
		{"full", tellingAll, 19, 4600},
		{"short, told to an observer once in a hundred", observedNowAndThen, 16, 2910},
		{"short, with refunds", refunding, 21, 3540},
		{"short, with a throttle", throttling, 16, 2910},
	} {
		with, without := hooks(t, test.configure)
		objects, bytes := allocated(with)
		bareObjects, bareBytes := allocated(without)
		t.Logf("%s: %.1f objects, %.0f bytes", test.name, objects-bareObjects, bytes-bareBytes)
		require.LessOrEqual(t, math.Round(objects-bareObjects), test.objects, test.name)
		require.LessOrEqual(t, bytes-bareBytes, test.bytes, test.name)
	}
}

// throttling has the server say to a throttle what it does.
func throttling(cfg *ratelimit.Config) {
	tellingOne(cfg)
	t, err := throttle.New(throttle.Config{Centre: throttle.NewMemory(nil)})
	if err != nil {
		panic(err)
	}
	cfg.Throttle.Throttle = t
}

// allocated returns how many objects, and how many bytes, a request takes from the heap: the least of several tries, since
// others may allocate beside it.
func allocated(handler http.Handler) (objects, bytes float64) {
	const requests = 500
	r, w := hookRequest(), discarding{http.Header{}}
	objects, bytes = math.Inf(1), math.Inf(1)
	for range 5 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range requests {
			clear(w.header)
			handler.ServeHTTP(w, r)
		}
		runtime.ReadMemStats(&after)
		objects = min(objects, float64(after.Mallocs-before.Mallocs)/requests)
		bytes = min(bytes, float64(after.TotalAlloc-before.TotalAlloc)/requests)
	}
	return objects, bytes
}
