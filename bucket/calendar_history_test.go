package bucket_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

// TestNoWindowOfTheCalendarAdmitsMoreThanTheLimit lets many callers take and settle while hours pass, the
// clock is set back over their edges, and a second generation of the policy is in use. The limit is reached in
// each hour, so that one which was filled twice shows in the sum: a take while the clock is back may be
// charged to the later hour, which is why the sum is what has to hold.
func TestNoWindowOfTheCalendarAdmitsMoreThanTheLimit(t *testing.T) {
	t.Parallel()
	const capacity, callers, calls = 40, 8, 400
	redisStore := newRedisStore(t, patientClient(t, redistest.Start(t).Addr))
	redisClock, memoryClock := newClock(), newClock()
	require.NoError(t, redisStore.SetTestClock(redisClock.unixMilli))
	hour := bucket.Limit{Name: "hour", Capacity: capacity, Window: bucket.Window{Kind: bucket.HourWindow}}
	minute := bucket.Limit{Name: "minute", Capacity: 1000, Period: time.Minute}
	generations := []*bucket.Limits{compile(t, hour), compile(t, minute, hour)}
	for name, store := range map[string]bucket.Store{"memory": bucket.NewMemory(bucket.MemoryConfig{Clock: memoryClock.now}), "redis": redisStore} {
		c := memoryClock
		if name == "redis" {
			c = redisClock
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			charged, refused := map[int64]int64{}, 0
			var group sync.WaitGroup
			for caller := range callers {
				group.Go(func() {
					furthest := int64(0)
					for i := range calls {
						// One caller may be far ahead of the others: the clock is never set back from where it was before.
						if now := c.unixMilli(); caller == 0 && i%20 == 13 && now > furthest {
							furthest = now
							c.ms.Add(-(50 * time.Minute).Milliseconds())
						}
						c.ms.Add((29 * time.Second).Milliseconds())
						result, err := store.Take(context.Background(), bucket.Take{
							Tenant: t.Name(), Amounts: points(1), Buckets: []bucket.Bucket{{Limits: generations[i%len(generations)]}},
						})
						if err != nil {
							t.Error(err)
							return
						}
						net := int64(1)
						if result.Verdict == bucket.Admitted && i%3 == 0 {
							settled, err := store.Settle(context.Background(), bucket.Settlement{Receipt: result.Receipt, Actual: points(0)})
							if err != nil {
								t.Error(err)
								return
							}
							if settled.Applied {
								net += settled.Limits[len(settled.Limits)-1].Charged
							}
						}
						mu.Lock()
						if result.Verdict == bucket.Admitted {
							charged[bucket.TakenAt(result.Receipt)/time.Hour.Milliseconds()] += net
						} else {
							refused++
						}
						mu.Unlock()
					}
				})
			}
			group.Wait()
			require.NotZero(t, refused, "the limit was reached")
			require.Greater(t, len(charged), 2, "hours have passed")
			total := int64(0)
			for _, n := range charged {
				total += n
			}
			// A later hour whose one charge is given back while the clock is back is closed, and the earlier opens again.
			require.LessOrEqual(t, total, int64(capacity*(len(charged)+1)))
			t.Logf("%d charged in %d hours, %d refused", total, len(charged), refused)
		})
	}
}
