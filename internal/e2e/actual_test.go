package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/internal/testserver"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimittest"
)

// plenty lets a test run more than a tier would allow.
const plenty = "unlimited"

func TestTheActualCostIsThatOfTheResponse(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	for _, test := range []struct {
		name, query  string
		cost, actual float64
	}{
		// A user is an object and a call of its list is one: 1 for Query, 1 for the call, 1 for each user.
		{"what was found is paid", `{ users(first: 5) { name } }`, 7, 7},
		{"no more than was found is", `{ users(first: 300) { name } }`, 302, 102},
		{"the default size is an assumption", `{ users { friends(first: 2) { name } } }`, 42, 42},
		{"null has no objects", `{ fails }`, 1, 1},
		// By turns a user for 1 and a repository for 3, each with one name, which tells neither.
		{"a type is told by execution", `{ search(first: 4) { ... on User { name } ... on Repository { name } } }`, 14, 10},
		{"a type is told by its name", `{ search(first: 4) { kind: __typename ... on Repository { name } } }`, 14, 10},
		{"a type is told by what is selected", `{ search(first: 3) { ... on User { name } ... on Repository { id } } }`, 11, 7},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			signal := f.post(request{Query: test.query, Tenant: plenty, Cost: "full"}).rateLimit(t)
			require.InDelta(t, test.cost, signal["cost"], 0)
			require.InDelta(t, test.actual, signal["actual"], 0)
		})
	}
}

func TestAnOperationThatDoesNotRunHasNoActualCost(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	mutation := request{Query: `mutation { createUser(input: {name: "Grace"}) { id } }`, Key: testKey, Cost: "full"}
	require.Contains(t, f.post(mutation).rateLimit(t), "actual")
	require.NotContains(t, f.post(mutation).rateLimit(t), "actual", "a replay")
	require.NotContains(t, f.post(request{Query: `{ users(first: 600) { name } }`}).rateLimit(t), "actual", "a refusal")
}

func TestMetricsCompareWhatWasEstimatedWithWhatItCameTo(t *testing.T) {
	t.Parallel()
	i := &instruments{t: t}
	f := newFixture(t, func(cfg *ratelimit.Config) {
		i.configure(cfg)
		cfg.Observe.Operations = []string{"People"}
	})
	f.post(request{Query: `query People { users(first: 300) { name } }`, Tenant: plenty})
	f.post(request{Query: `query Unheard { me { name } users(first: 1) { name } }`, Tenant: plenty})

	require.Equal(t, map[string]float64{"Query.users": 302, "several": 5}, i.sums("ratelimit.operation.estimated_cost", "ratelimit.root_field"))
	require.Equal(t, map[string]float64{"Query.users": 102, "several": 5}, i.sums("ratelimit.operation.actual_cost", "ratelimit.root_field"))
	require.Equal(t, map[string]float64{"Query.users": 200, "several": 0}, i.sums("ratelimit.operation.cost_difference", "ratelimit.root_field"))
	require.Equal(t, map[string]float64{"People": 200, "other": 0}, i.sums("ratelimit.operation.cost_difference", "graphql.operation.name"))
}

func TestAStreamIsMeasuredOnceWhenItEnds(t *testing.T) {
	t.Parallel()
	const deferred = `{ me { name ... @defer { friends(first: 3) { name } } } }`
	for _, test := range []struct {
		name              string
		run               func(f *fixture)
		actual, estimated float64
	}{
		// The base and, for each event, the call.
		{"events of a subscription", func(f *fixture) {
			f.sse(request{Query: `subscription { ticks(count: 3) }`, Tenant: plenty})
		}, 10 + 1 + 3*2, 10 + 1 + 3*2},
		{"parts that were deferred", func(f *fixture) {
			body := f.multipartMixed(request{Query: deferred, Tenant: plenty}).Body
			require.Contains(f.t, body, `"hasNext":false`)
		}, 1 + 2 + 4, 1 + 2 + 4},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			i := &instruments{t: t}
			test.run(newFixture(t, i.configure))
			sums := i.sums("ratelimit.operation.actual_cost", "ratelimit.outcome")
			require.Equal(t, map[string]float64{"": test.actual}, sums)
			estimates := i.sums("ratelimit.operation.estimated_cost", "ratelimit.outcome")
			require.Equal(t, map[string]float64{"": test.estimated}, estimates, "the base, and each event as the first")
			differences := i.sums("ratelimit.operation.cost_difference", "ratelimit.outcome")
			require.Equal(t, map[string]float64{"": test.estimated - test.actual}, differences)
		})
	}
}

