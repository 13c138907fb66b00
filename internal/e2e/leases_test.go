package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/placement"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// takeCounter counts the takes and exchanges that a store is asked for.
type takeCounter struct {
	*bucket.Redis
	takes, exchanges atomic.Int64
}

func (c *takeCounter) Take(ctx context.Context, take bucket.Take) (bucket.Result, error) {
	c.takes.Add(1)
	return c.Redis.Take(ctx, take)
}

func (c *takeCounter) Exchange(ctx context.Context, e bucket.Exchange) (bucket.Exchanged, error) {
	c.exchanges.Add(1)
	return c.Redis.Exchange(ctx, e)
}

func TestServersThatLeaseSpareTheStoreAndChargeWhatTheyAdmit(t *testing.T) {
	t.Parallel()
	store, ok := patientStore(t).(*bucket.Redis)
	require.True(t, ok)
	counting := &takeCounter{Redis: store}
	source := policyOf(t, "version: 1\ndefault: free\ntiers:\n  free: {lease: always, limits: {hour: {capacity: 80000, refill: 2, per: hour}}}\n")
	servers, charged := exchanging(t, counting, 2, source), 0.0
	ask := func(p *inProcess) map[string]any {
		answer := p.post(request{Query: listQuery, Tenant: "acme"}).rateLimit(t)
		charged += answer["charged"].(float64)
		return answer
	}
	for _, p := range servers {
		// It leases when all have said that they can.
		require.Eventually(t, func() bool { return ask(p)["approximate"] == true }, patience, 20*time.Millisecond)
	}
	before := counting.takes.Load()
	for range 200 {
		for _, p := range servers {
			ask(p)
		}
	}
	// Whoever is slow asks for less, and holds less: on a busy machine the store has some tens.
	require.Less(t, counting.takes.Load()-before, int64(100), "of 400 takes")
	for _, p := range servers {
		require.NoError(t, p.extension.Shutdown(t.Context()))
	}
	states, err := store.Peek(t.Context(), "acme", source.Rules(tiers.Subject{Tenant: "acme"}, tiers.Selection{}).Buckets)
	require.NoError(t, err)
	require.InDelta(t, 80_000-charged, states[0].Remaining, 1)
}

// exchanging are servers on one store that exchange with it.
func exchanging(t *testing.T, store bucket.Store, n int, source tiers.Source) []*inProcess {
	t.Helper()
	servers := make([]*inProcess, n)
	for i := range servers {
		servers[i] = newInProcess(t, store, func(cfg *ratelimit.Config) { cfg.Policy = source })
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			servers[i].extension.Run(ctx)
		}()
		t.Cleanup(func() {
			cancel()
			<-ended
		})
	}
	return servers
}

func TestServersThatLeaseDecideByTheBackstopWithoutTheStore(t *testing.T) {
	t.Parallel()
	store, ok := patientStore(t).(*bucket.Redis)
	require.True(t, ok)
	counting := &takeCounter{Redis: store}
	source := policyOf(t, fmt.Sprintf(backstopped, `{
  limits: {wallofall: {capacity: 4000, refill: 1, per: hour, unit: requests}},
  operations: {Query.me: {limits: {wallofone: {capacity: 4000, refill: 1, per: hour, unit: requests}}}},
}`))
	servers, admitted := exchanging(t, counting, 2, source), 0
	ask := func(p *inProcess, tenant string) reply {
		r := p.post(request{Query: `{ me { name } }`, Tenant: tenant})
		if r.Status == http.StatusOK {
			admitted++
		}
		return r
	}
	for _, p := range servers {
		// It leases when all have said that they can, each budget by itself: the store is not asked then.
		require.Eventually(t, func() bool {
			before := counting.takes.Load()
			ask(p, "unlimited")
			return counting.takes.Load() == before
		}, patience, 20*time.Millisecond)
	}
	all := func() {
		for range 200 {
			for _, p := range servers {
				require.Equal(t, http.StatusOK, ask(p, "unlimited").Status)
			}
		}
	}
	// They hold what they are asked for: so much at first, and less when one after the other began.
	all()
	before := counting.takes.Load()
	all()
	// Whoever is slow asks for less, and holds less: on a busy machine the store has some tens.
	require.Less(t, counting.takes.Load()-before, int64(100), "of 400 takes")
	for range 200 {
		for _, p := range servers {
			ask(p, "small")
		}
	}
	for _, p := range servers {
		require.NoError(t, p.extension.Shutdown(t.Context()))
	}
	me := tiers.Selection{Fields: []string{"Query.me"}}
	states, err := store.Peek(t.Context(), "", source.Rules(tiers.Subject{Tenant: "a"}, me).Backstop)
	require.NoError(t, err)
	require.Len(t, states, 2)
	for i := range states {
		require.EqualValues(t, 4000-admitted, states[i].Remaining, "all that ran was charged, and what was refused 398 times is back: %s", states[i].Limit.Name)
	}
}

