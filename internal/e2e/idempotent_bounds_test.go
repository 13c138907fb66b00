package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimittest"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// underLimits makes the limits, in the words of a policy, those of all tenants.
func underLimits(t *testing.T, limits string) func(*ratelimit.Config) {
	t.Helper()
	policy, err := tiers.Parse([]byte(fmt.Sprintf("{version: 1, default: pro, tiers: {pro: {limits: {%s}}}}", limits)))
	require.NoError(t, err)
	snapshot, err := tiers.Compile(policy)
	require.NoError(t, err)
	return func(cfg *ratelimit.Config) { cfg.Policy = snapshot }
}

// patientRedis starts a Redis and returns a client and a store that wait long enough for a test.
func patientRedis(t *testing.T) (*redis.Client, bucket.Store) {
	t.Helper()
	options := &redis.Options{Addr: redistest.Start(t).Addr}
	redisclient.Bound(options)
	options.DialTimeout, options.ReadTimeout, options.WriteTimeout, options.PoolTimeout = patience, patience, patience, patience
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	store, err := bucket.NewRedis(bucket.RedisConfig{Client: client, Timeout: patience})
	require.NoError(t, err)
	return client, store
}

// records returns how many records of keys there are in Redis, and their bytes.
func records(t *testing.T, client *redis.Client) (n int, size int64) {
	t.Helper()
	names, err := client.Keys(context.Background(), "rl:*:i:*").Result()
	require.NoError(t, err)
	for _, name := range names {
		length, err := client.StrLen(context.Background(), name).Result()
		require.NoError(t, err)
		size += length
	}
	return len(names), size
}

// flood is how many keys a flood has.
const flood = 400

// headerBytes is how long a record is without its answer.
const headerBytes = 46

func TestAFloodOfKeysThatAreRefusedLeavesNoRecord(t *testing.T) {
	t.Parallel()
	client, store := patientRedis(t)
	server := newInProcess(t, store, underLimits(t, "day: {capacity: 30, per: day, window: fixed}"))
	for i := range flood {
		server.post(request{Query: createUser, Key: fmt.Sprint(testKey, i)})
	}
	require.EqualValues(t, 2, server.resolver.Created.Load())
	n, _ := records(t, client)
	require.Equal(t, 2, n)
	keys, err := client.DBSize(context.Background()).Result()
	require.NoError(t, err)
	require.EqualValues(t, 4, keys, "the records, one budget, and the instances")
}

// free is what costs nothing, with a large answer.
var free = map[string]string{
	"query":    `{ ` + strings.Repeat("a", 1000) + `: __typename }`,
	"mutation": `mutation { ` + strings.Repeat("a", 1000) + `: __typename }`,
	"budget":   `{ rateLimit { cost } }`,
}

func TestAKeyOnWhatIsChargedNothingLeavesNoRecord(t *testing.T) {
	t.Parallel()
	client, store := patientRedis(t)
	server := newInProcess(t, store, underLimits(t,
		"minute: {capacity: 100, per: minute}, seen: {unit: requests, capacity: 1, per: day, mode: shadow}, "+
			"reported: {unit: records, capacity: 1, per: day, soft: true}"))
	for name, query := range free {
		for i := range 20 {
			got := server.post(request{Query: query, Key: fmt.Sprint(testKey, name, i)})
			require.Equal(t, http.StatusOK, got.Status, got.Body)
			require.EqualValues(t, 0, got.rateLimit(t)["charged"])
			require.Contains(t, got.rateLimit(t)["idempotencyKeyIgnored"], "the operation costs nothing")
		}
		n, _ := records(t, client)
		require.Zero(t, n, name)
	}
}

func TestAKeyOnWhatCostsNoPointsIsHonouredWhereALimitCountsIt(t *testing.T) {
	t.Parallel()
	for _, limits := range []string{
		"requests: {unit: requests, capacity: 2, per: day}", "keys: {unit: records, capacity: 2, per: day}",
		// Nobody who is in shadow is refused anything, so that keys are no way around it.
		"minute: {capacity: 100, per: minute, mode: shadow}",
	} {
		server := newInProcess(t, ratelimittest.NewStore(nil), underLimits(t, limits))
		server.post(request{Query: free["mutation"], Key: testKey})
		again := server.post(request{Query: free["mutation"], Key: testKey})
		require.Equal(t, true, again.rateLimit(t)["replayed"], limits)
	}
	f := newFixture(t, nil)
	f.post(request{Query: free["mutation"], Key: testKey, Tenant: "unlimited"})
	again := f.post(request{Query: free["mutation"], Key: testKey, Tenant: "unlimited"})
	require.Equal(t, true, again.rateLimit(t)["replayed"])
}

// unremembered is a store whose refusals are not remembered, so that every decision is its own.
type unremembered struct{ bucket.Store }

func (s unremembered) Take(ctx context.Context, take bucket.Take) (bucket.Result, error) {
	result, err := s.Store.Take(ctx, take)
	result.HoldsFor = 0
	return result, err
}

