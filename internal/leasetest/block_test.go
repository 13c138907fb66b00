package leasetest_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

// leaseLength is after how long a block is in force at the latest.
const leaseLength = 2 * time.Second

// blockEach blocks so many tenants, one after the other, and returns after how long the last instance knew of each, in order.
func blockEach(t testing.TB, tenants int) (reached []time.Duration) {
	t.Helper()
	s := setting{Kind: leased, Seed: seed(t), Capacity: 1 << 30, Refill: 1 << 30, Costs: []int64{1}, Tenants: tenants}
	fl := newFleet(t, redistest.Start(t), s, true)
	// Each instance asks for each tenant fifty times a second.
	fl.load(float64(fleetSize*tenants*50), even())
	pass(3 * time.Second)
	client := redis.NewClient(&redis.Options{Addr: fl.server.Addr, ContextTimeoutEnabled: true})
	defer func() { _ = client.Close() }()
	operator, err := bucket.NewRedis(bucket.RedisConfig{Client: client, Timeout: patience})
	require.NoError(t, err)
	r := newRandom(s.Seed)
	at := make([]int64, tenants)
	for tenant := range at {
		pass(upTo(r, 200*time.Millisecond))
		_, err := operator.SetOverride(context.Background(), tenantName(tenant), bucket.Override{Blocked: true, Reason: "test", Actor: "test"})
		require.NoError(t, err)
		at[tenant] = fl.clock.after()
	}
	pass(leaseLength + 500*time.Millisecond)
	local := uint64(0)
	for _, c := range fl.count() {
		local += c.Leases.Admitted
	}
	require.NotZero(t, local)
	fl.finish()
	first := make([][]int64, fleetSize)
	for i, path := range fl.ledgers {
		first[i] = make([]int64, tenants)
		for _, o := range readLedger(t, path) {
			tenant := o.cost
			switch {
			case o.is == blocked && first[i][tenant] == 0:
				first[i][tenant] = max(o.after, at[tenant])
			case o.is == admitted && o.before > at[tenant]+int64(leaseLength):
				t.Errorf("instance %d has admitted an operation of a tenant that was blocked %v before", i, time.Duration(o.before-at[tenant]))
			}
		}
	}
	for tenant := range at {
		last := int64(0)
		for i := range first {
			require.NotZero(t, first[i][tenant], "instance %d knows", i)
			last = max(last, first[i][tenant]-at[tenant])
		}
		reached = append(reached, time.Duration(last))
	}
	slices.Sort(reached)
	return reached
}