// TestLeasesWhileTheTenantChangesItsStore gives the tenant another Redis, in which its budget starts full: servers admit at most
// one budget of each store.
func TestLeasesWhileTheTenantChangesItsStore(t *testing.T) {
	t.Parallel()
	const capacity = 3000
	opens := placement.OpenRedis(placement.RedisConfig{
		Client: redisclient.Config{DialTimeout: patience, SocketTimeout: patience},
		Store:  bucket.RedisConfig{Timeout: patience, Patience: patience, AdminTimeout: patience},
	})
	m := &placement.Map{
		Generation: 1, Candidates: 1, Pins: map[string]string{"acme": "a"},
		Stores: []placement.Member{{Name: "a", Address: redistest.Start(t).Addr}, {Name: "b", Address: redistest.Start(t).Addr}},
	}
	source := policyOf(t, fmt.Sprintf(
		"version: 1\ndefault: free\ntiers:\n  free: {lease: always, failMode: closed, limits: {hour: {capacity: %d, refill: 1, per: hour, unit: requests}}}\n", capacity))
	var stores []*placement.Store
	var servers []*inProcess
	for range 2 {
		store, err := placement.New(t.Context(), placement.Config{Open: opens}, m)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, store.Close()) })
		stores, servers = append(stores, store), append(servers, exchanging(t, store, 1, source)...)
	}
	admitted := 0
	ask := func(p *inProcess) (leased bool, status int) {
		r := p.post(request{Query: `{ me { name } }`, Tenant: "acme"})
		if r.Status != http.StatusOK {
			return false, r.Status
		}
		admitted++
		return r.rateLimit(t)["approximate"] == true, r.Status
	}
	buckets := source.Rules(tiers.Subject{Tenant: "acme"}, tiers.Selection{}).Buckets
	for move, to := range []string{"a", "b"} {
		if move > 0 {
			next := m.Next(m.Stores)
			next.Pins = map[string]string{"acme": to}
			for _, store := range stores {
				require.NoError(t, store.Apply(t.Context(), next))
			}
		}
		require.Equal(t, to, stores[0].Map().Home("acme"))
		for _, p := range servers {
			require.Eventually(t, func() bool {
				// What is held of the store before is served on, and nobody is told of there before it has ended.
				leased, _ := ask(p)
				ask(servers[0])
				ask(servers[1])
				told, err := stores[0].Leases(t.Context(), "acme", buckets)
				return leased && err == nil && len(told) == 1 && told[0].Holders == len(servers)
			}, patience, 20*time.Millisecond, "in %s", to)
		}
		for range 100 {
			for _, p := range servers {
				ask(p)
			}
		}
	}
	t.Logf("%d of %d when both lease again", admitted, capacity)
	for refused := 0; refused < 50; {
		for _, p := range servers {
			if _, status := ask(p); status != http.StatusOK {
				refused++
			}
		}
	}
	require.LessOrEqual(t, admitted, 2*(capacity+1), "one budget of each store")
	require.Greater(t, admitted, 400)
}
