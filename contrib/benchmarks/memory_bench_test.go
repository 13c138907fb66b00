package main

import (
	"context"
	"testing"

	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/stretchr/testify/require"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	"github.com/ulule/limiter/v3"
	ulule "github.com/ulule/limiter/v3/drivers/store/memory"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// BenchmarkDecisionsInMemory has one caller decide about one tenant over and over, and about 10,000 tenants in turn, with each
// feature of the memory store and with other libraries.
func BenchmarkDecisionsInMemory(b *testing.B) {
	decisions, err := memoryDecisions(b.Context())
	require.NoError(b, err)
	for _, d := range decisions {
		for _, tenant := range tenantNames {
			// A new tenant costs more than a known one.
			require.NoError(b, d.decide(b.Context(), tenant))
		}
		b.Run(d.name+"/one tenant", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				require.NoError(b, d.decide(b.Context(), "tenant"))
			}
		})
		b.Run(d.name+"/in turn", func(b *testing.B) {
			b.ReportAllocs()
			k := 0
			for b.Loop() {
				k++
				require.NoError(b, d.decide(b.Context(), tenantNames[k%tenants]))
			}
		})
	}
}

func memoryDecisions(ctx context.Context) ([]named, error) {
	ours, err := ourMemoryDecisions()
	if err != nil {
		return nil, err
	}
	gcraStore, err := memstore.NewCtx(0)
	if err != nil {
		return nil, err
	}
	gcra, err := throttled.NewGCRARateLimiterCtx(gcraStore, roomyQuota)
	if err != nil {
		return nil, err
	}
	tokens, err := memorystore.New(&memorystore.Config{Tokens: roomy, Interval: period})
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = tokens.Close(context.WithoutCancel(ctx)) })
	windows := ulule.NewStore()
	window := limiter.Rate{Period: period, Limit: roomy}
	return append(ours,
		named{"go-limiter, 1 limit of requests", func(ctx context.Context, tenant string) error {
			_, _, _, ok, err := tokens.Take(ctx, tenant)
			return admitted(ok, err)
		}},
		named{"throttled, 1 limit", func(ctx context.Context, tenant string) error {
			limited, _, err := gcra.RateLimitCtx(ctx, tenant, amount)
			return admitted(!limited, err)
		}},
		named{"ulule/limiter, 1 limit", func(ctx context.Context, tenant string) error {
			state, err := windows.Increment(ctx, tenant, amount, window)
			return admitted(!state.Reached, err)
		}},
	), nil
}

// ourMemoryDecisions are the features of the table of Redis, each with a store of its own, and with
// room for the answer, as a caller keeps it who wants no garbage.
func ourMemoryDecisions() ([]named, error) {
	all, err := features()
	if err != nil {
		return nil, err
	}
	decisions := make([]named, len(all))
	for i := range all {
		decisions[i] = all[i].on(bucket.NewMemory(bucket.MemoryConfig{}), make([]bucket.LimitState, bucket.MaxLimits))
	}
	return decisions, nil
}
