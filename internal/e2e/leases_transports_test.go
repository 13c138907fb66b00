package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// leasedTransports has limits that hardly come back, of both kinds that a server holds parts of.
const leasedTransports = `
version: 1
default: free
tiers:
  free:
    lease: LEASE
    limits:
      hour: {capacity: 80000, refill: 2, per: hour}
      day: {capacity: 80000, per: day, window: calendar, unit: requests}
`

// memoryCounter counts the takes that a store in memory is asked for.
type memoryCounter struct {
	*bucket.Memory
	takes atomic.Int64
}

func (c *memoryCounter) Take(ctx context.Context, take bucket.Take) (bucket.Result, error) {
	c.takes.Add(1)
	return c.Memory.Take(ctx, take)
}

// spentBy has a server do all that 25 times for a tenant that leases, if that is the mode, and until it has done it here, without a take of the store, if it is to. It
// returns what is spent of the limits each time after the server has gone.
func spentBy(t *testing.T, mode bucket.LeaseMode, here bool, do func(*fixture)) (spent []float64) {
	t.Helper()
	store := &memoryCounter{Memory: bucket.NewMemory(bucket.MemoryConfig{})}
	source := policyOf(t, strings.Replace(leasedTransports, "LEASE", mode.String(), 1))
	f := newFixture(t, func(cfg *ratelimit.Config) {
		cfg.Store, cfg.Policy, cfg.Settlement, cfg.Outage.Clock = store, source, ratelimit.SettlementConfig{Refund: true}, nil
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f.limiter.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	// It leases when its first sign of life has been answered.
	before, times := []int64{0, 0}, 0
	require.Eventually(t, func() bool {
		signal := f.post(request{Query: `{ me { name } }`, Tenant: "acme"}).rateLimit(t)
		before[0], before[1] = before[0]+int64(signal["charged"].(float64)), before[1]+1
		return mode == bucket.LeaseOff || signal["approximate"] == true
	}, patience, time.Millisecond)
	for asked := int64(-1); times < 25 || here && asked != store.takes.Load(); times++ {
		asked = store.takes.Load()
		do(f)
	}
	f.settled()
	require.NoError(t, f.limiter.Shutdown(t.Context()))
	states, err := store.Peek(t.Context(), "acme", source.Rules(tiers.Subject{Tenant: "acme"}, tiers.Selection{}).Buckets)
	require.NoError(t, err)
	for i, s := range states {
		spent = append(spent, float64(s.Limit.Capacity-s.Remaining-before[i])/float64(times))
	}
	return spent
}

func TestEveryTransportIsChargedAndRefundedUnderLeasesAsWithoutThem(t *testing.T) {
	t.Parallel()
	const subscription, deferred = `subscription { ticks(count: 3) }`, `{ me { name ... @defer { friends(first: 300) { name } } } }`
	const mutation = `mutation { createUser(input: {name: "Grace"}) { id } }`
	for _, test := range []struct {
		name string
		do   func(*fixture)
		// here says that it can be decided without the store.
		here bool
	}{
		{"POST", func(f *fixture) {
			require.Equal(f.t, http.StatusOK, f.post(request{Query: generous, Tenant: "acme"}).Status)
		}, true},
		{"GET", func(f *fixture) {
			require.Equal(f.t, http.StatusOK, f.get(request{Query: generous, Tenant: "acme"}).Status)
		}, true},
		{"events of a subscription", func(f *fixture) {
			require.Contains(f.t, f.sse(request{Query: subscription, Tenant: "acme"}).Body, "event: complete")
		}, true},
		{"a WebSocket", func(f *fixture) {
			s := f.dial("acme", nil)
			require.Len(f.t, s.run("1", request{Query: subscription}), 4)
			require.Len(f.t, s.run("2", request{Query: generous}), 2)
			require.Len(f.t, s.run("3", request{Query: mutation}), 2)
		}, true},
		{"parts that were deferred", func(f *fixture) {
			require.Contains(f.t, f.multipartMixed(request{Query: deferred, Tenant: "acme"}).Body, `"hasNext":false`)
		}, true},
		{"a mutation and its replay", func(f *fixture) {
			for i := range 2 {
				require.Equal(f.t, http.StatusOK, f.post(request{Query: mutation, Tenant: "acme", Key: fmt.Sprint("a-key-of-two-", f.resolver.Created.Load()-int64(i))}).Status)
			}
		}, false},
		{"what is refused", func(f *fixture) {
			require.NotEqual(f.t, http.StatusOK, f.post(request{Query: `{ users(first: 90000) { name } }`, Tenant: "acme"}).Status)
		}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, spentBy(t, bucket.LeaseOff, false, test.do), spentBy(t, bucket.LeaseAlways, test.here, test.do))
		})
	}
}
