package clients_test

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	hasura "github.com/hasura/go-graphql-client"
	"github.com/stretchr/testify/require"
)

// refusing refuses everything for an hour, and keeps the idempotency keys.
type refusing struct{ keys []string }

func (r *refusing) Do(request *http.Request) (*http.Response, error) {
	r.keys = append(r.keys, request.Header.Get("Idempotency-Key"))
	return &http.Response{
		StatusCode: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"3600"}},
		Body: io.NopCloser(strings.NewReader(`{"data": null}`)),
	}, nil
}

func TestRetriesOfHasuraSleepThroughTheirContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		_, err := hasura.NewClient("http://api.test", &refusing{}, hasura.WithRetry(1)).ExecRaw(ctx, cheap, nil)
		require.Error(t, err)
		require.GreaterOrEqual(t, time.Since(start), time.Hour, "it minds the context now: say so in docs/guide/clients.md")
	})
}

func TestModifiersOfHasuraRunForEachAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api, made := &refusing{}, 0
		client := hasura.NewClient("http://api.test", api, hasura.WithRetry(1)).WithRequestModifier(func(r *http.Request) {
			made++
			r.Header.Set("Idempotency-Key", "made-for-attempt-"+strconv.Itoa(made))
		})
		_, err := client.ExecRaw(t.Context(), create, nil)
		require.Error(t, err)
		require.Equal(t, []string{"made-for-attempt-1", "made-for-attempt-2"}, api.keys)
	})
}
