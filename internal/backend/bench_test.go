package backend_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/backend"
)

// elsewhere is a store that is not in the memory of the process, as far as a gate knows.
type elsewhere struct{ *bucket.Memory }

// admitting is a store that takes no time.
type admitting struct{ *bucket.Memory }

func (admitting) Take(context.Context, bucket.Take) (bucket.Result, error) {
	return bucket.Result{Verdict: bucket.Admitted}, nil
}

// BenchmarkGate measures what a memory of refusals and a bulkhead add to a take, before a store that takes no
// time: of a tenant that is never refused, while nobody and while thousands are, and of one that is.
func BenchmarkGate(b *testing.B) {
	ctx := context.Background()
	limits := compile(b,
		bucket.Limit{Name: "second", Capacity: 1 << 30, Refill: 1 << 20, Period: time.Second},
		bucket.Limit{Name: "minute", Capacity: 1 << 30, Refill: 1 << 20, Period: time.Minute},
		bucket.Limit{Name: "hour", Capacity: 1 << 30, Refill: 1 << 20, Period: time.Hour},
		bucket.Limit{Name: "day", Capacity: 1 << 30, Refill: 1 << 20, Period: 24 * time.Hour})
	take := bucket.Take{
		Tenant: "acme", Buckets: []bucket.Bucket{{Limits: limits}}, Amounts: points(1),
		States: make([]bucket.LimitState, 4),
	}
	refused := take
	refused.Tenant, refused.Amounts = "refused", points(1<<30+1)
	store := admitting{bucket.NewMemory(bucket.MemoryConfig{})}
	empty := backend.NewGate(store, backend.GateConfig{MaxConcurrent: backend.None})
	full := backend.NewGate(elsewhere{bucket.NewMemory(bucket.MemoryConfig{})}, backend.GateConfig{RefusalAge: time.Minute, MaxConcurrent: backend.None})
	for i := range 10_000 {
		other := refused
		other.Tenant = fmt.Sprint("refused", i%5000)
		_, _, err := full.Take(ctx, other, backend.Caller{})
		require.NoError(b, err)
	}
	full.SetStore(store)
	refused.Tenant = "refused0"
	_, origin, err := full.Take(ctx, refused, backend.Caller{})
	require.NoError(b, err)
	require.NotEqual(b, backend.FromStore, origin)
	bulkhead := backend.NewGate(store, backend.GateConfig{RefusalAge: backend.None})
	for _, bench := range []struct {
		name string
		gate *backend.Gate
		take bucket.Take
	}{
		{"the store alone", backend.NewGate(store, backend.GateConfig{RefusalAge: backend.None, MaxConcurrent: backend.None}), take},
		{"never refused, empty memory", empty, take},
		{"never refused, full memory", full, take},
		{"refused from memory", full, refused},
		{"bulkhead", bulkhead, take},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := bench.gate.Take(ctx, bench.take, backend.Caller{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
