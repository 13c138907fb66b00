package e2e_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimittest"
)

// both are the two stores.
func both(t *testing.T) map[string]bucket.Store {
	t.Helper()
	return map[string]bucket.Store{"memory": ratelimittest.NewStore(nil), "redis": patientStore(t)}
}

func TestARepeatedQueryIsAnsweredFromItsStoredAnswerUnchargedAndDoesNotRun(t *testing.T) {
	t.Parallel()
	for name, store := range both(t) {
		server := newInProcess(t, store, nil)
		first := server.post(request{Query: cheapQuery, Key: testKey})
		require.EqualValues(t, 3, first.rateLimit(t)["charged"], name)
		for range 10 {
			again := server.post(request{Query: cheapQuery, Key: testKey})
			require.Equal(t, dataOf(t, first), dataOf(t, again), name)
			require.Equal(t, "true", again.Header.Get("Idempotent-Replayed"), name)
			require.Equal(t, true, again.rateLimit(t)["replayed"], name)
			require.EqualValues(t, 0, again.rateLimit(t)["charged"], name)
		}
		require.EqualValues(t, 1, server.resolver.Asked.Load(), name)
	}
}

func TestTheAnswerOfAQueryIsStoredForTenMinutesAndThenItRunsAtItsPrice(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.post(request{Query: cheapQuery, Key: testKey})
	f.post(request{Query: createUser, Key: testKey + "-m"})
	f.clock.Advance(10*time.Minute - time.Millisecond)
	require.Equal(t, true, f.post(request{Query: cheapQuery, Key: testKey}).rateLimit(t)["replayed"])
	f.clock.Advance(time.Millisecond)
	again := f.post(request{Query: cheapQuery, Key: testKey})
	require.EqualValues(t, 3, again.rateLimit(t)["charged"])
	require.EqualValues(t, 2, f.resolver.Asked.Load())
	require.Equal(t, true, f.post(request{Query: createUser, Key: testKey + "-m"}).rateLimit(t)["replayed"], "that of a mutation for a day")
}

func TestAnEmptyBudgetRefusesNoReplayOfAQuery(t *testing.T) {
	t.Parallel()
	for name, store := range both(t) {
		server := newInProcess(t, store, underLimits(t, "day: {capacity: 30, per: day, window: fixed}"))
		for i := range 10 {
			server.post(request{Query: cheapQuery, Key: fmt.Sprint(testKey, i)})
		}
		require.Equal(t, http.StatusTooManyRequests, server.post(request{Query: cheapQuery}).Status, name)
		for i := range 10 {
			again := server.post(request{Query: cheapQuery, Key: fmt.Sprint(testKey, i)})
			require.Equal(t, true, again.rateLimit(t)["replayed"], "%s: %s", name, again.Body)
		}
		require.EqualValues(t, 10, server.resolver.Asked.Load(), name)
	}
}

// unstored is what keeps the answer of a query from being stored.
var unstored = map[string]struct {
	query     string
	configure func(*testing.T, *ratelimit.Config)
}{
	"it is too large":          {cheapQuery, func(_ *testing.T, cfg *ratelimit.Config) { cfg.Idempotency.MaxAnswer = 10 }},
	"none is stored":           {cheapQuery, func(_ *testing.T, cfg *ratelimit.Config) { cfg.Idempotency.MaxAnswer = ratelimit.None }},
	"the tenant has its share": {cheapQuery, func(_ *testing.T, cfg *ratelimit.Config) { cfg.Idempotency.MaxAnswers = 10 }},
	"it has errors":            {`{ fails me { name } }`, nil},
	"the store of answers is broken": {cheapQuery, func(_ *testing.T, cfg *ratelimit.Config) {
		cfg.Idempotency.Answers = brokenAnswers{put: true}
	}},
	"the codec fails": {cheapQuery, func(_ *testing.T, cfg *ratelimit.Config) {
		cfg.Idempotency.Codec = brokenCodec{encode: func() error { return errBroken }}
	}},
	"a limit counts its bytes": {cheapQuery, func(t *testing.T, cfg *ratelimit.Config) {
		t.Helper()
		underLimits(t, "day: {capacity: 100, per: day, window: fixed}, answers: {unit: answer_bytes, capacity: 10, per: day}")(cfg)
	}},
}

func TestAQueryWhoseAnswerIsNotStoredRunsAgainAtItsPrice(t *testing.T) {
	t.Parallel()
	for name, why := range unstored {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, func(cfg *ratelimit.Config) {
				underLimits(t, "day: {capacity: 100, per: day, window: fixed}")(cfg)
				if why.configure != nil {
					why.configure(t, cfg)
				}
			})
			var spent float64
			for run := range 4 {
				got := f.post(request{Query: why.query, Key: testKey})
				require.Equal(t, http.StatusOK, got.Status, got.Body)
				require.Empty(t, got.Header.Get("Idempotent-Replayed"))
				require.InDelta(t, got.rateLimit(t)["cost"], got.rateLimit(t)["charged"], 0, "run %d", run)
				spent += got.rateLimit(t)["cost"].(float64)
				require.InDelta(t, 100-spent, got.rateLimit(t)["remaining"], 0)
			}
		})
	}
}

