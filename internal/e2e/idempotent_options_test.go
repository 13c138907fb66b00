package e2e_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

const createOther = `mutation { createUser(input: {name: "Ada"}) { id name } }`

func TestOneKeyWithSeveralOperationsIsChargedAndReplayedOneByOneWhereReuseIsNew(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(cfg *ratelimit.Config) { cfg.Idempotency.ReuseAsNew = true })
	var first []reply
	for i, query := range []string{createUser, createOther} {
		first = append(first, f.post(request{Query: query, Key: testKey}))
		require.EqualValues(t, 14, first[i].rateLimit(t)["charged"], query)
	}
	for i, query := range []string{createUser, createOther} {
		again := f.post(request{Query: query, Key: testKey})
		require.Equal(t, true, again.rateLimit(t)["replayed"], query)
		require.Equal(t, dataOf(t, first[i]), dataOf(t, again))
	}
	require.EqualValues(t, 2, f.resolver.Created.Load())
}

func TestAKeyComesInAnyOfTheHeadersAndTheSameInEach(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(cfg *ratelimit.Config) {
		cfg.Idempotency.Headers = []string{"x-request-key", "Idempotency-Key"}
	})
	f.post(request{Query: createUser, Key: testKey})
	other := request{Query: createUser, Header: http.Header{"X-Request-Key": {`"` + testKey + `"`}}}
	require.Equal(t, true, f.post(other).rateLimit(t)["replayed"])
	other.Key = testKey
	require.Equal(t, true, f.post(other).rateLimit(t)["replayed"])
	other.Key = "another-" + testKey
	refused := f.post(other)
	require.Equal(t, ratelimitclient.CodeKeyInvalid, refused.errorCode(t))
	require.Contains(t, refused.Body, "different keys")
	require.NotContains(t, refused.Body, testKey)
	other.Key = "short"
	require.Equal(t, ratelimitclient.CodeKeyInvalid, f.post(other).errorCode(t), "one that is right does not hide one that is wrong")
	require.EqualValues(t, 1, f.resolver.Created.Load())
}

func TestAKeyMayComeInExtensionsOverHTTP(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	keyed := request{Query: createUser, Extensions: map[string]any{"idempotencyKey": testKey}}
	for range 5 {
		f.post(keyed)
	}
	require.EqualValues(t, 1, f.resolver.Created.Load(), "effects")
	require.Equal(t, true, f.post(request{Query: createUser, Key: testKey}).rateLimit(t)["replayed"], "the same key in the header")
	keyed.Key = testKey
	require.Equal(t, true, f.post(keyed).rateLimit(t)["replayed"], "the same key in both")
	keyed.Key = "another-" + testKey
	require.Equal(t, ratelimitclient.CodeKeyInvalid, f.post(keyed).errorCode(t), "different keys")
	require.Equal(t, ratelimitclient.CodeKeyInvalid,
		f.post(request{Query: createUser, Key: testKey, Extensions: map[string]any{"idempotencyKey": 7}}).errorCode(t), "no text")
	require.EqualValues(t, 1, f.resolver.Created.Load(), "effects")
}

func TestAMutationWithoutAKeyIsRefusedWhereOneIsRequired(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(cfg *ratelimit.Config) { cfg.Idempotency.Keys = ratelimit.KeysRequired })
	missing := f.post(request{Query: createUser})
	require.Equal(t, http.StatusBadRequest, missing.Status)
	require.Equal(t, ratelimitclient.CodeKeyInvalid, missing.errorCode(t))
	require.Contains(t, missing.Body, "a mutation needs one")
	require.Empty(t, f.store.Takes(), "nothing was charged")
	s := f.dial("free", nil)
	require.Contains(t, strings.Join(s.run("1", request{Query: createUser}), ""), ratelimitclient.CodeKeyInvalid)
	require.Equal(t, http.StatusOK, f.post(request{Query: cheapQuery}).Status)
	require.Equal(t, http.StatusOK, f.post(request{Query: createUser, Key: testKey}).Status)
	require.EqualValues(t, 1, f.resolver.Created.Load())
}

func TestAnAnonymousMutationNeedsNoKeyWhereOneIsRequired(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(cfg *ratelimit.Config) {
		cfg.Idempotency.Keys = ratelimit.KeysRequired
		cfg.Subject = ratelimit.ByPeer(ratelimit.PeerConfig{})
	})
	require.Equal(t, http.StatusOK, f.post(request{Query: createUser}).Status)
}

func TestOnAWebSocketAKeyBelongsToOneOperation(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	// The header of the upgrade is that of all operations: it is no key of any.
	s := f.dial("free", http.Header{"Idempotency-Key": {testKey}})
	for _, id := range []string{"1", "2"} {
		require.NotContains(t, s.run(id, request{Query: createUser})[0], `"replayed"`)
	}
	require.EqualValues(t, 2, f.resolver.Created.Load())
	first := s.run("3", request{Query: createUser, Key: testKey})[0]
	require.NotContains(t, first, `"replayed"`)
	require.Contains(t, s.run("4", request{Query: createUser, Key: testKey})[0], `"replayed":true`)
	require.Contains(t, s.run("5", request{Query: createOther, Key: testKey})[0], ratelimitclient.CodeKeyReused)
	require.NotContains(t, s.run("6", request{Query: createUser, Key: testKey + "6"})[0], `"replayed"`)
	require.EqualValues(t, 4, f.resolver.Created.Load())
}