func TestAFloodOfKeysLeavesAsManyRecordsAndBytesAsTheirLimitsSay(t *testing.T) {
	t.Parallel()
	client, store := patientRedis(t)
	const most, bytes = 50, 2000
	server := newInProcess(t, unremembered{store}, underLimits(t, fmt.Sprintf(
		"keys: {unit: records, capacity: %d, per: day, window: fixed}, answers: {unit: answer_bytes, capacity: %d, per: day, window: fixed}",
		most, bytes)))
	admitted, size := 0, 0
	for i := range flood {
		got := server.post(request{Query: createUser, Key: fmt.Sprint(testKey, i)})
		if got.Status == http.StatusOK {
			admitted++
			size = len(dataOf(t, got)) + 1
			continue
		}
		require.Equal(t, ratelimitclient.CodeRateLimited, got.errorCode(t))
		require.Contains(t, got.Body, `"unit":"records"`)
		require.NotEmpty(t, got.Header.Get("Retry-After"))
	}
	require.Equal(t, most, admitted)
	require.EqualValues(t, most, server.resolver.Created.Load())
	n, stored := records(t, client)
	require.Equal(t, most, n)
	require.LessOrEqual(t, stored, int64(most*headerBytes+bytes))
	require.Greater(t, stored, int64(most*headerBytes+bytes-size), "and there was no room for another answer")

	require.Equal(t, true, server.post(request{Query: createUser, Key: testKey + "0"}).rateLimit(t)["replayed"])
	last := server.post(request{Query: createUser, Key: fmt.Sprint(testKey, most-1)})
	require.Equal(t, ratelimitclient.CodeAnswerUnavailable, last.errorCode(t), "its client had its answer, which was not stored")
	require.Equal(t, http.StatusOK, server.post(request{Query: createUser}).Status, "without a key it goes on")
}

func TestAnAnswerThatIsLargerThanItsLimitEverIsIsNotStored(t *testing.T) {
	t.Parallel()
	f := newFixture(t, underLimits(t, "answers: {unit: answer_bytes, capacity: 20, per: day}"))
	require.Equal(t, http.StatusOK, f.post(request{Query: createUser, Key: testKey}).Status)
	require.Nil(t, f.store.Settlements()[0].Claim.Answer)
	require.Equal(t, ratelimitclient.CodeAnswerUnavailable, f.post(request{Query: createUser, Key: testKey}).errorCode(t))
}

func TestALimitOfAnswersInShadowStoresThemAll(t *testing.T) {
	t.Parallel()
	f := newFixture(t, underLimits(t, "answers: {unit: answer_bytes, capacity: 20, per: day, mode: shadow}"))
	f.post(request{Query: createUser, Key: testKey})
	require.NotNil(t, f.store.Settlements()[0].Claim.Answer)
}

// TestTheRoomOfAnswersFailsAsItsLimitDoes loses the store for the charge of the room, and not for the
// settlement after it.
func TestTheRoomOfAnswersFailsAsItsLimitDoes(t *testing.T) {
	t.Parallel()
	for mode, stored := range map[string]bool{"bounded": true, "closed": false} {
		store := &takesOnce{Store: ratelimittest.NewStore(nil)}
		server := newInProcess(t, store, underLimits(t, "answers: {unit: answer_bytes, capacity: 2000, per: day, failMode: "+mode+"}"))
		require.Equal(t, http.StatusOK, server.post(request{Query: createUser, Key: testKey}).Status)
		require.Equal(t, stored, store.Settlements()[0].Claim.Answer != nil, mode)
	}
}

// takesOnce is a store that is away for all takes but the first.
type takesOnce struct {
	*ratelimittest.Store
	taken bool
}

func (s *takesOnce) Take(ctx context.Context, take bucket.Take) (bucket.Result, error) {
	if s.taken {
		return bucket.Result{}, bucket.ErrUnavailable
	}
	s.taken = true
	return s.Store.Take(ctx, take)
}

func TestAReleasedKeyGivesItsRecordBack(t *testing.T) {
	t.Parallel()
	f := newFixture(t, underLimits(t, "keys: {unit: records, capacity: 1, per: day}"))
	refuse := &refusingResponses{}
	refuse.active.Store(true)
	f.server.Use(refuse)
	f.post(request{Query: createUser, Key: testKey})
	refuse.active.Store(false)
	require.Equal(t, http.StatusOK, f.post(request{Query: createUser, Key: testKey + "2"}).Status)
	require.Equal(t, http.StatusTooManyRequests, f.post(request{Query: createUser, Key: testKey + "3"}).Status)
}

