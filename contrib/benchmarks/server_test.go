package main

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// awayStore answers nobody.
type awayStore struct{ *bucket.Memory }

func (awayStore) Take(context.Context, bucket.Take) (bucket.Result, error) {
	return bucket.Result{}, bucket.ErrUnavailable
}

// A contender that does less work than it is said to do ends the contest.
func TestAServerThatDoesLessThanItsRowSaysIsNotMeasured(t *testing.T) {
	t.Parallel()
	short, err := limitedServer()
	require.NoError(t, err)
	full, err := limitedServer(func(c *ratelimit.Config) { c.Response.Full = true })
	require.NoError(t, err)
	empty, err := tiers.Load([]byte("version: 1\ndefault: free\ntiers: {free: {limits: {minute: {capacity: 1, per: minute}}}}"), 1)
	require.NoError(t, err)
	refusing, err := limitedServer(func(c *ratelimit.Config) { c.Policy = empty })
	require.NoError(t, err)
	away, err := limitedServer(func(c *ratelimit.Config) { c.Store = awayStore{bucket.NewMemory(bucket.MemoryConfig{})} })
	require.NoError(t, err)
	for _, test := range []struct {
		name   string
		server http.Handler
		told   telling
		want   error
	}{
		{"no limiter", plainServer(), tellsNothing, nil},
		{"short", short, tellsOne, nil},
		{"full", full, tellsAll, nil},
		{"no limiter where one is said to be", plainServer(), tellsOne, errNotTold},
		{"a limiter where none is said to be", short, tellsNothing, errNotTold},
		{"one limit where all are said to be told", short, tellsAll, errNotTold},
		{"refusals", refusing, tellsOne, errNotServed},
		{"a store that is away", away, tellsOne, errStoreAway},
		{"nothing", http.NotFoundHandler(), tellsNothing, errNotServed},
	} {
		require.ErrorIs(t, serve(t.Context(), test.server, requestBody, test.told)(), test.want, test.name)
	}
}

// The floor tells what the limiter tells, byte for byte but for numbers that change.
func TestTheFloorAnswersAsLongAsTheLimiter(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		full bool
		told any
	}{{false, &shortAnswer{}}, {true, &fullAnswer{}}} {
		limited, err := limitedServer(func(c *ratelimit.Config) { c.Response.Full = test.full })
		require.NoError(t, err)
		below, err := floor(t.Context(), limited, test.told)
		require.NoError(t, err)
		want, got := answer(t.Context(), limited, requestBody), answer(t.Context(), below, requestBody)
		// Some digits of what remains, and of times.
		require.InDelta(t, want.Body.Len(), got.Body.Len(), 40)
		require.Len(t, got.Header(), len(want.Header()))
		for name := range want.Header() {
			require.InDelta(t, len(want.Header().Get(name)), len(got.Header().Get(name)), 4, name)
		}
	}
	_, err := floor(t.Context(), plainServer(), &shortAnswer{})
	require.Error(t, err)
	full, err := limitedServer(func(c *ratelimit.Config) { c.Response.Full = true })
	require.NoError(t, err)
	_, err = floor(t.Context(), full, &shortAnswer{})
	require.ErrorIs(t, err, errNotTheFloor)
}
