package bucket_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// processorTime is what the process has taken so far.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// heap is what is in use, in bytes and objects, after what is not has been collected.
func heap() (inUse, objects int64) {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc), int64(stats.HeapObjects)
}

// tenantNames are those of many tenants, without a pointer for each.
type tenantNames string

const tenantNameSize = len("tenant-000000")

func newTenantNames(n int) tenantNames {
	var all strings.Builder
	for i := range n {
		fmt.Fprintf(&all, "tenant-%06d", i)
	}
	return tenantNames(all.String())
}

func (n tenantNames) name(i int) string {
	return string(n[i*tenantNameSize : (i+1)*tenantNameSize])
}

// BenchmarkMemoryTenants has takes of four limits from as many tenants in any order, in processor time: of those that are known, and of
// new ones, and what the tenants take of the memory and of a collection of garbage.
func BenchmarkMemoryTenants(b *testing.B) {
	var slow []bucket.Limit
	for _, name := range []string{"a", "b", "c", "d"} {
		// Nothing that was taken comes back meanwhile.
		slow = append(slow, bucket.Limit{Name: name, Capacity: 1 << 20, Refill: 1, Period: 4 * time.Minute})
	}
	for _, n := range []int{1, 10_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			limits := busyLimits(b)
			if n > 1 {
				limits = compile(b, slow...)
			}
			names := newTenantNames(n)
			order := rand.New(rand.NewPCG(1, 2)).Perm(n)
			// The names that are asked for are no part of the store.
			inUse, objects := heap()
			store := bucket.NewMemory(bucket.MemoryConfig{MaxEntries: 2_000_000, MaxBytes: 1 << 30})
			take := bucket.Take{Buckets: []bucket.Bucket{{Limits: limits}}, Amounts: points(1), States: make([]bucket.LimitState, 4)}
			call := func(name string) {
				take.Tenant = name
				if _, err := store.Take(b.Context(), take); err != nil {
					b.Fatal(err)
				}
			}
			start := processorTime()
			for i := range n {
				call(names.name(i))
			}
			fresh := processorTime() - start
			more, moreObjects := heap()
			start = processorTime()
			runtime.GC()
			collection := processorTime() - start
			b.ReportAllocs()
			b.ResetTimer()
			start = processorTime()
			i := 0
			for b.Loop() {
				if i++; i >= n {
					i = 0
				}
				call(names.name(order[i]))
			}
			b.ReportMetric(float64(processorTime()-start)/float64(b.N), "cpu-ns/op")
			b.ReportMetric(float64(fresh)/float64(n), "cpu-ns/tenant")
			b.ReportMetric(float64(more-inUse)/float64(n), "B/tenant")
			b.ReportMetric(float64(moreObjects-objects), "objects")
			b.ReportMetric(float64(collection.Microseconds())/1e3, "cpu-ms/GC")
			require.Equal(b, n, store.Entries())
		})
	}
}
