package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/testserver"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimittest"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// newSettledInProcess is newInProcess under settledPolicy, with refunds.
func newSettledInProcess(t *testing.T, store bucket.Store, configure func(*ratelimit.Config)) *inProcess {
	t.Helper()
	policy, err := tiers.Parse([]byte(settledPolicy))
	require.NoError(t, err)
	snapshot, err := tiers.Compile(policy)
	require.NoError(t, err)
	return newInProcess(t, store, func(cfg *ratelimit.Config) {
		cfg.Policy, cfg.Settlement.Refund = snapshot, true
		if configure != nil {
			configure(cfg)
		}
	})
}

// givenBack returns what the settlements of a store have given back, of those that it applied.
func givenBack(store *ratelimittest.Store) (back []int64) {
	for _, settlement := range store.Settlements() {
		if settlement.Settled.Applied {
			back = append(back, -settlement.Settled.Limits[0].Charged)
		}
	}
	return back
}

func results(i *instruments) map[string]float64 {
	return i.sums("ratelimit.settlements", "ratelimit.settlement.result")
}

func TestAChargeIsSettledOnceWhenTheStoreWasAwayOrItsReplyWasLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faultyStore{Store: ratelimittest.NewStore(&ratelimittest.Clock{})}
		i := &instruments{t: t}
		run := newSettledInProcess(t, store, i.configure)
		store.settleFailures.Store(4)
		run.post(request{Query: generous})
		require.NoError(t, run.extension.AwaitSettled(t.Context()))
		require.Equal(t, []int64{200}, givenBack(store.Store))

		store.settleLost.Store(2)
		run.post(request{Query: generous})
		require.NoError(t, run.extension.AwaitSettled(t.Context()))
		require.Equal(t, []int64{200, 200}, givenBack(store.Store))
		require.Len(t, store.Settlements(), 1+3, "the second was asked for three times")
		require.Equal(t, map[string]float64{"settled": 1, "settled_before": 1}, results(i))
	})
}

func TestASettlementIsDroppedWhenTheStoreIsAwayForTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faultyStore{Store: ratelimittest.NewStore(nil)}
		i := &instruments{t: t}
		run := newSettledInProcess(t, store, i.configure)
		run.post(request{Query: generous})
		require.NoError(t, run.extension.AwaitSettled(t.Context()))
		store.settleFailures.Store(1 << 40)
		run.post(request{Query: generous})
		began := time.Now()
		require.NoError(t, run.extension.AwaitSettled(t.Context()))
		require.LessOrEqual(t, time.Since(began), 65*time.Second)
		require.Equal(t, map[string]float64{"settled": 1, "dropped_away": 1}, results(i))
		// The bubble ends only when no goroutine is left in it.
	})
}

// holdingStore lets no settlement pass until it is told to.
type holdingStore struct {
	*ratelimittest.Store

	pass chan struct{}
}

func (s *holdingStore) Settle(ctx context.Context, settlement bucket.Settlement) (bucket.Settled, error) {
	select {
	case <-s.pass:
		return s.Store.Settle(ctx, settlement)
	case <-ctx.Done():
		return bucket.Settled{}, bucket.ErrUnavailable
	}
}

func TestTheResponseWaitsForNoSettlement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &holdingStore{Store: ratelimittest.NewStore(&ratelimittest.Clock{}), pass: make(chan struct{})}
		i := &instruments{t: t}
		run := newSettledInProcess(t, store, i.configure)
		for range 2 {
			require.InDelta(t, 200, run.post(request{Query: generous}).rateLimit(t)["refunded"], 0)
		}
		close(store.pass)
		require.NoError(t, run.extension.Shutdown(t.Context()))
		require.Equal(t, []int64{200, 200}, givenBack(store.Store))
		require.Equal(t, map[string]float64{"settled": 2}, results(i))
	})
}

