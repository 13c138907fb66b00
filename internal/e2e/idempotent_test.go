package e2e_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

const (
	patience    = 10 * time.Second
	millisecond = time.Millisecond
	testKey     = "0f8fad5b-d9cb-469f-a165-70867728950e"
)

func TestARepeatedMutationRunsOnceIsChargedOnceAndAnswersTheSame(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	first := f.post(request{Query: createUser, Key: testKey})
	again := f.post(request{Query: createUser, Key: `"` + testKey + `"`})
	require.EqualValues(t, 1, f.resolver.Created.Load())
	require.Equal(t, dataOf(t, first), dataOf(t, again))
	require.Equal(t, "true", again.Header.Get("Idempotent-Replayed"))
	require.Equal(t, true, again.rateLimit(t)["replayed"])
	require.EqualValues(t, 0, again.rateLimit(t)["charged"])
	require.Equal(t, first.rateLimit(t)["remaining"], again.rateLimit(t)["remaining"])
}

func TestFiftyRepeatsAtOnceRunTheMutationOnce(t *testing.T) {
	t.Parallel()
	for name, configure := range map[string]func(*ratelimit.Config){
		"memory": nil,
		"redis":  func(cfg *ratelimit.Config) { cfg.Store = patientStore(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fiftyRepeats(t, newFixture(t, configure))
		})
	}
}

func fiftyRepeats(t *testing.T, f *fixture) {
	t.Helper()
	release := make(chan struct{})
	f.resolver.BeforeCreate = func(context.Context) { <-release }
	const repeats = 50
	replies := make([]reply, repeats)
	var running sync.WaitGroup
	answers := make(chan struct{}, repeats)
	for i := range repeats {
		running.Go(func() {
			replies[i] = f.post(request{Query: createUser, Key: testKey})
			answers <- struct{}{}
		})
	}
	// All but the one that runs are answered while it runs.
	for range repeats - 1 {
		<-answers
	}
	close(release)
	running.Wait()

	require.EqualValues(t, 1, f.resolver.Created.Load())
	answered := 0
	for _, r := range replies {
		if r.Status == http.StatusOK {
			answered++
			continue
		}
		require.Equal(t, ratelimitclient.CodeInFlight, r.errorCode(t))
		require.NotEmpty(t, r.Header.Get("Retry-After"))
	}
	require.Equal(t, 1, answered)
	replayed := f.post(request{Query: createUser, Key: testKey})
	require.Equal(t, true, replayed.rateLimit(t)["replayed"])
	require.GreaterOrEqual(t, replayed.rateLimit(t)["remaining"], 100.0-14, "one charge of 14 points")
}

func TestAKeyThatIsUsedForSomethingElseIsRefusedUncharged(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	first := f.post(request{Query: createUser, Key: testKey})
	const withName = `mutation($n: String!) { createUser(input: {name: $n}) { id } }`
	for name, other := range map[string]request{
		"document":  {Query: strings.Replace(createUser, "Grace", "Ada", 1), Key: testKey},
		"operation": {Query: cheapQuery, Key: testKey},
		"variables": {Query: withName, Variables: map[string]any{"n": "Ada"}, Key: testKey},
	} {
		reply := f.post(other)
		require.Equal(t, http.StatusUnprocessableEntity, reply.Status, name)
		require.Equal(t, ratelimitclient.CodeKeyReused, reply.errorCode(t), name)
		require.Equal(t, first.rateLimit(t)["remaining"], reply.rateLimit(t)["remaining"], name)
	}
	require.EqualValues(t, 1, f.resolver.Created.Load())
}

func TestAKeyBelongsToItsUserAndTenant(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	for _, r := range []request{
		{Tenant: "a"}, {Tenant: "b"}, {Tenant: "a", User: "1"}, {Tenant: "a", User: "2"},
	} {
		r.Query, r.Key = createUser, testKey
		require.NotContains(t, f.post(r).rateLimit(t), "replayed")
	}
	require.EqualValues(t, 4, f.resolver.Created.Load())
}

func TestMalformedKeysAreRefusedAndNothingIsCharged(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	for name, key := range map[string]string{
		"7 characters": "1234567", "129 characters": strings.Repeat("k", 129),
		"a space": "with a space", "half quoted": `"halfquoted`,
	} {
		reply := f.post(request{Query: createUser, Key: key})
		require.Equal(t, http.StatusBadRequest, reply.Status, name)
		require.Equal(t, ratelimitclient.CodeKeyInvalid, reply.errorCode(t), name)
	}
	twice := f.post(request{Query: createUser, Header: http.Header{"Idempotency-Key": {testKey, testKey + "2"}}})
	require.Equal(t, ratelimitclient.CodeKeyInvalid, twice.errorCode(t))
	require.Zero(t, f.resolver.Created.Load())
	require.Empty(t, f.store.Takes())
}

