package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/internal/testserver"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimittest"
)

// breakingOperations is a later extension that panics while it is active.
type breakingOperations struct{ active atomic.Bool }

func (*breakingOperations) ExtensionName() string                   { return "BreakingOperations" }
func (*breakingOperations) Validate(graphql.ExecutableSchema) error { return nil }

func (b *breakingOperations) InterceptOperation(ctx context.Context, next graphql.OperationHandler) graphql.ResponseHandler {
	if b.active.Load() {
		panic("on purpose")
	}
	return next(ctx)
}

func TestAPanicBeforeAMutationRanReleasesItsKey(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(cfg *ratelimit.Config) { cfg.Idempotency.RefuseAbandoned = true })
	breaking := &breakingOperations{}
	f.server.Use(breaking)
	breaking.active.Store(true)
	f.post(request{Query: createUser, Key: testKey})
	breaking.active.Store(false)
	again := f.post(request{Query: createUser, Key: testKey})
	require.Equal(t, http.StatusOK, again.Status, again.Body)
	require.EqualValues(t, 14, again.rateLimit(t)["charged"])
	require.EqualValues(t, 1, f.resolver.Created.Load())
}

func TestAPanicBeforeAQueryRanIsChargedLikeARun(t *testing.T) {
	t.Parallel()
	f := newFixture(t, underLimits(t, "day: {capacity: 100, per: day, window: fixed}"))
	breaking := &breakingOperations{}
	f.server.Use(breaking)
	breaking.active.Store(true)
	f.post(request{Query: cheapQuery, Key: testKey})
	f.post(request{Query: cheapQuery, Key: testKey})
	breaking.active.Store(false)
	ran := f.post(request{Query: cheapQuery, Key: testKey}).rateLimit(t)
	require.EqualValues(t, 3, ran["charged"])
	require.EqualValues(t, 100-3*3, ran["remaining"])
}

// TestWhatFailsUnderKeysIsChargedAsWithoutOne has no limit but one in points and one in records, which a release fills again.
func TestWhatFailsUnderKeysIsChargedAsWithoutOne(t *testing.T) {
	t.Parallel()
	refuse := &refusingResponses{}
	refuse.active.Store(true)
	breaking := &breakingOperations{}
	breaking.active.Store(true)
	collected := request{Query: `mutation($x: Boolean = true) { createUser(input: {name: "Grace"}) @include(if: $x) { id } }`, Variables: map[string]any{"x": nil}}
	for name, failing := range map[string]struct {
		later graphql.HandlerExtension
		request
	}{
		"another extension refuses":          {refuse, request{Query: createUser}},
		"another extension panics":           {breaking, request{Query: createUser}},
		"a panic while fields are collected": {&refusingResponses{}, collected},
	} {
		for _, next := range []string{"", "%d"} {
			f := newFixture(t, underLimits(t, "day: {capacity: 50, per: day, window: fixed}, keys: {unit: records, capacity: 1, per: day}"))
			f.server.Use(failing.later)
			statuses := map[bool]int{}
			for i := range 8 {
				r := failing.request
				r.Key = strings.ReplaceAll(testKey+next, "%d", fmt.Sprint(i))
				statuses[f.post(r).Status == http.StatusTooManyRequests]++
			}
			require.Equal(t, map[bool]int{false: 3, true: 5}, statuses, name)
			require.Zero(t, f.resolver.Created.Load())
		}
	}
}

// brokenAnswers is a store of answers that panics.
type brokenAnswers struct{ put, get bool }

func (b brokenAnswers) Put(context.Context, string, []byte, time.Duration) error {
	if b.put {
		panic("on purpose")
	}
	return nil
}

func (b brokenAnswers) Get(context.Context, string) ([]byte, error) {
	if b.get {
		panic("on purpose")
	}
	return nil, errors.New("away")
}