func TestShutdownSettlesWhatWaitsAndTakesNothingMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faultyStore{Store: ratelimittest.NewStore(&ratelimittest.Clock{})}
		store.settleFailures.Store(2)
		i := &instruments{t: t}
		run := newSettledInProcess(t, store, i.configure)
		run.post(request{Query: generous})
		run.post(request{Query: generous})
		require.NoError(t, run.extension.Shutdown(t.Context()))
		require.Equal(t, []int64{200, 200}, givenBack(store.Store))

		require.NotContains(t, run.post(request{Query: generous}).rateLimit(t), "refunded")
		require.NoError(t, run.extension.Shutdown(t.Context()), "again")
		require.Equal(t, map[string]float64{"settled": 2, "dropped_closed": 1}, results(i))
	})
}

func TestShutdownDropsWhatTheStoreDoesNotSettleInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &holdingStore{Store: ratelimittest.NewStore(nil), pass: make(chan struct{})}
		i := &instruments{t: t}
		run := newSettledInProcess(t, store, i.configure)
		run.post(request{Query: generous})
		run.post(request{Query: generous})
		grace, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, run.extension.Shutdown(grace), context.DeadlineExceeded)
		synctest.Wait()
		require.Equal(t, map[string]float64{"dropped_closed": 2}, results(i))
	})
}

func TestAnExtensionThatWasNotUsedIsShutDownAtOnce(t *testing.T) {
	t.Parallel()
	require.NoError(t, ratelimit.New(ratelimit.Config{}).Shutdown(t.Context()))
}

// brokenStore breaks in each settlement.
type brokenStore struct {
	*ratelimittest.Store

	err error
}

func (s *brokenStore) Settle(context.Context, bucket.Settlement) (bucket.Settled, error) {
	if s.err == nil {
		panic("broken")
	}
	return bucket.Settled{}, s.err
}

func TestAStoreThatBreaksInASettlementIsAskedOnceAndEndsNothing(t *testing.T) {
	t.Parallel()
	for _, err := range []error{nil, bucket.ErrInvalid, errors.New("what no store returns")} {
		i := &instruments{t: t}
		run := newSettledInProcess(t, &brokenStore{ratelimittest.NewStore(nil), err}, i.configure)
		run.post(request{Query: generous})
		require.NoError(t, run.extension.AwaitSettled(t.Context()))
		require.Equal(t, map[string]float64{"failed": 1}, results(i))
	}
}

func TestSettlementsAreCountedAndTraced(t *testing.T) {
	t.Parallel()
	i := &instruments{t: t}
	f := newSettledFixture(t, ratelimit.SettlementConfig{Refund: true}, i.configure)
	f.post(request{Query: generous})
	f.post(request{Query: `mutation { createUser(input: {name: "Grace"}) { friends(first: 300) { name } } }`, Key: testKey})
	f.settled()
	require.Equal(t, map[string]float64{"actual": 400}, i.sums("ratelimit.refunded", "ratelimit.settlement.reason"))
	require.Equal(t, map[string]float64{"token": 400}, i.sums("ratelimit.refunded", "ratelimit.tier"))
	require.Equal(t, map[string]float64{"settled": 2}, results(i))

	var settled []attribute.Set
	for _, span := range i.spans.Ended() {
		if span.Name() == "ratelimit.settle" {
			settled = append(settled, attribute.NewSet(span.Attributes()...))
		}
	}
	require.Len(t, settled, 1, "that of the mutation is part of the end of its claim")
	for key, want := range map[attribute.Key]string{
		"ratelimit.settlement.reason": "actual", "ratelimit.settlement.result": "settled",
		"ratelimit.refunded": "200", "ratelimit.excess": "0", "ratelimit.store.calls": "1",
	} {
		require.Equal(t, want, valueOf(settled[0], key), key)
	}
}

