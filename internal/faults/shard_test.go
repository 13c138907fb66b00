package faults_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

func TestAFrozenShardIsNoticedByNoTenantOfTheOthers(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	// One tenant of each shard, all under the fail mode that shows most.
	tenants := make([]string, len(cluster.Servers))
	for i, found := 0, 0; found < len(tenants); i++ {
		tenant := fmt.Sprintf("closed-%d", i)
		if shard := redistest.Shard(cluster.Slot(t, tenant)); tenants[shard] == "" {
			tenants[shard] = tenant
			found++
		}
	}
	// What is counted is whether the shards disturb each other, and not how busy the machine is.
	load := startLoad(t, startFleet(t, &site{addresses: cluster.Addrs, timeout: unhurried}), tenants)
	load.waitAround(t)
	load.turn()
	last(t, 3*held())
	before := load.turn()
	cluster.Servers[0].Freeze(t)
	t.Cleanup(func() { cluster.Servers[0].Thaw(t) })
	last(t, 3*held())
	load.waitAway(t, tenants[0])
	during := load.turn()
	cluster.Servers[0].Thaw(t)
	load.waitAround(t)
	load.end()
	require.Empty(t, load.errs)

	for shard, tenant := range tenants {
		was, is := before[tenant].slowest(0.99), during[tenant].slowest(0.99)
		t.Logf("shard %d: %d decisions before, %d while shard 0 was frozen, of which unavailable %d; p99 %v and %v, ratio %.2f; longest %v and %v", shard,
			before[tenant].decisions(), during[tenant].decisions(), during[tenant].outcomes[ratelimit.OutcomeUnavailable],
			was, is, float64(is)/float64(was), before[tenant].slowest(1), during[tenant].slowest(1))
		if shard > 0 {
			// A machine that runs other tests beside may hold up a decision or two for the whole deadline;
			// a shard that shares anything with the frozen one fails nearly all.
			require.Less(t, 20*during[tenant].outcomes[ratelimit.OutcomeUnavailable], during[tenant].decisions()+40, "shard %d", shard)
		}
	}
}