func TestADeferredQueryUnderAKeyRunsAgainAtItsPrice(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	for range 3 {
		require.Contains(t, f.multipartMixed(request{Query: deferQuery, Key: testKey}).Body, `"charged":6`)
	}
	require.EqualValues(t, 3, f.resolver.Asked.Load())
}

// TestRepeatsUnderKeysBuyNoMoreThanTheBudget sends each query four times, of which the answers are stored, or not.
func TestRepeatsUnderKeysBuyNoMoreThanTheBudget(t *testing.T) {
	t.Parallel()
	for name, largest := range map[string]int{"answers are stored": 0, "answers are not stored": ratelimit.None} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, func(cfg *ratelimit.Config) {
				underLimits(t, "day: {capacity: 60, per: day, window: fixed}, seen: {unit: requests, capacity: 15, per: day}")(cfg)
				cfg.Idempotency.MaxAnswer = largest
			})
			for i := range 40 {
				for range 4 {
					f.post(request{Query: cheapQuery, Key: fmt.Sprint(testKey, i)})
				}
			}
			require.LessOrEqual(t, f.resolver.Asked.Load(), int64(15), "runs under a limit of 15 requests")
		})
	}
}

func TestOfManyRepeatsOfAQueryAtOnceOneRuns(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	const repeats = 20
	release, answered := make(chan struct{}), make(chan reply, repeats)
	f.resolver.OnExport = func(context.Context, int) error { <-release; return nil }
	var running sync.WaitGroup
	for range repeats {
		running.Go(func() { answered <- f.post(request{Query: exportQuery, Key: testKey}) })
	}
	for range repeats - 1 {
		require.Equal(t, ratelimitclient.CodeInFlight, (<-answered).errorCode(t))
	}
	close(release)
	running.Wait()
	require.Equal(t, http.StatusOK, (<-answered).Status)
	require.EqualValues(t, 1, f.resolver.Asked.Load())
}

func TestAQueryWhoseStoredAnswerCannotBeHadRunsAgainAtItsPriceAndAMutationNever(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		configure func(*ratelimit.IdempotencyConfig)
		code      string
	}{
		"it was lost": {func(cfg *ratelimit.IdempotencyConfig) {
			cfg.Answers = &answerMap{getErr: idempotency.ErrNoAnswer}
		}, ratelimitclient.CodeAnswerUnavailable},
		"its store is away": {func(cfg *ratelimit.IdempotencyConfig) {
			cfg.Answers = &answerMap{getErr: errBroken}
		}, ratelimitclient.CodeUnavailable},
		"nobody can read it": {func(cfg *ratelimit.IdempotencyConfig) {
			cfg.Codec = brokenCodec{decode: func() error { return errBroken }}
		}, ratelimitclient.CodeAnswerUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log sharedLog
			f := newFixture(t, func(cfg *ratelimit.Config) {
				underLimits(t, "day: {capacity: 100, per: day, window: fixed}")(cfg)
				c.configure(&cfg.Idempotency)
				cfg.Observe.Logger = slog.New(slog.NewTextHandler(&log, nil))
			})
			for left := 97; left > 90; left -= 3 {
				got := f.post(request{Query: cheapQuery, Key: testKey})
				require.Equal(t, http.StatusOK, got.Status, got.Body)
				require.Empty(t, got.Header.Get("Idempotent-Replayed"))
				require.EqualValues(t, 3, got.rateLimit(t)["charged"])
				require.EqualValues(t, left, got.rateLimit(t)["remaining"])
			}
			require.EqualValues(t, 3, f.resolver.Asked.Load())
			require.Equal(t, 1, strings.Count(log.String(), "a stored answer cannot be had: its query runs again"), "one line for a tenant")
			f.post(request{Query: createUser, Key: testKey + "-m"})
			require.Equal(t, c.code, f.post(request{Query: createUser, Key: testKey + "-m"}).errorCode(t))
			require.EqualValues(t, 1, f.resolver.Created.Load())
		})
	}
}

func TestAQueryWhoseStoredAnswerIsLostIsRefusedWhereItsPriceIsNotLeft(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(cfg *ratelimit.Config) {
		underLimits(t, "day: {capacity: 5, per: day, window: fixed}")(cfg)
		cfg.Idempotency.Answers = &answerMap{getErr: idempotency.ErrNoAnswer}
	})
	require.Equal(t, http.StatusOK, f.post(request{Query: cheapQuery, Key: testKey}).Status)
	require.Equal(t, ratelimitclient.CodeRateLimited, f.post(request{Query: cheapQuery, Key: testKey}).errorCode(t))
	require.EqualValues(t, 1, f.resolver.Asked.Load())
}

