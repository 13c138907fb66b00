package e2e_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimittest"
)

// streamPolicy gives a tenant 100 000 points and the limit besides.
func streamPolicy(t *testing.T, limit string) func(*ratelimit.Config) {
	t.Helper()
	return func(cfg *ratelimit.Config) {
		cfg.Policy = policyOf(t, "version: 1\ndefault: free\ntiers:\n  free:\n    limits:\n      minute: {capacity: 100000, per: minute}\n      "+limit+"\n")
	}
}

// stream subscribes to so many events, in process, and returns what the client was sent.
func (p *inProcess) stream(ctx context.Context, count int) string {
	p.t.Helper()
	body := `{"query": "subscription { ticks(count: ` + strconv.Itoa(count) + `) }"}`
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/query", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	request{}.setHeaders(r.Header)
	recorder := httptest.NewRecorder()
	p.handler.ServeHTTP(recorder, r)
	return recorder.Body.String()
}

// taken adds up what takes of a store were asked for in a unit.
func taken(store *ratelimittest.Store, unit bucket.Unit) (total int64, takes int) {
	for _, take := range store.Takes() {
		if n := take.Amounts.Of(unit); n > 0 && take.Result.Verdict == bucket.Admitted {
			total += n
			takes++
		}
	}
	return total, takes
}

func TestAStreamEndsWithARefusalWhenItsEventsAreUsedUp(t *testing.T) {
	t.Parallel()
	store := ratelimittest.NewStore(nil)
	run := newInProcess(t, store, streamPolicy(t, "events: {unit: events, capacity: 10, per: hour}"))
	sent := run.stream(t.Context(), 50)
	require.Equal(t, 10, strings.Count(sent, `"ticks"`), sent)
	require.Equal(t, 1, strings.Count(sent, ratelimitclient.CodeRateLimited))
	require.Contains(t, sent, `"unit":"events"`)
	require.Less(t, strings.LastIndex(sent, `"ticks"`), strings.Index(sent, ratelimitclient.CodeRateLimited))
	require.Contains(t, sent[strings.Index(sent, ratelimitclient.CodeRateLimited):], "complete")
	again := run.stream(t.Context(), 50)
	require.NotContains(t, again, `"ticks"`, "the first event is paid before the resolver runs")
	require.EqualValues(t, 1, run.resolver.Asked.Load())
}

func TestARefusalInsideAStreamIsToldWithEveryLimit(t *testing.T) {
	t.Parallel()
	const tick = `"data":{"ticks":`
	run := newInProcess(t, ratelimittest.NewStore(nil), streamPolicy(t, "events: {unit: events, capacity: 10, per: hour}"))
	events := strings.Split(run.stream(t.Context(), 50), "event: next")[1:]
	require.Len(t, events, 11)
	require.NotContains(t, events[0], `"limits"`)
	for _, later := range events[1:10] {
		require.Contains(t, later, tick)
		require.NotContains(t, later, `"rateLimit"`, "once is enough while nothing happens")
	}
	require.Contains(t, events[10], ratelimitclient.CodeRateLimited)
	require.Contains(t, events[10], `{"name":"events","level":"tenant","unit":"events","capacity":10,"remaining":0,`)
	require.Contains(t, events[10], `"exceeded":true`)
}

func TestEventsAreTakenInBatchesThatGrowWithTheStream(t *testing.T) {
	t.Parallel()
	store := ratelimittest.NewStore(nil)
	run := newInProcess(t, store, streamPolicy(t, "events: {unit: events, capacity: 100000, per: hour}"))
	require.Equal(t, 1000, strings.Count(run.stream(t.Context(), 1000), `"ticks"`))
	events, takes := taken(store, bucket.Events)
	require.GreaterOrEqual(t, events, int64(1000))
	require.Less(t, events, int64(1016), "what is lost to a tenant is less than a batch")
	require.Less(t, takes, 70)

	run.stream(t.Context(), 3)
	more, _ := taken(store, bucket.Events)
	require.Less(t, more-events, int64(6), "a short stream takes little more than it sends")
}

func TestTheBytesOfAStreamAreChargedWhileItRuns(t *testing.T) {
	t.Parallel()
	store := ratelimittest.NewStore(nil)
	run := newInProcess(t, store, streamPolicy(t, "out: {unit: response_bytes, capacity: 300, per: hour}"))
	sent := run.stream(t.Context(), 1000)
	require.Contains(t, sent, `"unit":"response_bytes"`)
	// Each event has eleven bytes or more, and a batch may be under way.
	events := strings.Count(sent, `"ticks"`)
	require.GreaterOrEqual(t, events, 300/12-16)
	require.LessOrEqual(t, events, 300/11+16)
	require.NoError(t, run.extension.AwaitSettled(t.Context()))
	charged, _ := taken(store, bucket.ResponseBytes)
	for _, settlement := range store.Settlements() {
		charged += settlement.Actual.Of(bucket.ResponseBytes) - 1
	}
	require.InDelta(t, 11*events, charged, float64(events), "every byte is charged once")
}

func TestAQueryTakesNoEvents(t *testing.T) {
	t.Parallel()
	store := ratelimittest.NewStore(nil)
	run := newInProcess(t, store, streamPolicy(t, "events: {unit: events, capacity: 1, per: hour}"))
	for range 3 {
		require.NotContains(t, run.post(request{Query: `{ me { name } }`}).Body, "errors")
	}
	events, _ := taken(store, bucket.Events)
	require.Zero(t, events)
}
