package e2e_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/backend"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimittest"
)

// judgingStore is the store of the fixture, which is always asked, but for takes: those it counts and has judged by one
// whose refusals are remembered.
type judgingStore struct {
	*ratelimittest.Store

	memory *bucket.Memory
	takes  atomic.Int64
	away   atomic.Bool
}

func (s *judgingStore) Take(ctx context.Context, take bucket.Take) (bucket.Result, error) {
	if s.away.Load() {
		return bucket.Result{}, bucket.ErrUnavailable
	}
	s.takes.Add(1)
	return s.memory.Take(ctx, take)
}

// remember lets the extension remember what the store has refused.
func remember(cfg *ratelimit.Config) *judgingStore {
	s := &judgingStore{Store: cfg.Store.(*ratelimittest.Store), memory: bucket.NewMemory(bucket.MemoryConfig{Clock: cfg.Outage.Clock})}
	cfg.Store = s
	return s
}

func TestARefusalFromMemoryIsToldAsThatOfTheStoreAndCountedApart(t *testing.T) {
	t.Parallel()
	i := &instruments{t: t}
	var decisions []ratelimit.Decision
	var store *judgingStore
	f := newFixture(t, func(cfg *ratelimit.Config) {
		i.configure(cfg)
		store = remember(cfg)
	})
	see(f.server, func(d ratelimit.Decision) { decisions = append(decisions, d) })
	f.post(request{Query: listQuery})
	asked := f.post(request{Query: listQuery})
	for range 20 {
		answer := f.post(request{Query: listQuery})
		require.Equal(t, http.StatusTooManyRequests, answer.Status)
		require.Equal(t, asked.Header.Get("Retry-After"), answer.Header.Get("Retry-After"))
		require.Equal(t, asked.rateLimit(t), answer.rateLimit(t))
	}
	require.EqualValues(t, 2, store.takes.Load())
	require.Zero(t, decisions[len(decisions)-1].StoreDuration)
	spared := i.sums("ratelimit.store.spared", "ratelimit.store.spared_by")["cache"]
	require.InDelta(t, 22, spared+float64(store.takes.Load()), 0)
	require.InDelta(t, store.takes.Load(), i.sums("ratelimit.store.duration", "ratelimit.store.call")["take"], 0)
	require.Equal(t, http.StatusOK, f.post(request{Query: cheapQuery}).Status, "what is cheaper is admitted")
}

func TestARefusalFromMemorySaysNothingOfAStoreThatIsAway(t *testing.T) {
	t.Parallel()
	i := &instruments{t: t}
	var store *judgingStore
	f := newFixture(t, func(cfg *ratelimit.Config) {
		i.configure(cfg)
		store = remember(cfg)
	})
	f.post(request{Query: listQuery})
	f.post(request{Query: listQuery})
	store.away.Store(true)
	require.Equal(t, ratelimitclient.CodeRateLimited, f.post(request{Query: listQuery}).errorCode(t))
	require.Equal(t, true, f.post(request{Query: cheapQuery}).rateLimit(t)["storeUnavailable"])
	require.Equal(t, map[string]float64{"unavailable": 1}, i.sums("ratelimit.store.errors", "ratelimit.store.result"))
	require.Positive(t, i.sums("ratelimit.store.spared", "ratelimit.store.spared_by")["cache"])
	require.Equal(t, ratelimitclient.CodeRateLimited, f.post(request{Query: listQuery}).errorCode(t), "the share has the amount, and the store had not")
}

func TestATenantThatIsBusyIsRefusedWhateverTheFailMode(t *testing.T) {
	t.Parallel()
	i := &instruments{t: t}
	f := newFixture(t, i.configure)
	f.store.Fail(backend.ErrTenantBusy)
	for _, tenant := range []string{"free", "closed"} {
		answer := f.post(request{Query: cheapQuery, Tenant: tenant})
		require.Equal(t, http.StatusTooManyRequests, answer.Status, tenant)
		require.Equal(t, ratelimitclient.CodeRateLimited, answer.errorCode(t))
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
			f.store.Fail(backend.ErrTenantBusy)
			require.Equal(t, ratelimitclient.CodeRateLimited, f.post(request{Query: cheapQuery}).errorCode(t))
		})
	}
}

func TestABlockedTenantGetsNothingByBeingBusy(t *testing.T) {
	t.Parallel()
	store := bucket.NewMemory(bucket.MemoryConfig{})
	entered, held := make(chan struct{}, 8), make(chan struct{})
	slow := &heldStore{Store: store, entered: entered, held: held}
	_, err := store.SetOverride(t.Context(), "acme", bucket.Override{Blocked: true, Reason: "fraud", Actor: "test"})
	require.NoError(t, err)
	f := newFixture(t, func(cfg *ratelimit.Config) {
		underLimits(t, busyPolicies["warn"])(cfg)
		cfg.Store, cfg.Outage.MaxConcurrent = slow, 1
	})
	release := sync.OnceFunc(func() { close(held) })
	t.Cleanup(release)
	first := make(chan reply, 1)
	go func() { first <- f.post(request{Query: cheapQuery, Tenant: "acme"}) }()
	<-entered
	require.Equal(t, ratelimitclient.CodeRateLimited, f.post(request{Query: cheapQuery, Tenant: "acme"}).errorCode(t))
	release()
	require.Equal(t, ratelimitclient.CodeTenantBlocked, (<-first).errorCode(t))
}

func TestResolversOfOneOperationChargeAtOnceHoweverManyTheTenantMayHaveUnderWay(t *testing.T) {
	t.Parallel()
	const charges = 20
	store := &heldStore{
		Store: bucket.NewMemory(bucket.MemoryConfig{}), entered: make(chan struct{}, 1+charges), held: make(chan struct{}, 1),
	}
	f := newFixture(t, func(cfg *ratelimit.Config) {
		underLimits(t, "minute: {capacity: 1000, per: minute}")(cfg)
		cfg.Store, cfg.Outage.MaxConcurrent = store, 1
	})
	store.held <- struct{}{}
	f.resolver.OnExport = func(ctx context.Context, rows int) error {
		var all sync.WaitGroup
		errs := make([]error, rows)
		for i := range errs {
			all.Go(func() { errs[i] = ratelimit.Charge(ctx, bucket.Points, 1) })
		}
		// The first entered is the take of the operation.
		for range 1 + rows {
			<-store.entered
		}
		close(store.held)
		all.Wait()
		return errors.Join(errs...)
	}
	answer := f.post(request{Query: `{ export(rows: 20) }`, Tenant: "acme"})
	require.Empty(t, answer.errorCode(t), answer.Body)
}

// heldStore keeps the takes until held is closed, or has something for each.
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
	f.store.Fail(backend.ErrTenantBusy)
	require.Empty(t, f.post(request{Query: cheapQuery, Tenant: "unlimited"}).errorCode(t))
	require.Empty(t, f.post(request{Query: cheapQuery, Tenant: "unlimited", Key: "query-0001"}).errorCode(t))
	require.Empty(t, f.post(request{Query: createUser, Tenant: "unlimited"}).errorCode(t))
	require.Equal(t, ratelimitclient.CodeRateLimited, f.post(request{Query: createUser, Tenant: "unlimited", Key: "order-0001"}).errorCode(t))
}