func TestAKeyedQueryIsCorrectedToItsActualCostLikeAnyOther(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(cfg *ratelimit.Config) {
		underLimits(t, "day: {capacity: 1000, per: day, window: fixed}")(cfg)
		cfg.Settlement.Refund = true
	})
	first := f.post(request{Query: generous, Key: testKey}).rateLimit(t)
	for name, want := range map[string]float64{"charged": 302, "actual": 102, "refunded": 200, "remaining": 898} {
		require.InDelta(t, want, first[name], 0, name)
	}
	require.EqualValues(t, 102, f.spent("free"))
	again := f.post(request{Query: generous, Key: testKey}).rateLimit(t)
	require.EqualValues(t, 0, again["charged"])
	require.EqualValues(t, 898, again["remaining"])
}

func TestAnInstanceStoresNoMoreOfATenantThanItsShareOfMaxAnswers(t *testing.T) {
	t.Parallel()
	size := func(query string) int {
		f := newFixture(t, nil)
		f.post(request{Query: query, Key: testKey})
		return len(f.store.Settlements()[0].Claim.Answer)
	}
	for name, c := range map[string]struct {
		instances, answers int
		limits             string
		stored             int
	}{
		"one instance has all":                  {1, 2, "", 2},
		"one of two has half":                   {2, 2, "", 1},
		"without a bound":                       {1, ratelimit.None, "", 5},
		"an enforced limit holds in its place":  {1, 2, ", answers: {unit: answer_bytes, capacity: 10000, per: day}", 5},
		"a limit in shadow is not in its place": {1, 2, ", answers: {unit: answer_bytes, capacity: 10000, per: day, mode: shadow}", 2},
	} {
		for _, query := range []string{cheapQuery, createUser} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				var log sharedLog
				f := newFixture(t, func(cfg *ratelimit.Config) {
					underLimits(t, "day: {capacity: 1000, per: day}"+c.limits)(cfg)
					cfg.Outage.Instances = c.instances
					cfg.Idempotency.MaxAnswers = c.answers
					if c.answers > 0 {
						cfg.Idempotency.MaxAnswers *= size(query)
					}
					cfg.Observe.Logger = slog.New(slog.NewTextHandler(&log, nil))
				})
				for _, tenant := range []string{"a", "b"} {
					for i := range 5 {
						f.post(request{Query: query, Key: fmt.Sprint(testKey, i), Tenant: tenant})
					}
				}
				stored := map[string]int{}
				for _, s := range f.store.Settlements() {
					if s.Claim.Answer != nil {
						stored[s.Claim.Tenant]++
					}
				}
				require.Equal(t, map[string]int{"a": c.stored, "b": c.stored}, stored)
				require.Equal(t, c.stored < 5, strings.Contains(log.String(), "has used up Idempotency.MaxAnswers"), log.String())
			})
		}
	}
}

func TestAFloodOfQueriesTakesNoRoomFromTheAnswersOfMutations(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(cfg *ratelimit.Config) {
		underLimits(t, "day: {capacity: 1000, per: day}")(cfg)
		cfg.Idempotency.MaxAnswers = 200
	})
	for i := range 100 {
		f.post(request{Query: cheapQuery, Key: fmt.Sprint(testKey, i)})
	}
	f.post(request{Query: createUser, Key: testKey + "-m"})
	require.Equal(t, true, f.post(request{Query: createUser, Key: testKey + "-m"}).rateLimit(t)["replayed"])
}

func TestReplaysOfQueriesAreCappedLikeThoseOfMutations(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		configure func(*ratelimit.Config)
		most      int
	}{
		"by a limit":    {underLimits(t, "minute: {capacity: 100, per: minute}, again: {unit: replays, capacity: 2, per: minute}"), 2},
		"by the server": {nil, idempotency.MaxReplays},
	} {
		f := newFixture(t, test.configure)
		for range 1 + test.most {
			require.Equal(t, http.StatusOK, f.post(request{Query: cheapQuery, Key: testKey}).Status, name)
		}
		require.Equal(t, ratelimitclient.CodeRateLimited, f.post(request{Query: cheapQuery, Key: testKey}).errorCode(t), name)
		require.EqualValues(t, 1, f.resolver.Asked.Load(), name)
	}
}

func TestAFloodOfLargeAnswersTakesNoMoreOfRedisThanMaxAnswersWhereNoLimitCountsThem(t *testing.T) {
	t.Parallel()
	const most, floods = 20_000, 60
	client, store := patientRedis(t)
	server := newInProcess(t, store, func(cfg *ratelimit.Config) {
		underLimits(t, "day: {capacity: 1000000, per: day}")(cfg)
		cfg.Idempotency.MaxAnswers = most
	})
	large := `{ users(first: 50) { id name } }`
	answered := 0
	for i := range floods {
		answered += len(dataOf(t, server.post(request{Query: large, Key: fmt.Sprint(testKey, i)})))
	}
	require.Greater(t, answered, 2*most)
	n, size := records(t, client)
	require.Equal(t, floods, n)
	require.LessOrEqual(t, size, int64(most+floods*headerBytes))
	require.Greater(t, size, int64(most/2), "some are stored")
}
