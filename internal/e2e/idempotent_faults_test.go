package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimittest"
)

// allTries is how often a claim is tried to be settled.
const allTries = 4

// sharedLog is a log that goroutines write while a test reads it.
type sharedLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *sharedLog) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *sharedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// sleep moves the clock of a synctest bubble.
func sleep(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // see above

// TestAStoreThatIsLostBetweenClaimAndAnswerLeavesTheClaimToItsLease loses the store for all tries to settle.
// The client of the first attempt gets its answer all the same.
func TestAStoreThatIsLostBetweenClaimAndAnswerLeavesTheClaimToItsLease(t *testing.T) {
	for name, refuse := range map[string]bool{"by default the next attempt runs": false, "or its outcome is unknown": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &faultyStore{Store: ratelimittest.NewStore(nil)}
				store.settleFailures.Store(allTries)
				run := newInProcess(t, store, func(cfg *ratelimit.Config) {
					showShadow(cfg)
					cfg.Idempotency.RefuseAbandoned = refuse
				})
				mutation := request{Query: createUser, Key: testKey, Tenant: "shadow"}
				first := run.post(mutation)
				require.Equal(t, http.StatusOK, first.Status)
				require.Contains(t, first.Body, `"Grace"`)
				require.Equal(t, ratelimitclient.CodeInFlight, run.post(mutation).errorCode(t))
				sleep(idempotency.DefaultLease)
				again := run.post(mutation)
				require.EqualValues(t, 0, again.rateLimit(t)["charged"], "charged once")
				if refuse {
					require.Equal(t, http.StatusConflict, again.Status)
					require.Equal(t, ratelimitclient.CodeOutcomeUnknown, again.errorCode(t))
					require.Empty(t, again.Header.Get("Retry-After"))
					require.EqualValues(t, 1, run.resolver.Created.Load(), "its effect happened at most once")
					return
				}
				require.NotContains(t, again.rateLimit(t), "replayed")
				require.EqualValues(t, 2, run.resolver.Created.Load(), "its effect happened at least once")
				require.Equal(t, dataOf(t, again), dataOf(t, run.post(mutation)), "the answer that was stored is replayed")
				require.EqualValues(t, 2, run.resolver.Created.Load())
			})
		})
	}
}

func TestAnAbandonedQueryRunsAgainAlsoWhereMutationsMustNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faultyStore{Store: ratelimittest.NewStore(nil)}
		store.settleFailures.Store(allTries)
		run := newInProcess(t, store, func(cfg *ratelimit.Config) { cfg.Idempotency.RefuseAbandoned = true })
		run.post(request{Query: cheapQuery, Key: testKey})
		sleep(idempotency.DefaultLease)
		again := run.post(request{Query: cheapQuery, Key: testKey})
		require.Equal(t, http.StatusOK, again.Status)
		require.EqualValues(t, 0, again.rateLimit(t)["charged"])
	})
}

func TestASettlementWhoseReplyIsLostIsNoLostClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log sharedLog
		store := &faultyStore{Store: ratelimittest.NewStore(nil)}
		store.settleLost.Store(1)
		run := newInProcess(t, store, func(cfg *ratelimit.Config) { cfg.Observe.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		run.post(request{Query: createUser, Key: testKey})
		require.Equal(t, true, run.post(request{Query: createUser, Key: testKey}).rateLimit(t)["replayed"])
		require.NotContains(t, log.String(), "ended without its claim")
	})
}

// TestAnAttemptThatLostItsLeaseReplacesNoAnswer keeps the store from renewing, so that a second attempt runs
// beside the first and ends before it.
func TestAnAttemptThatLostItsLeaseReplacesNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lease = 3 * time.Second
		var log sharedLog
		store := &faultyStore{Store: ratelimittest.NewStore(nil)}
		store.renewFailures.Store(1000)
		run := newInProcess(t, store, func(cfg *ratelimit.Config) {
			cfg.Idempotency.Lease = lease
			cfg.Observe.Logger = slog.New(slog.NewTextHandler(&log, nil))
		})
		var slow atomic.Bool
		slow.Store(true)
		run.resolver.BeforeCreate = func(context.Context) {
			if slow.CompareAndSwap(true, false) {
				sleep(3 * lease)
			}
		}
		first := make(chan reply, 1)
		go func() { first <- run.post(request{Query: createUser, Key: testKey}) }()
		sleep(lease + time.Second)
		second := run.post(request{Query: createUser, Key: testKey})
		require.EqualValues(t, 0, second.rateLimit(t)["charged"])
		require.NotEqual(t, dataOf(t, second), dataOf(t, <-first), "both ran")
		require.Contains(t, log.String(), "ended without its claim")
		require.Equal(t, dataOf(t, second), dataOf(t, run.post(request{Query: createUser, Key: testKey})))
	})
}

