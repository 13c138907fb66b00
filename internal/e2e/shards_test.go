package e2e_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

func TestServersOfAShardSpareHomeAndAdmitNoMoreThanTheBudgetThoughNobodyElseRunsTheirStores(t *testing.T) {
	t.Parallel()
	const capacity = 8000
	redis, ok := patientStore(t).(*bucket.Redis)
	require.True(t, ok)
	home := &takeCounter{Redis: redis}
	shard, ok := patientStore(t).(*bucket.Redis)
	require.True(t, ok)
	source := policyOf(t, "version: 1\ndefault: free\ntiers:\n  free: {lease: always, limits: {hour: {capacity: 8000, refill: 1, per: hour}}}\n")
	var servers []*inProcess
	var stores []*bucket.Sharded
	for range 3 {
		sharded, err := bucket.NewSharded(home, shard, bucket.ShardedConfig{})
		require.NoError(t, err)
		stores, servers = append(stores, sharded), append(servers, exchanging(t, sharded, 1, source)...)
	}
	charged := 0.0
	ask := func(p *inProcess) (admitted, approximate bool) {
		r := p.post(request{Query: `{ me { name } }`, Tenant: "acme"})
		answer := r.rateLimit(t)
		n, _ := answer["charged"].(float64)
		charged += n
		return r.Status == http.StatusOK, answer["approximate"] == true
	}
	for _, p := range servers {
		// It takes from the shard when home has said that all instances can.
		require.Eventually(t, func() bool {
			_, approximate := ask(p)
			return approximate
		}, patience, 20*time.Millisecond)
	}
	all := func(servers []*inProcess, times int) {
		for range times {
			for _, p := range servers {
				admitted, _ := ask(p)
				require.True(t, admitted)
			}
		}
	}
	all(servers, 100)
	takes, exchanges, begin := home.takes.Load(), home.exchanges.Load(), time.Now()
	all(servers, 200)
	require.Less(t, home.takes.Load()-takes, int64(30), "of 600 takes")
	require.Less(t, home.exchanges.Load()-exchanges, 20+10*int64(time.Since(begin).Seconds()+1))
	require.Positive(t, home.exchanges.Load())

	// Of three servers one goes. What the shard holds is there for the others.
	require.NoError(t, servers[0].extension.Shutdown(t.Context()))
	takes = home.takes.Load()
	all(servers[1:], 100)
	require.Less(t, home.takes.Load()-takes, int64(20), "of 200 takes")
	by := stores[0].Stats()
	admitted, _ := ask(servers[0])
	require.True(t, admitted)
	require.Equal(t, by, stores[0].Stats(), "after its end home decides")

	require.Eventually(t, func() bool {
		refused := 0
		for range 200 {
			for _, p := range servers {
				if admitted, _ := ask(p); !admitted {
					refused++
				}
			}
		}
		return refused > 500
	}, 2*patience, time.Millisecond)
	require.LessOrEqual(t, charged, capacity+2.0)
	require.Greater(t, charged, 0.6*capacity, "what a shard holds is not lost to its servers")
}