func TestACanceledOperationIsPaid(t *testing.T) {
	t.Parallel()
	store := ratelimittest.NewStore(&ratelimittest.Clock{})
	run := newSettledInProcess(t, store, func(cfg *ratelimit.Config) { cfg.Settlement.FailedShare = 1 })
	ctx, leave := context.WithCancel(t.Context())
	run.resolver.OnExport = func(ctx context.Context, _ int) error {
		leave()
		return ctx.Err()
	}
	run.postAs(ctx, request{Query: failing})
	require.NoError(t, run.extension.AwaitSettled(t.Context()))
	require.Empty(t, givenBack(store))
}

func TestADeferredPartThatItsClientDoesNotWaitForIsPaid(t *testing.T) {
	t.Parallel()
	i := &instruments{t: t}
	cfg := ratelimit.Config{
		Store: ratelimittest.NewStore(nil), Policy: compiledPolicy(t), Subject: byTenantHeader,
		Settlement: ratelimit.SettlementConfig{Refund: true, FailedShare: 1},
	}
	i.configure(&cfg)
	server := handler.New(testserver.NewExecutableSchema(testserver.Config{Resolvers: &testserver.Resolver{}}))
	server.AddTransport(transport.SSE{MinEventInterval: time.Hour})
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	server.Use(&leavesAtTheSecond{leave: leave})
	limiter := ratelimit.New(cfg)
	server.Use(limiter)
	body := `{"query": "{ me { name ... @defer(label: \"a\") { a: friends(first: 3) { name } } ... @defer(label: \"b\") { b: friends(first: 3) { name } } } }"}`
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/query", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	request{}.setHeaders(r.Header)
	ratelimit.Handler(server).ServeHTTP(httptest.NewRecorder(), r)

	require.Eventually(t, func() bool {
		return len(i.sums("ratelimit.operation.actual_cost", "ratelimit.outcome")) > 0
	}, 10*time.Second, time.Millisecond)
	require.Positive(t, i.sums("ratelimit.operation.cost_difference", "ratelimit.outcome")[""], "something was not seen")
	require.NoError(t, limiter.Shutdown(t.Context()))
	require.Empty(t, results(i))
}

// countingStore counts how many settlements are with the store at once.
type countingStore struct {
	holdingStore

	now, most atomic.Int64
}

func (s *countingStore) Settle(ctx context.Context, settlement bucket.Settlement) (bucket.Settled, error) {
	if now := s.now.Add(1); now > s.most.Load() {
		s.most.Store(now)
	}
	defer s.now.Add(-1)
	return s.holdingStore.Settle(ctx, settlement)
}

func TestEightSettlementsAreWithASlowStoreAtOnceAndNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &countingStore{holdingStore: holdingStore{Store: ratelimittest.NewStore(nil), pass: make(chan struct{})}}
		run := newSettledInProcess(t, store, nil)
		for n := range 300 {
			run.post(request{Query: generous, Tenant: fmt.Sprint("tenant-", n)})
			synctest.Wait()
		}
		require.EqualValues(t, 8, store.most.Load())
		close(store.pass)
		require.NoError(t, run.extension.Shutdown(t.Context()))
		require.Len(t, givenBack(store.Store), 300)
	})
}

func TestAStreamThatItsClientLeavesIsPaid(t *testing.T) {
	t.Parallel()
	i := &instruments{t: t}
	f := newSettledFixture(t, ratelimit.SettlementConfig{Refund: true, FailedShare: 1}, i.configure)
	f.resolver.Tick = make(chan int)
	s := f.dial("token", nil)
	s.send(map[string]any{"type": "subscribe", "id": "1", "payload": map[string]any{"query": `subscription { ticks(count: 3) }`}})
	require.Eventually(t, func() bool { return len(f.store.Takes()) == 1 }, 10*time.Second, time.Millisecond)
	s.send(map[string]any{"type": "complete", "id": "1"})
	require.Eventually(t, func() bool {
		return len(i.sums("ratelimit.operation.actual_cost", "ratelimit.outcome")) > 0
	}, 10*time.Second, time.Millisecond)
	require.EqualValues(t, 13, f.spent("token"))
	require.Empty(t, f.store.Settlements())
}
