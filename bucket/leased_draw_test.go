package bucket_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

func TestWhoIsRefusedAnywayDrawsNothingFromOtherInstances(t *testing.T) {
	t.Parallel()
	for name, amount := range map[string]int64{
		"what others refuse is put back":        400,
		"what is too large for a part":          5000,
		"what is nearly all that is there":      9000,
		"what is more than there can ever be":   10_001,
		"what is as much as there is in a beat": 10_000,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newLeasedScene(t, bucket.Limit{Name: "second", Capacity: 10_000, Refill: 10_000, Period: time.Second})
				other := bucket.NewLeased(s.store.Memory, bucket.LeasedConfig{})
				other.Allow(true)
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan struct{})
				go func() {
					other.Run(ctx)
					close(ended)
				}()
				s.lease()
				refused, asked := 0, 0
				for i := range 10_000 {
					time.Sleep(time.Millisecond) //nolint:forbidigo // In the bubble.
					// Others ask for half of what there is, half of that in bursts.
					n := 3
					if i%1000 < 100 {
						n = 23
					}
					for range n {
						asked++
						result, err := other.Take(t.Context(), s.of(1))
						require.NoError(t, err)
						if result.Verdict != bucket.Admitted {
							refused++
						}
					}
					if i%5 > 0 {
						continue
					}
					if held := s.hold(amount); held.Verdict == bucket.Admitted {
						if rest := s.leased.Decline(held.Receipt); !rest.IsZero() {
							_, err := s.leased.Settle(t.Context(), bucket.Settlement{Receipt: rest, Actual: points(0)})
							require.NoError(t, err)
						}
					}
				}
				require.Less(t, refused, asked/50, "of %d", asked)
				cancel()
				<-ended
			})
		})
	}
}
