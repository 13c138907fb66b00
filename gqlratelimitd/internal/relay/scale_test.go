package relay_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

// BenchmarkAFlushOf100000TenantsAnd10000Overrides says how long it takes until a Redis that was flushed has everything again, when the
// records of tenants are there, and how much memory the process has taken at most.
func BenchmarkAFlushOf100000TenantsAnd10000Overrides(b *testing.B) {
	s := newScene(b)
	const tenants, overrides, batch = 100_000, 10_000, 1000
	for from := 0; from < tenants; from += batch {
		s.change(func(tx *store.Tx) error {
			for i := from; i < from+batch; i++ {
				name := fmt.Sprint("tenant-", i)
				if err := tx.PutTenant(&store.Tenant{Name: name, Record: []byte(`{"tier":"pro","limits":{"minute":{"capacity":500,"per":"minute"}}}`)}, 0); err != nil {
					return err
				}
				if i >= overrides {
					continue
				}
				o := &store.Override{Tenant: name, Override: bucket.Override{Limit: "minute", Capacity: 7, Expires: later, Actor: "ada", Reason: "why"}}
				if err := tx.PutOverride(o, 0); err != nil {
					return err
				}
			}
			return nil
		})
	}
	s.publish(1)
	r, _ := s.start(s.config())
	swept := func(after time.Time) {
		require.Eventually(b, func() bool { return r.Status().Swept.After(after) }, 5*patience, tick)
	}
	swept(time.Time{})
	b.ResetTimer()
	most := uint64(0)
	for b.Loop() {
		begun := time.Now()
		require.NoError(b, s.client.FlushAll(b.Context()).Err())
		require.Eventually(b, func() bool { return s.record("tenant-99999") != "" }, 20*patience, tick)
		b.ReportMetric(time.Since(begun).Seconds(), "s-to-tenants")
		require.Eventually(b, func() bool {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapAlloc)
			return r.Status().Swept.After(begun)
		}, 20*patience, tick)
	}
	b.ReportMetric(float64(most)/(1<<20), "MiB-at-most")
}