func TestARepeatIsAnsweredAndNotChargedAgainUnderAnotherPolicy(t *testing.T) {
	t.Parallel()
	store := patientStore(t)
	server := newReplica(t, store, "day: {capacity: 1000, per: day}")
	mutation := request{Query: createUser, Key: testKey, Tenant: "acme"}
	first := server.post(mutation)
	require.EqualValues(t, 986, first.rateLimit(t)["remaining"])
	for limits, want := range map[string]float64{
		"day: {capacity: 500, per: day}":                  486,
		"day: {capacity: 10, per: day}":                   0, // it could not even be admitted any more
		"other: {capacity: 700, per: day}":                700,
		"day: {capacity: 1000, per: day, unit: requests}": 1000,
	} {
		server.reload(t, limits)
		again := server.post(mutation)
		require.Equal(t, http.StatusOK, again.Status, limits)
		require.Equal(t, dataOf(t, first), dataOf(t, again), limits)
		signal := again.rateLimit(t)
		require.Equal(t, true, signal["replayed"], limits)
		require.EqualValues(t, 0, signal["charged"], limits)
		require.InDelta(t, want, signal["remaining"], 0, limits)
	}
	require.EqualValues(t, 1, server.resolver.Created.Load())
}

func TestARepeatIsAnsweredUnderAnotherTierAndRefusedToABlockedOne(t *testing.T) {
	t.Parallel()
	tier := "free"
	f := newFixture(t, func(cfg *ratelimit.Config) {
		cfg.Subject = func(context.Context, *ratelimit.Request) (ratelimit.Subject, error) {
			return ratelimit.Subject{Tenant: "acme", Tier: tier}, nil
		}
	})
	first := f.post(request{Query: createUser, Key: testKey})
	for _, tier = range []string{"shadow", "unlimited", "closed"} {
		again := f.post(request{Query: createUser, Key: testKey, Cost: "full"})
		require.Equal(t, true, again.rateLimit(t)["replayed"], tier)
		require.Equal(t, tier, again.rateLimit(t)["tier"])
		require.Equal(t, dataOf(t, first), dataOf(t, again), tier)
	}
	tier = "blocked"
	require.Equal(t, ratelimitclient.CodeTenantBlocked, f.post(request{Query: createUser, Key: testKey}).errorCode(t))
	require.EqualValues(t, 1, f.resolver.Created.Load())
}

// TestARedisThatFreezesBetweenClaimAndAnswerLetsNoEffectHappenTwice freezes a real Redis while the mutation
// runs, for longer than all tries to settle its claim.
func TestARedisThatFreezesBetweenClaimAndAnswerLetsNoEffectHappenTwice(t *testing.T) {
	t.Parallel()
	frozen := redistest.Start(t)
	options := &redis.Options{Addr: frozen.Addr}
	redisclient.Bound(options)
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	store, err := bucket.NewRedis(bucket.RedisConfig{Client: client, Timeout: 50 * time.Millisecond})
	require.NoError(t, err)
	server := newInProcess(t, store, func(cfg *ratelimit.Config) {
		cfg.Idempotency.RefuseAbandoned, cfg.Idempotency.Lease = true, time.Second
	})
	server.resolver.BeforeCreate = func(context.Context) { frozen.Freeze(t) }
	mutation := request{Query: createUser, Key: testKey}
	first := server.post(mutation)
	for tries := 0; first.Status == http.StatusServiceUnavailable && tries < 100; tries++ {
		// A busy machine keeps Redis from answering in time, and nothing has run. A key whose claim was
		// written all the same is in flight, so that the next try is under another.
		mutation.Key = fmt.Sprint(testKey, tries)
		first = server.post(mutation)
	}
	require.Equal(t, http.StatusOK, first.Status, first.Body)
	require.Contains(t, first.Body, `"Grace"`, "the client has its answer")
	// What was sent to the frozen server has come too late when it reads it.
	<-time.After(200 * time.Millisecond)
	frozen.Thaw(t)
	again := server.post(mutation)
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); again = server.post(mutation) {
		if code := again.errorCode(t); code != ratelimitclient.CodeInFlight && code != ratelimitclient.CodeUnavailable {
			break
		}
		<-time.After(20 * time.Millisecond)
	}
	require.Equal(t, ratelimitclient.CodeOutcomeUnknown, again.errorCode(t), again.Body)
	require.EqualValues(t, 1, server.resolver.Created.Load())
}
