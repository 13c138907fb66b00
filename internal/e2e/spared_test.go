package e2e_test

import (
	"context"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimittest"
)

// spare puts a refusal cache before the store of the fixture.
func spare(t *testing.T, cfg *ratelimit.Config, config bucket.RefusalCacheConfig) {
	t.Helper()
	cache, err := bucket.NewRefusalCache(cfg.Store, config)
	require.NoError(t, err)
	cfg.Store = cache
}

func TestARefusalFromTheCacheIsToldAsThatOfTheStoreAndCountedApart(t *testing.T) {
	t.Parallel()
	i := &instruments{t: t}
	var decisions []ratelimit.Decision
	f := newFixture(t, func(cfg *ratelimit.Config) {
		i.configure(cfg)
		// It stands, as that of the store does.
		spare(t, cfg, bucket.RefusalCacheConfig{Clock: (&ratelimittest.Clock{}).Now})
		cfg.OnDecision = func(_ context.Context, d ratelimit.Decision) { decisions = append(decisions, d) }
	})
	f.post(request{Query: listQuery})
	asked := f.post(request{Query: listQuery})
	for range 20 {
		answer := f.post(request{Query: listQuery})
		require.Equal(t, http.StatusTooManyRequests, answer.Status)
		require.Equal(t, asked.Header.Get("Retry-After"), answer.Header.Get("Retry-After"))
		require.Equal(t, asked.rateLimit(t), answer.rateLimit(t))
	}
	require.Len(t, f.store.Takes(), 2)
	require.Zero(t, decisions[len(decisions)-1].StoreDuration)
	spared := i.sums("ratelimit.store.spared", "ratelimit.store.spared_by")["cache"]
	require.InDelta(t, 22, spared+float64(len(f.store.Takes())), 0)
	require.InDelta(t, len(f.store.Takes()), i.sums("ratelimit.store.duration", "ratelimit.store.call")["take"], 0)
	require.Equal(t, http.StatusOK, f.post(request{Query: cheapQuery}).Status, "what is cheaper is admitted")
}

func TestARefusalFromTheCacheSaysNothingOfAStoreThatIsAway(t *testing.T) {
	t.Parallel()
	i := &instruments{t: t}
	f := newFixture(t, func(cfg *ratelimit.Config) {
		i.configure(cfg)
		spare(t, cfg, bucket.RefusalCacheConfig{MaxAge: 60_000 * millisecond})
	})
	f.post(request{Query: listQuery})
	f.post(request{Query: listQuery})
	f.store.Fail(bucket.ErrUnavailable)
	require.Equal(t, true, f.post(request{Query: cheapQuery}).rateLimit(t)["storeUnavailable"])
	require.Equal(t, ratelimit.CodeRateLimited, f.post(request{Query: listQuery}).errorCode(t))
	require.Equal(t, map[string]float64{"unavailable": 1}, i.sums("ratelimit.store.errors", "ratelimit.store.result"))
	require.Positive(t, i.sums("ratelimit.store.spared", "ratelimit.store.spared_by")["cache"])
}

func TestATenantThatIsBusyIsRefusedWhateverTheFailMode(t *testing.T) {
	t.Parallel()
	i := &instruments{t: t}
	f := newFixture(t, i.configure)
	f.store.Fail(bucket.ErrBusy)
	for _, tenant := range []string{"free", "closed"} {
		answer := f.post(request{Query: cheapQuery, Tenant: tenant})
		require.Equal(t, http.StatusTooManyRequests, answer.Status, tenant)
		require.Equal(t, ratelimit.CodeRateLimited, answer.errorCode(t))
		require.Equal(t, "1", answer.Header.Get("Retry-After"))
		require.NotContains(t, answer.rateLimit(t), "storeUnavailable")
	}
	require.Equal(t, map[string]float64{"busy": 2}, i.sums("ratelimit.decisions", "ratelimit.outcome"))
	require.Equal(t, map[string]float64{"busy": 2}, i.sums("ratelimit.store.spared", "ratelimit.store.spared_by"))
	require.Empty(t, i.sums("ratelimit.store.errors", "ratelimit.store.result"), "the store is not away")
	require.Zero(t, f.resolver.Asked.Load())
}

// busyPolicies are tenants by policy of whom an override record may make more than the policy says.
var busyPolicies = map[string]string{
	"enforce": "minute: {capacity: 100, per: minute}",
	"soft":    "minute: {capacity: 100, per: minute, soft: true}",
	"warn":    "minute: {capacity: 100, per: minute, mode: warn}",
	"shadow":  "minute: {capacity: 100, per: minute, mode: shadow}",
}

func TestABusyTenantIsRefusedInEachModeBecauseARecordMayEnforceOrBlock(t *testing.T) {
	t.Parallel()
	for name, limits := range busyPolicies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, underLimits(t, limits))
			f.resolver.OnExport = func(ctx context.Context, _ int) error {
				f.store.Fail(bucket.ErrBusy)
				return ratelimit.Charge(ctx, bucket.Points, 1)
			}
			require.Equal(t, ratelimit.CodeRateLimited, f.post(request{Query: `{ export(rows: 1) }`}).errorCode(t), "a charge")
			require.Equal(t, ratelimit.CodeRateLimited, f.post(request{Query: cheapQuery}).errorCode(t))
		})
	}
}

func TestABlockedTenantGetsNothingByBeingBusy(t *testing.T) {
	t.Parallel()
	store := bucket.NewMemory(bucket.MemoryConfig{})
	entered, held := make(chan struct{}, 8), make(chan struct{})
	slow := &heldStore{Store: store, entered: entered, held: held}
	bulkhead, err := bucket.NewBulkhead(slow, bucket.BulkheadConfig{MaxConcurrent: 1})
	require.NoError(t, err)
	_, err = store.SetOverride(t.Context(), "acme", bucket.Override{Blocked: true, Reason: "fraud", Actor: "test"})
	require.NoError(t, err)
	f := newFixture(t, func(cfg *ratelimit.Config) {
		underLimits(t, busyPolicies["warn"])(cfg)
		cfg.Store = bulkhead
	})
	release := sync.OnceFunc(func() { close(held) })
	t.Cleanup(release)
	first := make(chan reply, 1)
	go func() { first <- f.post(request{Query: cheapQuery, Tenant: "acme"}) }()
	<-entered
	require.Equal(t, ratelimit.CodeRateLimited, f.post(request{Query: cheapQuery, Tenant: "acme"}).errorCode(t))
	release()
	require.Equal(t, ratelimit.CodeTenantBlocked, (<-first).errorCode(t))
}

// heldStore keeps the takes until held is closed.
type heldStore struct {
	bucket.Store

	entered, held chan struct{}
}

func (s *heldStore) Take(ctx context.Context, take bucket.Take) (bucket.Result, error) {
	s.entered <- struct{}{}
	<-s.held
	return s.Store.Take(ctx, take)
}

func TestABusyTenantOfWhomNothingIsJudgedRunsUnlessItsMutationMayBeARepeat(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.store.Fail(bucket.ErrBusy)
	require.Empty(t, f.post(request{Query: cheapQuery, Tenant: "unlimited"}).errorCode(t))
	require.Empty(t, f.post(request{Query: cheapQuery, Tenant: "unlimited", Key: "query-0001"}).errorCode(t))
	require.Empty(t, f.post(request{Query: createUser, Tenant: "unlimited"}).errorCode(t))
	require.Equal(t, ratelimit.CodeRateLimited, f.post(request{Query: createUser, Tenant: "unlimited", Key: "order-0001"}).errorCode(t))
}
