package e2e_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/testserver"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimittest"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// storesPolicy gives a tier and a tenant of it stores of their own.
const storesPolicy = `
version: 1
default: free
tiers:
  free: {limits: {minute: {capacity: 100, per: minute}}}
  pro: {store: eu, limits: {minute: {capacity: 100, per: minute}}}
  strict: {store: eu, failMode: closed, limits: {minute: {capacity: 100, per: minute}}}
tenants:
  acme: {tier: pro}
  bank: {tier: pro, store: vault}
  strict: {tier: strict}
`

// movingSource is a source whose policy a test replaces, and which cannot be checked.
type movingSource struct {
	current atomic.Pointer[tiers.Snapshot]
}

func (s *movingSource) Snapshot() *tiers.Snapshot {
	return s.current.Load()
}

func TestAnOperationAsksTheStoreThatItsTierOrItsTenantHas(t *testing.T) {
	t.Parallel()
	eu, vault := ratelimittest.NewStore(nil), ratelimittest.NewStore(nil)
	i := &instruments{t: t}
	f := newFixture(t, func(cfg *ratelimit.Config) {
		i.configure(cfg)
		cfg.Policy = policyOf(t, storesPolicy)
		cfg.Stores = map[string]bucket.Store{"eu": eu, "vault": vault}
	})
	for _, tenant := range []string{"free", "acme", "bank"} {
		require.Equal(t, http.StatusOK, f.post(request{Query: listQuery, Tenant: tenant}).Status)
	}
	for tenant, store := range map[string]*ratelimittest.Store{"free": f.store, "acme": eu, "bank": vault} {
		require.Len(t, store.Takes(), 1)
		require.Equal(t, tenant, store.Takes()[0].Tenant)
	}
	require.Equal(t, map[string]float64{"": 1, "eu": 1, "vault": 1}, i.sums("ratelimit.store.duration", "ratelimit.store.name"))

	// One store that is away touches nobody else's.
	eu.Fail(bucket.ErrUnavailable)
	require.Equal(t, ratelimitclient.CodeUnavailable, f.post(request{Query: cheapQuery, Tenant: "strict"}).errorCode(t))
	require.Empty(t, f.post(request{Query: cheapQuery, Tenant: "bank"}).errorCode(t))
}

func TestAnOperationStaysWithItsStoreWhenThePolicyMoves(t *testing.T) {
	t.Parallel()
	eu := ratelimittest.NewStore(nil)
	source := &movingSource{}
	source.current.Store(policyOf(t, storesPolicy))
	f := newFixture(t, func(cfg *ratelimit.Config) {
		cfg.Policy = source
		cfg.Stores = map[string]bucket.Store{"eu": eu, "vault": ratelimittest.NewStore(nil)}
	})
	// While the operation runs, its tenant moves to the default store.
	f.resolver.OnExport = func(ctx context.Context, _ int) error {
		source.current.Store(policyOf(t, strings.Replace(storesPolicy, "store: eu, ", "", 1)))
		return ratelimit.Charge(ctx, bucket.Points, 1)
	}
	require.Empty(t, f.post(request{Query: `{ export(rows: 1) }`, Tenant: "acme", Key: "order-0001"}).errorCode(t))
	require.Len(t, eu.Takes(), 2, "the take and the charge")
	require.Len(t, eu.Settlements(), 1)
	require.Empty(t, f.store.Takes())
	require.Empty(t, f.store.Settlements())

	require.Empty(t, f.post(request{Query: cheapQuery, Tenant: "acme"}).errorCode(t))
	require.Len(t, f.store.Takes(), 1, "the next operation asks the new store")
}

func TestAPolicyThatNamesAnUnknownStoreIsReportedAtStart(t *testing.T) {
	t.Parallel()
	err := ratelimit.New(ratelimit.Config{
		Store: ratelimittest.NewStore(nil), Policy: policyOf(t, storesPolicy), Subject: byTenantHeader, Observe: ratelimit.ObserveConfig{Logger: discard},
		Stores: map[string]bucket.Store{"eu": nil, "": ratelimittest.NewStore(nil)},
	}).Validate(testserver.NewExecutableSchema(testserver.Config{}))
	for _, mistake := range []string{"Config.Stores does not have: eu, vault", `Stores["eu"] is nil`, "a store without a name"} {
		require.ErrorContains(t, err, mistake)
	}
}

func TestAReloadedPolicyThatNamesAnUnknownStoreIsNotLoaded(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "policy.yaml")
	require.NoError(t, os.WriteFile(file, []byte(testPolicy), 0o600))
	source, err := policy.OpenFile(file, policy.Config{Interval: policy.None})
	require.NoError(t, err)
	t.Cleanup(func() { _ = source.Close() })
	f := newFixture(t, func(cfg *ratelimit.Config) { cfg.Policy = tiers.NewModeSwitch(source) })

	require.NoError(t, os.WriteFile(file, []byte(storesPolicy), 0o600))
	require.ErrorContains(t, source.Reload(t.Context()), "Config.Stores does not have: eu, vault")
	require.EqualValues(t, 1, source.Snapshot().Generation())
	require.Empty(t, f.post(request{Query: cheapQuery, Tenant: "acme"}).errorCode(t))
	require.Len(t, f.store.Takes(), 1)
}

func TestAServerThatStartsWithARevisionThatItCannotUseServesTheLastGoodOne(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file, lastGood := filepath.Join(folder, "policy.yaml"), filepath.Join(folder, "last-good")
	require.NoError(t, os.WriteFile(file, []byte(testPolicy), 0o600))
	open := func() *policy.Follower {
		source, err := policy.OpenFile(file, policy.Config{Interval: policy.None, LastGood: lastGood})
		require.NoError(t, err)
		t.Cleanup(func() { _ = source.Close() })
		return source
	}
	require.NoError(t, open().Close())

	require.NoError(t, os.WriteFile(file, []byte(storesPolicy), 0o600))
	source := open()
	require.EqualValues(t, 2, source.Snapshot().Generation())
	f := newFixture(t, func(cfg *ratelimit.Config) { cfg.Policy = source })
	require.EqualValues(t, 1, source.Snapshot().Generation(), "as the instances that ran before do")
	require.Contains(t, source.Status().Refused.Error, "Config.Stores does not have: eu, vault")
	require.Empty(t, f.post(request{Query: cheapQuery, Tenant: "acme"}).errorCode(t))
}

func TestAStoreThatIsNotThereIsAway(t *testing.T) {
	t.Parallel()
	source := &movingSource{}
	source.current.Store(compiledPolicy(t))
	f := newFixture(t, func(cfg *ratelimit.Config) { cfg.Policy = source })
	source.current.Store(policyOf(t, storesPolicy))
	require.Equal(t, ratelimitclient.CodeUnavailable, f.post(request{Query: cheapQuery, Tenant: "strict"}).errorCode(t))
	open := f.post(request{Query: cheapQuery, Tenant: "acme"})
	require.Empty(t, open.errorCode(t))
	require.Equal(t, true, open.rateLimit(t)["storeUnavailable"])
	require.Empty(t, f.store.Takes(), "no other store keeps its budgets")
}