func TestReplaysAreCappedByALimitOfTheirOwn(t *testing.T) {
	t.Parallel()
	f := newFixture(t, underLimits(t, "minute: {capacity: 100, per: minute}, again: {unit: replays, capacity: 2, per: minute}"))
	first := f.post(request{Query: createUser, Key: testKey})
	for range 2 {
		require.Equal(t, dataOf(t, first), dataOf(t, f.post(request{Query: createUser, Key: testKey})))
	}
	capped := f.post(request{Query: createUser, Key: testKey})
	require.Equal(t, http.StatusTooManyRequests, capped.Status)
	require.Equal(t, "30", capped.Header.Get("Retry-After"))
	require.Empty(t, capped.Header.Get("Idempotent-Replayed"))
	require.NotContains(t, capped.Body, "Grace")
	require.EqualValues(t, 0, capped.rateLimit(t)["charged"])
	f.clock.Advance(30 * time.Second)
	require.Equal(t, dataOf(t, first), dataOf(t, f.post(request{Query: createUser, Key: testKey})))
	require.EqualValues(t, 1, f.resolver.Created.Load())
}

func TestReplaysAreCappedByTheServerWhereNoLimitCountsThem(t *testing.T) {
	t.Parallel()
	f := newFixture(t, underLimits(t, "minute: {capacity: 100, per: minute}"))
	first := f.post(request{Query: createUser, Key: testKey})
	for range idempotency.MaxReplays {
		require.Equal(t, dataOf(t, first), dataOf(t, f.post(request{Query: createUser, Key: testKey})))
	}
	next := f.post(request{Query: createUser, Key: testKey})
	require.Equal(t, http.StatusTooManyRequests, next.Status)
	require.Contains(t, next.Body, ratelimitclient.CodeRateLimited)
	require.NotEmpty(t, next.Header.Get("Retry-After"))
	require.NotContains(t, next.Body, "Grace")
	require.EqualValues(t, 1, f.resolver.Created.Load())
}

func TestTheServerCapsNoReplaysWhereNothingIsEnforced(t *testing.T) {
	t.Parallel()
	f := newFixture(t, underLimits(t, "minute: {capacity: 100, per: minute, mode: shadow}"))
	for range idempotency.MaxReplays + 2 {
		require.Equal(t, http.StatusOK, f.post(request{Query: createUser, Key: testKey}).Status)
	}
	require.EqualValues(t, 1, f.resolver.Created.Load())
}

// TestAnAnswerThatIsNotStoredIsNoRefusalOfItsTenant counts what observers are told: that the limits are used
// up, and that the tenant was refused a hundred times.
func TestAnAnswerThatIsNotStoredIsNoRefusalOfItsTenant(t *testing.T) {
	t.Parallel()
	told := map[string]int{}
	f := newFixture(t, func(cfg *ratelimit.Config) {
		underLimits(t, "answers: {unit: answer_bytes, capacity: 70, per: day}, again: {unit: replays, capacity: 1, per: day}")(cfg)
		cfg.Observe.Observer = event.Func(func(_ context.Context, e event.Event) {
			switch e := e.(type) {
			case event.LimitReached:
				told["reached "+e.Limit]++
			case event.RefusedRepeatedly:
				told["refused repeatedly"]++
			}
		})
	})
	for i := range 4 {
		f.post(request{Query: createUser, Key: fmt.Sprint(testKey, i)})
	}
	require.Equal(t, map[string]int{"reached answers": 1}, told)
	for range 2 {
		f.post(request{Query: createUser, Key: testKey + "0"})
	}
	for range 98 {
		f.post(request{Query: createUser, Key: testKey + "0"})
	}
	require.Equal(t, map[string]int{"reached answers": 1, "reached again": 1}, told, "refused 99 times")
	f.post(request{Query: createUser, Key: testKey + "0"})
	require.Equal(t, map[string]int{"reached answers": 1, "reached again": 1, "refused repeatedly": 1}, told)
}

func TestLimitsOfKeysAskTheStoreNoMoreThanTheyMust(t *testing.T) {
	t.Parallel()
	f := newFixture(t, underLimits(t, "minute: {capacity: 100, per: minute}, keys: {unit: records, capacity: 9, per: day}"))
	f.post(request{Query: createUser, Key: testKey})
	f.post(request{Query: createUser, Key: testKey})
	require.Len(t, f.store.Takes(), 2, "one for each, whatever is stored or replayed")
	f.post(request{Query: createUser})
	takes := f.store.Takes()
	require.EqualValues(t, 1, takes[0].Amounts.Of(bucket.Records))
	require.EqualValues(t, 0, takes[2].Amounts.Of(bucket.Records), "an operation without a key leaves no record")
}

// TestAnAnswerFarAboveTheLargestIsNotStored is about memory: such an answer is not even copied.
func TestAnAnswerFarAboveTheLargestIsNotStored(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.server.Use(answersWith{graphql.Response{Data: json.RawMessage(`"` + strings.Repeat("x", 1<<20) + `"`)}})
	require.Greater(t, len(f.post(request{Query: createUser, Key: testKey}).Body), 1<<20)
	require.Nil(t, f.store.Settlements()[0].Claim.Answer)
	require.Equal(t, ratelimitclient.CodeAnswerUnavailable, f.post(request{Query: createUser, Key: testKey}).errorCode(t))
}