func TestAFailedMutationIsReplayedWithItsErrors(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	const mutation = `mutation { createAndFail(name: "Grace") { id } }`
	first := f.post(request{Query: mutation, Key: testKey})
	again := f.post(request{Query: mutation, Key: testKey})
	require.EqualValues(t, 1, f.resolver.Created.Load(), "data is null although something happened")
	require.Equal(t, dataOf(t, first), dataOf(t, again))
	require.Contains(t, again.Body, "this field always fails")
}

func TestARefusedFirstAttemptLeavesNoRecord(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.post(request{Query: `{ users(first: 90) { name } }`})
	require.Equal(t, http.StatusTooManyRequests, f.post(request{Query: createUser, Key: testKey}).Status)
	f.clock.Advance(time.Minute)
	admitted := f.post(request{Query: createUser, Key: testKey})
	require.Equal(t, http.StatusOK, admitted.Status)
	require.NotContains(t, admitted.rateLimit(t), "replayed")
	require.EqualValues(t, 14, admitted.rateLimit(t)["charged"])
}

func TestAnAnswerThatIsTooLargeIsNotReplayed(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(cfg *ratelimit.Config) { cfg.Idempotency.MaxAnswer = 10 })
	f.post(request{Query: createUser, Key: testKey})
	again := f.post(request{Query: createUser, Key: testKey})
	require.Equal(t, http.StatusConflict, again.Status)
	require.Equal(t, ratelimitclient.CodeAnswerUnavailable, again.errorCode(t))
	require.EqualValues(t, 1, f.resolver.Created.Load())
}

func TestAnonymousSubjectsHaveNoKeys(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(cfg *ratelimit.Config) { cfg.Subject = ratelimit.ByPeer(ratelimit.PeerConfig{}) })
	f.post(request{Query: createUser, Key: testKey})
	f.post(request{Query: createUser, Key: testKey})
	require.EqualValues(t, 2, f.resolver.Created.Load())
}

func TestAKeyedMutationIsRefusedWhileTheStoreIsAway(t *testing.T) {
	t.Parallel()
	for name, admit := range map[string]bool{"by default": false, "unless it is configured otherwise": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, func(cfg *ratelimit.Config) { cfg.Idempotency.AdmitUnclaimed = admit })
			f.store.Fail(bucket.ErrUnavailable)
			reply := f.post(request{Query: createUser, Key: testKey})
			want, created := ratelimitclient.CodeUnavailable, 0
			if admit {
				want, created = "", 1
			}
			require.Equal(t, want, reply.errorCode(t))
			require.EqualValues(t, created, f.resolver.Created.Load())
		})
	}
}

func TestTheAnswerIsStoredBeforeItIsSent(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.post(request{Query: createUser, Key: testKey})
	settlements := f.store.Settlements()
	require.Len(t, settlements, 1)
	require.Equal(t, idempotency.Done, settlements[0].Claim.Outcome)
	require.JSONEq(t, `{"data": {"createUser": {"id": "1", "name": "Grace"}}}`, string(settlements[0].Claim.Answer))
}

func TestAMutationOfWhichNothingRanReleasesItsKey(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	refuse := &refusingResponses{}
	refuse.active.Store(true)
	f.server.Use(refuse)
	require.Contains(t, f.post(request{Query: createUser, Key: testKey}).Body, "refused by another")
	refuse.active.Store(false)
	again := f.post(request{Query: createUser, Key: testKey})
	require.NotContains(t, again.rateLimit(t), "replayed")
	require.EqualValues(t, 100-2*14, again.rateLimit(t)["remaining"], "the first attempt has failed, and is charged")
	require.EqualValues(t, 1, f.resolver.Created.Load())
}

// TestTheLeaseIsRenewedWhileTheOperationRuns keeps a mutation running for three leases. A repeat in
// that time is told that it is in flight, which it would not be had the lease run out.
func TestTheLeaseIsRenewedWhileTheOperationRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lease = 3 * time.Second
		store := bucket.NewMemory(bucket.MemoryConfig{Clock: time.Now})
		run := newInProcess(t, store, func(cfg *ratelimit.Config) { cfg.Idempotency.Lease = lease })
		run.resolver.BeforeCreate = func(context.Context) { time.Sleep(3 * lease) } //nolint:forbidigo // synctest
		done := make(chan reply, 1)
		go func() { done <- run.post(request{Query: createUser, Key: testKey}) }()
		time.Sleep(2*lease + time.Second) //nolint:forbidigo // the clock of a synctest bubble
		require.Equal(t, ratelimitclient.CodeInFlight, run.post(request{Query: createUser, Key: testKey}).errorCode(t))
		require.Empty(t, (<-done).errorCode(t))
		require.Equal(t, true, run.post(request{Query: createUser, Key: testKey}).rateLimit(t)["replayed"])
		require.EqualValues(t, 1, run.resolver.Created.Load())
	})
}

// dataOf returns data and errors of a reply, without its extensions.
func dataOf(t *testing.T, r reply) string {
	t.Helper()
	before, _, found := strings.Cut(r.Body, `,"extensions":{"rateLimit"`)
	require.True(t, found, "no extension in %s", r.Body)
	return before
}
