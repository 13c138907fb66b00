package observe_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/gqlgen-ratelimit/ratelimit/internal/observe"
)

// Names of tenants as traffic asks for them: one hot tenant, few that are busy, and a million in any order.
func BenchmarkTenantName(b *testing.B) {
	zipf := rand.NewZipf(rand.New(rand.NewPCG(1, 2)), 1.1, 1, 1<<20-1)
	for _, traffic := range []struct {
		name string
		draw func() uint64
	}{
		{"one", func() uint64 { return 0 }},
		{"zipf", zipf.Uint64},
		{"uniform", func() uint64 { return rand.Uint64N(1 << 20) }},
	} {
		tenants := make([]string, 1<<16)
		for i := range tenants {
			tenants[i] = fmt.Sprint("tenant-", traffic.draw())
		}
		b.Run(traffic.name, func(b *testing.B) {
			names := observe.NewTenantNames(10)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for i := rand.IntN(len(tenants)); pb.Next(); i++ {
					names.Name(tenants[i%len(tenants)])
				}
			})
		})
	}
}

// The names follow the counters once in ten seconds, in a decision.
func BenchmarkTenantLook(b *testing.B) {
	names := observe.NewTenantNames(1000)
	for i := range 100_000 {
		names.Name(fmt.Sprint("tenant-", i))
	}
	for b.Loop() {
		names.Look()
	}
}
