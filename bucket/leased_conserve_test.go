package bucket_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	_ "github.com/gqlgen-ratelimit/ratelimit/internal/seed"
)

func TestWhatHoldersDoNotSpendIsThereWhenTheyHaveGivenItBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		synctest.Test(t, func(t *testing.T) {
			// So little comes back that what is lost stays lost.
			const capacity = 80_000
			limits, err := bucket.Compile(bucket.Limit{Name: "hour", Capacity: capacity, Refill: 2, Period: time.Hour})
			require.NoError(t, err)
			store := bucket.NewMemory(bucket.MemoryConfig{})
			take := bucket.Take{Tenant: "acme", Buckets: []bucket.Bucket{{Limits: limits}}, Lease: bucket.LeaseAlways}
			ctx, cancel := context.WithCancel(t.Context())
			var holders []*bucket.Leased
			for range rapid.IntRange(2, 4).Draw(r, "holders") {
				l := bucket.NewLeased(store, bucket.LeasedConfig{})
				l.Allow(true)
				holders = append(holders, l)
				go l.Run(ctx)
			}
			charged, held := int64(0), map[*bucket.Leased][]bucket.Receipt{}
			decline := func(l *bucket.Leased) {
				for _, receipt := range held[l] {
					if rest := l.Decline(receipt); !rest.IsZero() {
						charged++
					}
				}
				delete(held, l)
			}
			for range rapid.IntRange(1, 80).Draw(r, "steps") {
				l := rapid.SampledFrom(holders).Draw(r, "holder")
				take.Amounts = points(rapid.Int64Range(1, 300).Draw(r, "points"))
				for range rapid.IntRange(1, 30).Draw(r, "times") {
					result, err := l.Take(ctx, take)
					require.NoError(t, err)
					if result.Verdict == bucket.Admitted {
						charged += take.Amounts[0].N
					}
				}
				switch rapid.IntRange(0, 3).Draw(r, "holds") {
				case 0:
					one := take
					one.Declinable, one.Amounts = true, points(1)
					before := l.Stats().Admitted
					result, err := l.Take(ctx, one)
					require.NoError(t, err)
					switch {
					case result.Verdict != bucket.Admitted:
					case l.Stats().Admitted == before:
						charged++
					default:
						held[l] = append(held[l], result.Receipt)
					}
				case 1:
					decline(l)
				default:
				}
				time.Sleep(time.Duration(rapid.IntRange(0, 400).Draw(r, "pause")) * time.Millisecond) //nolint:forbidigo // In the bubble.
			}
			for _, l := range holders {
				decline(l)
				require.NoError(t, l.Shutdown(ctx))
			}
			states, err := store.Peek(ctx, "acme", take.Buckets)
			require.NoError(t, err)
			require.InDelta(t, capacity-charged, states[0].Remaining, 1)
			cancel()
			synctest.Wait()
		})
	})
}