func TestAStoreOfAnswersThatPanicsIsOneThatFails(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		answers brokenAnswers
		code    string
	}{
		"Put": {brokenAnswers{put: true}, ratelimitclient.CodeAnswerUnavailable},
		"Get": {brokenAnswers{get: true}, ratelimitclient.CodeUnavailable},
	} {
		f := newFixture(t, func(cfg *ratelimit.Config) { cfg.Idempotency.Answers = want.answers })
		first := f.post(request{Query: createUser, Key: testKey})
		require.Contains(t, first.Body, `"Grace"`, name)
		again := f.post(request{Query: createUser, Key: testKey})
		require.Equal(t, want.code, again.errorCode(t), name)
		require.Contains(t, f.dial("free", nil).run("1", request{Query: createUser, Key: testKey})[0], want.code, name)
		require.EqualValues(t, 1, f.resolver.Created.Load(), name)
	}
}

// brokenRenewals is a store that panics where nobody but a timer has called it.
type brokenRenewals struct{ *ratelimittest.Store }

func (brokenRenewals) Renew(context.Context, string, *idempotency.Claim) (bool, error) {
	panic("on purpose")
}

func TestAStoreThatPanicsWhenALeaseIsRenewedEndsNoProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log sharedLog
		run := newInProcess(t, brokenRenewals{ratelimittest.NewStore(nil)}, func(cfg *ratelimit.Config) {
			cfg.Idempotency.Lease = 3 * time.Second
			cfg.Observe.Logger = slog.New(slog.NewTextHandler(&log, nil))
		})
		run.resolver.BeforeCreate = func(context.Context) { sleep(2 * time.Second) }
		require.Contains(t, run.post(request{Query: createUser, Key: testKey}).Body, `"Grace"`)
		require.Contains(t, log.String(), "Store.Renew panicked: on purpose")
	})
}

// lostTakes is a store that charges and claims, and whose replies are lost while it is active.
type lostTakes struct {
	*ratelimittest.Store
	active atomic.Bool
}

func (s *lostTakes) Take(ctx context.Context, take bucket.Take) (bucket.Result, error) {
	result, err := s.Store.Take(ctx, take)
	if s.active.Load() {
		return bucket.Result{}, bucket.ErrAmbiguous
	}
	return result, err
}

func TestAClaimWhoseReplyWasLostIsReleasedWhereNothingRanUnderIt(t *testing.T) {
	t.Parallel()
	for name, query := range map[string]string{"mutation": createUser, "query": cheapQuery} {
		store := &lostTakes{Store: ratelimittest.NewStore(nil)}
		server := newInProcess(t, store, func(cfg *ratelimit.Config) { cfg.Idempotency.RefuseAbandoned = true })
		store.active.Store(true)
		server.post(request{Query: query, Key: testKey})
		store.active.Store(false)
		require.NoError(t, server.extension.AwaitSettled(t.Context()))
		again := server.post(request{Query: query, Key: testKey})
		require.Equal(t, http.StatusOK, again.Status, "%s: %s", name, again.Body)
		require.NotContains(t, again.rateLimit(t), "replayed", name)
	}
}

// TestAMutationThatRanWithoutTheClaimThatItMayHoldIsNotRunAgain lets it run while the store is away.
func TestAMutationThatRanWithoutTheClaimThatItMayHoldIsNotRunAgain(t *testing.T) {
	t.Parallel()
	store := &lostTakes{Store: ratelimittest.NewStore(nil)}
	server := newInProcess(t, store, func(cfg *ratelimit.Config) { cfg.Idempotency.AdmitUnclaimed = true })
	store.active.Store(true)
	require.Contains(t, server.post(request{Query: createUser, Key: testKey}).Body, `"Grace"`)
	store.active.Store(false)
	require.NoError(t, server.extension.AwaitSettled(t.Context()))
	require.Equal(t, ratelimitclient.CodeInFlight, server.post(request{Query: createUser, Key: testKey}).errorCode(t))
}

func TestALargestAnswerBeyondAllReasonIsAMistake(t *testing.T) {
	t.Parallel()
	cfg := ratelimit.Config{Store: ratelimittest.NewStore(nil), Policy: compiledPolicy(t), Subject: byTenantHeader}
	for size, wrong := range map[int]bool{16 << 20: false, 16<<20 + 1: true} {
		cfg.Idempotency.MaxAnswer = size
		err := ratelimit.New(cfg).Validate(testserver.NewExecutableSchema(testserver.Config{Resolvers: &testserver.Resolver{}}))
		require.Equal(t, wrong, err != nil && strings.Contains(err.Error(), "Idempotency.MaxAnswer is 16777217, want up to 16777216, or None"), err)
	}
}
