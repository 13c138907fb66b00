package bucket_test

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// sharers is several holders of one bucket, each of which many callers use at once.
type sharers struct {
	*testing.T
	limits  *bucket.Limits
	holders []*bucket.Leased

	mu      sync.Mutex
	history []admission
	refused int
}

// took notes what was admitted, or given back if it is negative.
func (c *sharers) took(amount int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if amount == 0 {
		c.refused++
		return
	}
	c.history = append(c.history, admission{time.Now().UnixMilli(), amount})
}

// call takes from a holder until the context ends. Every third operation is worth less than it was charged.
func (c *sharers) call(ctx context.Context, holder *bucket.Leased, caller int) {
	for i := caller; ctx.Err() == nil; i++ {
		amount := int64(1 + i%7)
		// Shutdown cuts no take off.
		result, err := holder.Take(context.Background(), bucket.Take{
			Tenant: "acme", Buckets: []bucket.Bucket{{Limits: c.limits}}, Amounts: points(amount), Lease: bucket.LeaseAlways,
		})
		switch {
		case err != nil:
			c.Error(err)
		case result.Verdict != bucket.Admitted:
			c.took(0)
		case i%3 > 0:
			c.took(amount)
		default:
			c.took(amount)
			// What comes back does so between the two.
			if amount > 1 {
				c.took(1 - amount)
			}
			if _, err := holder.Settle(context.Background(), bucket.Settlement{Receipt: result.Receipt, Actual: points(1)}); err != nil {
				c.Error(err)
			}
		}
		time.Sleep(time.Duration(i%5) * 700 * time.Microsecond) //nolint:forbidigo // in a synctest bubble
	}
}

// tend exchanges beside Run.
func tend(ctx context.Context, holder *bucket.Leased) {
	for ctx.Err() == nil {
		holder.Tend(ctx)
		time.Sleep(7 * time.Millisecond) //nolint:forbidigo // in a synctest bubble
	}
}

// A goroutine that stayed would keep the bubble from ending, which fails the test.
func TestManyCallersWithRunTendSettleAndShutdownAtOnceGetTheLimitAndLeaveNoGoroutine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		memory := bucket.NewMemory(bucket.MemoryConfig{})
		c := &sharers{T: t, limits: compile(t, bucket.Limit{Name: "second", Capacity: 1000, Refill: 1000, Period: time.Second})}
		ctx, cancel := context.WithCancel(t.Context())
		var group, running sync.WaitGroup
		for range 3 {
			holder := bucket.NewLeased(memory, bucket.LeasedConfig{})
			holder.Allow(true)
			c.holders = append(c.holders, holder)
			running.Go(func() { holder.Run(ctx) })
			group.Go(func() { tend(ctx, holder) })
			for caller := range 8 {
				group.Go(func() { c.call(ctx, holder, caller) })
			}
		}
		time.Sleep(4 * time.Second) //nolint:forbidigo // in a synctest bubble
		// Two end one holder at once, while it is used: its takes go to the store from then on.
		for range 2 {
			group.Go(func() {
				if err := c.holders[0].Shutdown(context.Background()); err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(4 * time.Second) //nolint:forbidigo // in a synctest bubble
		for _, holder := range c.holders[1:] {
			require.Equal(t, 1, holder.Stats().Tenants)
			require.NotZero(t, holder.Stats().Admitted)
			require.NoError(t, holder.Shutdown(t.Context()))
		}
		// All have ended by Shutdown, and not by their context.
		running.Wait()
		cancel()
		group.Wait()
		for _, holder := range c.holders {
			require.Zero(t, holder.Stats().Tenants)
		}
		slices.SortStableFunc(c.history, func(a, b admission) int { return cmp.Compare(a.at, b.at) })
		net := int64(0)
		for _, a := range c.history {
			net += a.amount
		}
		t.Logf("%d points in 8 s, %d refusals, at most %d of 1000 beyond what comes back; %+v", net, c.refused, steepest(c.history, 1, 1), c.holders[1].Stats())
		require.NotZero(t, c.refused)
		require.Greater(t, net, int64(8000), "most of it is used")
		require.LessOrEqual(t, steepest(c.history, 1, 1), int64(1000))
	})
}
