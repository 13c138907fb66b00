package e2e_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/testserver"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimittest"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// newUnused returns an extension that no server has, and the store that it is to use. Its limits fail local.
func newUnused(t *testing.T) (*ratelimit.Extension, *ratelimittest.Store) {
	t.Helper()
	limits := map[string]*tiers.Limit{"minute": {Capacity: 100, Per: tiers.Minute}}
	policy, err := tiers.Compile(tiers.Policy{Default: "all", Tiers: map[string]tiers.Tier{"all": {FailMode: "local", Limits: limits}}})
	require.NoError(t, err)
	store := ratelimittest.NewStore(nil)
	return ratelimit.New(ratelimit.Config{
		Store: store, Policy: policy, Subject: byTenantHeader, Observe: ratelimit.ObserveConfig{Logger: discard}, Settlement: ratelimit.SettlementConfig{Refund: true},
	}), store
}

func TestRunThatIsCalledBeforeUseWaitsForIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limiter, store := newUnused(t)
		var running sync.WaitGroup
		running.Go(func() { limiter.Run(t.Context()) })
		synctest.Wait()
		newGraphQLServer(&testserver.Resolver{}).Use(limiter)
		time.Sleep(2 * time.Second) //nolint:forbidigo // the clock of a synctest bubble
		instances, _, err := store.Beat(t.Context(), [8]byte{1})
		require.NoError(t, err)
		require.Equal(t, 2, instances, "Run has said that the server lives")
		require.NoError(t, limiter.Shutdown(t.Context()))
		running.Wait()
	})
}

func TestRunThatNoServerUsesEndsWithItsContextOrWithShutdown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		byContext, _ := newUnused(t)
		byShutdown, _ := newUnused(t)
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { byContext.Run(ctx) })
		running.Go(func() { byShutdown.Run(t.Context()) })
		synctest.Wait()
		stop()
		require.NoError(t, byShutdown.Shutdown(t.Context()))
		running.Wait()
	})
}

func TestAfterShutdownRunReturnsAndOperationsAreJudgedAndSettledNoMore(t *testing.T) {
	t.Parallel()
	for name, shutdownFirst := range map[string]bool{"before use": true, "after use": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limiter, store := newUnused(t)
			server := newGraphQLServer(&testserver.Resolver{})
			if shutdownFirst {
				require.NoError(t, limiter.Shutdown(t.Context()))
			}
			server.Use(limiter)
			require.NoError(t, limiter.Shutdown(t.Context()))
			require.NoError(t, limiter.Shutdown(t.Context()), "again")
			limiter.Run(t.Context())

			p := &inProcess{t: t, handler: ratelimit.Handler(server)}
			signal := p.post(request{Query: `{ search(first: 10) { ... on User { name } ... on Repository { name } } }`}).rateLimit(t)
			require.Positive(t, signal["charged"])
			require.NotContains(t, signal, "refunded")
			require.Empty(t, store.Settlements())
		})
	}
}

// TestRunUseAndShutdownMayComeAtOnce is about the race detector, and that everything ends.
func TestRunUseAndShutdownMayComeAtOnce(t *testing.T) {
	t.Parallel()
	for range 50 {
		limiter, _ := newUnused(t)
		var all sync.WaitGroup
		all.Go(func() { limiter.Run(t.Context()) })
		all.Go(func() { newGraphQLServer(&testserver.Resolver{}).Use(limiter) })
		for range 2 {
			all.Go(func() { _ = limiter.Shutdown(t.Context()) })
		}
		all.Wait()
	}
}

func TestShutdownWaitsForRunAndSaysWhatIsLeftWhileTheStoreIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limiter, store := newUnused(t)
		server := newGraphQLServer(&testserver.Resolver{})
		server.Use(limiter)
		p := &inProcess{t: t, handler: ratelimit.Handler(server)}
		ran := false
		var running sync.WaitGroup
		running.Go(func() { limiter.Run(t.Context()); ran = true })
		time.Sleep(10 * time.Second) //nolint:forbidigo // the clock of a synctest bubble
		p.post(request{Query: cheapQuery})
		store.Fail(bucket.ErrUnavailable)
		require.Equal(t, true, p.post(request{Query: cheapQuery}).rateLimit(t)["storeUnavailable"])
		ended, end := context.WithCancel(t.Context())
		end()
		require.ErrorIs(t, limiter.Shutdown(ended), context.Canceled)
		require.ErrorContains(t, limiter.Shutdown(t.Context()), `while the default store was away is not charged (tenants: 1)`)
		running.Wait()
		require.True(t, ran)
		store.Fail(nil)
		require.NoError(t, limiter.Shutdown(t.Context()), "it may be tried again")
		require.Equal(t, []int64{3}, applied(store))
	})
}