func TestAStreamIsMeasuredWhenItsClientLeaves(t *testing.T) {
	t.Parallel()
	i := &instruments{t: t}
	f := newFixture(t, i.configure)
	tick := make(chan int)
	f.resolver.Tick = tick
	s := f.dial(plenty, nil)
	s.send(map[string]any{"type": "subscribe", "id": "1", "payload": map[string]any{"query": `subscription { ticks(count: 3) }`}})
	tick <- 0
	require.Contains(t, s.receive(), `"ticks":0`)
	s.send(map[string]any{"type": "complete", "id": "1"})
	require.Eventually(t, func() bool {
		return i.sums("ratelimit.operation.actual_cost", "ratelimit.outcome")[""] == 10+1+2
	}, 10*time.Second, time.Millisecond)
}

// leavesAtTheSecond is a client that leaves while the second response is on its way.
type leavesAtTheSecond struct {
	responses int
	leave     func()
}

func (*leavesAtTheSecond) ExtensionName() string                   { return "LeavesAtTheSecond" }
func (*leavesAtTheSecond) Validate(graphql.ExecutableSchema) error { return nil }
func (l *leavesAtTheSecond) InterceptResponse(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
	response := next(ctx)
	if l.responses++; l.responses == 2 {
		l.leave()
	}
	return response
}

// Between events a transport may wait, and when the client leaves meanwhile it asks for no more of them.
func TestAStreamIsMeasuredWhenItsTransportNoLongerAsks(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, query string
		actual      float64
	}{
		// The second event was there, and waited to be sent.
		{"events of a subscription", `subscription { ticks(count: 3) }`, 10 + 1 + 2*2},
		// A deferred call is paid when its field is first there, as null; its objects when they come. An alias is a tenth.
		{"parts that were deferred", `{ me { name ... @defer(label: "a") { a: friends(first: 3) { name } } ... @defer(label: "b") { b: friends(first: 3) { name } } } }`, 1 + 2 + 2*1 + 3 + 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			i := &instruments{t: t}
			cfg := ratelimit.Config{Store: ratelimittest.NewStore(nil), Policy: compiledPolicy(t), Subject: byTenantHeader}
			i.configure(&cfg)
			server := handler.New(testserver.NewExecutableSchema(testserver.Config{Resolvers: &testserver.Resolver{}}))
			server.AddTransport(transport.SSE{MinEventInterval: time.Hour})
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			server.Use(&leavesAtTheSecond{leave: leave})
			server.Use(ratelimit.New(cfg))
			body, err := json.Marshal(request{Query: test.query}.body())
			require.NoError(t, err)
			r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/query", bytes.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "text/event-stream")
			request{Tenant: plenty}.setHeaders(r.Header)
			ratelimit.Handler(server).ServeHTTP(httptest.NewRecorder(), r)

			require.Eventually(t, func() bool {
				return len(i.sums("ratelimit.operation.actual_cost", "ratelimit.outcome")) > 0
			}, 10*time.Second, time.Millisecond)
			require.Equal(t, map[string]float64{"": test.actual}, i.sums("ratelimit.operation.actual_cost", "ratelimit.outcome"))
		})
	}
}

func TestTypesAreTakenFromConcurrentExecution(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	var running sync.WaitGroup
	for n := range 32 {
		running.Go(func() {
			query := fmt.Sprintf(`{ search(first: %d) { ... on User { name friends(first: 1) { name } } ... on Repository { name } } }`, n)
			body := f.post(request{Query: query, Tenant: plenty, Cost: "full"}).Body
			repositories := strings.Count(body, `"repository `)
			users := n - repositories
			// For each user: itself, its call, its friend; for each repository its weight of 3.
			want := 2 + 3*users + 3*repositories
			if !strings.Contains(body, fmt.Sprintf(`"actual":%d,`, want)) {
				t.Errorf("%d users, %d repositories: %s", users, repositories, body)
			}
		})
	}
	running.Wait()
}