func TestAnExtensionServesOneSchema(t *testing.T) {
	t.Parallel()
	limiter, _ := newUnused(t)
	schema := testserver.NewExecutableSchema(testserver.Config{})
	require.NoError(t, limiter.Validate(schema))
	require.NoError(t, limiter.Validate(schema), "whoever wants no panic of srv.Use asks before")
	other := *schema.Schema()
	err := limiter.Validate(testserver.NewExecutableSchema(testserver.Config{Schema: &other}))
	require.ErrorContains(t, err, "in use by a server of another schema")
}

func TestAServerThatIsNotBehindTheHandlerIsToldSoOnce(t *testing.T) {
	t.Parallel()
	for _, behind := range []bool{true, false} {
		log := &bytes.Buffer{}
		p := newInProcess(t, ratelimittest.NewStore(nil), func(cfg *ratelimit.Config) {
			cfg.Observe.Logger = slog.New(slog.NewTextHandler(log, nil))
		})
		if !behind {
			p.handler = p.server
		}
		for range 2 {
			require.Equal(t, http.StatusOK, p.post(request{Query: cheapQuery}).Status)
		}
		want := 1
		if behind {
			want = 0
		}
		require.Equal(t, want, bytes.Count(log.Bytes(), []byte("serve ratelimit.Handler(srv) instead of srv")))
	}
}

// givingBack is a store that leases, and notes when it was last told what is held.
type givingBack struct {
	*bucket.Memory
	told atomic.Int64
}

func (s *givingBack) Exchange(ctx context.Context, exchange bucket.Exchange) (bucket.Exchanged, error) {
	s.told.Store(time.Now().UnixNano())
	return s.Memory.Exchange(ctx, exchange)
}

func TestWhatIsLeasedIsGivenBackInTimeThoughAnOperationUnderAKeyDoesNotEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &givingBack{Memory: bucket.NewMemory(bucket.MemoryConfig{})}
		// leasing is a server that leases of the store, of which an operation under a key runs for a minute.
		leasing := func(running *sync.WaitGroup, key string) *inProcess {
			resolver := &testserver.Resolver{}
			resolver.BeforeCreate = func(context.Context) { time.Sleep(time.Minute) } //nolint:forbidigo // the clock of a synctest bubble
			limiter := ratelimit.New(ratelimit.Config{
				Store: store, Policy: policyOf(t, "version: 1\ndefault: all\ntiers:\n  all: {lease: always, limits: {minute: {capacity: 80000, per: minute}}}\n"),
				Subject: byTenantHeader, Observe: ratelimit.ObserveConfig{Logger: discard},
			})
			server := newGraphQLServer(resolver)
			server.Use(limiter)
			running.Go(func() { limiter.Run(t.Context()) })
			p := &inProcess{t: t, extension: limiter, handler: ratelimit.Handler(server)}
			require.Eventually(t, func() bool {
				return p.post(request{Query: cheapQuery, Tenant: "acme"}).rateLimit(t)["approximate"] == true
			}, time.Minute, time.Second)
			if key != "" {
				running.Go(func() { p.post(request{Query: createUser, Key: key}) })
			}
			synctest.Wait()
			return p
		}
		// gives shuts the server down within a second, and returns how much of that was left when it gave back.
		gives := func(p *inProcess) (left time.Duration, err error) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			deadline, _ := ctx.Deadline()
			err = p.extension.Shutdown(ctx)
			return deadline.Sub(time.Unix(0, store.told.Load())), err
		}
		var running sync.WaitGroup
		left, err := gives(leasing(&running, testKey))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Second/4, left)

		// When all else is done it is not waited for.
		left, err = gives(leasing(&running, ""))
		require.NoError(t, err)
		require.Equal(t, time.Second, left)
		running.Wait()
	})
}

func TestShutdownWaitsForAnOperationUnderAKeyAndStoresItsAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limiter, store := newUnused(t)
		resolver := &testserver.Resolver{}
		resolver.BeforeCreate = func(context.Context) { time.Sleep(time.Minute) } //nolint:forbidigo // the clock of a synctest bubble
		server := newGraphQLServer(resolver)
		server.Use(limiter)
		p := &inProcess{t: t, handler: ratelimit.Handler(server)}
		var running sync.WaitGroup
		running.Go(func() { p.post(request{Query: createUser, Key: testKey}) })
		synctest.Wait()
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorContains(t, limiter.Shutdown(soon), "operations still ran under an idempotency key: context deadline exceeded")
		require.NoError(t, limiter.Shutdown(t.Context()))
		require.Len(t, store.Settlements(), 1)
		require.NotEmpty(t, store.Settlements()[0].Claim.Answer)
		running.Wait()
	})
}
