package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
	"github.com/gqlgen-ratelimit/ratelimit/throttle"
)

// Where a panic leaves gqlgen.
const (
	inTheResolver     = "resolver"
	inTheMarshaller   = "marshaller"
	inThePresenter    = "error presenter"
	inTheRecover      = "recover function"
	inTheOperation    = "operation of a later extension"
	beforeTheAnswer   = "answer, before a later extension"
	afterTheAnswer    = "answer, after a later extension"
	beforeOurAnswer   = "answer, before an earlier extension"
	afterOurAnswer    = "answer, after an earlier extension"
	afterOurOperation = "operation of an earlier extension"
	inTheCollection   = "collection of the root fields"
	inTheSubscription = "collection of a subscription"
)

// breaking panics in one place while it is active. It is an earlier extension and a later one.
type breaking struct {
	active atomic.Bool
	place  string
	cause  any
}

func (b *breaking) in(place string) {
	if b.active.Load() && b.place == place {
		panic(b.cause)
	}
}

func (*breaking) ExtensionName() string                   { return "Breaking" }
func (*breaking) Validate(graphql.ExecutableSchema) error { return nil }

func (b *breaking) InterceptOperation(ctx context.Context, next graphql.OperationHandler) graphql.ResponseHandler {
	b.in(inTheOperation)
	return next(ctx)
}

func (b *breaking) InterceptResponse(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
	b.in(beforeTheAnswer)
	response := next(ctx)
	b.in(afterTheAnswer)
	return response
}

func (b *breaking) InterceptField(ctx context.Context, next graphql.Resolver) (any, error) {
	switch b.place {
	case inTheResolver, inTheRecover:
		b.in(b.place)
	case inThePresenter:
		if b.active.Load() {
			return nil, errors.New("presented")
		}
	}
	return next(ctx)
}

func (b *breaking) InterceptRootField(ctx context.Context, next graphql.RootResolver) graphql.Marshaler {
	inner := next(ctx)
	return graphql.WriterFunc(func(w io.Writer) {
		b.in(inTheMarshaller)
		inner.MarshalGQL(w)
	})
}

// earlier is the one that is used before the limiter.
type earlier struct{ b *breaking }

func (earlier) ExtensionName() string                   { return "Earlier" }
func (earlier) Validate(graphql.ExecutableSchema) error { return nil }

func (e earlier) InterceptOperation(ctx context.Context, next graphql.OperationHandler) graphql.ResponseHandler {
	handler := next(ctx)
	e.b.in(afterOurOperation)
	return handler
}

func (e earlier) InterceptResponse(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
	e.b.in(beforeOurAnswer)
	response := next(ctx)
	e.b.in(afterOurAnswer)
	return response
}

// brokenServer is a server with a throttle, a budget that failed operations have back, and a place that panics.
type brokenServer struct {
	*shedding
	*breaking
}

func newBrokenServer(t *testing.T, place string, cause any) *brokenServer {
	t.Helper()
	s := &brokenServer{breaking: &breaking{place: place, cause: cause}}
	s.shedding = newAdmitting(t, func(_ *throttle.Config, cfg *ratelimit.Config) {
		cfg.Settlement.FailedShare, cfg.Observe.Admissions = 1, 1
	}, earlier{s.breaking})
	s.server.Use(s.breaking)
	s.server.SetErrorPresenter(func(ctx context.Context, err error) *gqlerror.Error {
		s.in(inThePresenter)
		return graphql.DefaultErrorPresenter(ctx, err)
	})
	s.server.SetRecoverFunc(func(context.Context, any) error {
		s.in(inTheRecover)
		return errors.New("recovered")
	})
	return s
}

// ways are requests by a transport. Each returns everything that came back.
var ways = map[string]func(*fixture, request) reply{
	"POST":            (*fixture).post,
	"GET":             (*fixture).get,
	"SSE":             (*fixture).sse,
	"multipart form":  func(f *fixture, r request) reply { return f.multipartForm(r) },
	"multipart/mixed": (*fixture).multipartMixed,
	"WebSocket": func(f *fixture, r request) reply {
		return reply{Body: strings.Join(f.dial(r.tenant(), nil).run("1", r), "\n")}
	},
}

func TestAPanicEndsAnOperationAsAFailureDoes(t *testing.T) {
	t.Parallel()
	plain := request{Query: cheapQuery}
	for place, r := range map[string]request{
		inTheResolver: plain, inTheMarshaller: plain, inThePresenter: plain, inTheRecover: plain, inTheOperation: plain,
		beforeTheAnswer: plain, afterTheAnswer: plain, beforeOurAnswer: plain, afterOurAnswer: plain,
		inTheCollection: {Query: `query($x: Boolean = true) { me @include(if: $x) { id } }`, Variables: map[string]any{"x": nil}},
	} {
		for way, send := range ways {
			t.Run(place+" by "+way, func(t *testing.T) {
				t.Parallel()
				s := newBrokenServer(t, place, "on purpose")
				s.active.Store(true)
				r := r
				r.Key = testKey
				broken := send(s.fixture, r)
				s.active.Store(false)
				s.requireClosed(t, broken)
				if place != afterOurAnswer {
					require.Contains(t, broken.Body, `"refunded":3`)
					s.requireBack(t)
				}
				if broken.Status != 0 && way != "SSE" && place != inTheResolver {
					require.Equal(t, http.StatusInternalServerError, broken.Status)
				}
				r.Variables = nil
				require.NotContains(t, s.post(r).Body, ratelimitclient.CodeInFlight, "the claim has ended")
				s.requireBalanced(t)
			})
		}
	}
}

func TestAPanicEndsASubscriptionAsAFailureDoes(t *testing.T) {
	t.Parallel()
	const ticks = `subscription { ticks(count: 2) }`
	for place, r := range map[string]request{
		inTheSubscription: {Query: `subscription($x: Boolean = true) { ticks(count: 2) @include(if: $x) }`, Variables: map[string]any{"x": nil}},
		inTheResolver:     {Query: ticks}, inTheRecover: {Query: ticks}, inTheOperation: {Query: ticks},
		inThePresenter: {Query: ticks}, beforeTheAnswer: {Query: ticks}, afterTheAnswer: {Query: ticks}, beforeOurAnswer: {Query: ticks},
	} {
		for _, way := range []string{"SSE", "WebSocket"} {
			t.Run(place+" by "+way, func(t *testing.T) {
				t.Parallel()
				s := newBrokenServer(t, place, "on purpose")
				s.active.Store(true)
				s.requireClosed(t, ways[way](s.fixture, r))
				s.requireBack(t)
			})
		}
	}
}

// requireClosed fails unless a broken operation has told what a failed one tells.
func (s *brokenServer) requireClosed(t *testing.T, broken reply) {
	t.Helper()
	require.Contains(t, broken.Body, `"rateLimit":{`)
	require.Equal(t, 1, strings.Count(broken.Body, `"errors":[{`), broken.Body)
	require.Len(t, s.observer.Events(), 1)
}

// requireBack fails unless the operation has its points back.
func (s *brokenServer) requireBack(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { return len(s.store.Settlements()) == 1 }, redistest.Patience, time.Millisecond)
	require.Zero(t, s.store.Settlements()[0].Actual.Of(bucket.Points))
}

// requireBalanced fails unless the throttle knows of nothing that runs. Rates are smoothed: the sums come close to each other within a few beats
// when an operation has begun in one beat and ended in the next. One that never ends keeps them apart by more than half an operation.
func (s *brokenServer) requireBalanced(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		seen := s.centre.seen()
		return seen.Admitted > 0 && math.Abs(seen.Admitted-seen.Completed) < 0.01
	}, redistest.Patience, 10*time.Millisecond)
}

func TestAnAbortedAnswerIsBrokenOffAfterItsAccountIsClosed(t *testing.T) {
	t.Parallel()
	for _, place := range []string{inTheMarshaller, beforeOurAnswer, inTheOperation} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			s := newBrokenServer(t, place, http.ErrAbortHandler)
			s.server.SetRecoverFunc(func(_ context.Context, cause any) error { panic(cause) })
			s.active.Store(true)
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url, strings.NewReader(fmt.Sprintf(`{"query": %q}`, cheapQuery)))
			require.NoError(t, err)
			request{}.setHeaders(r.Header)
			r.Header.Set("Content-Type", "application/json")
			_, err = s.client.Do(r) //nolint:bodyclose // There is no answer.
			require.Error(t, err)
			s.requireBack(t)
			if place != inTheOperation {
				// The throttle knows of nothing before that.
				s.requireBalanced(t)
			}
		})
	}
}

func TestAnOperationWhoseAnswerNobodyAsksForHasFailed(t *testing.T) {
	t.Parallel()
	for what, cause := range map[string]any{"panics": "on purpose", "answers itself": nil} {
		for _, query := range []string{cheapQuery, createUser} {
			t.Run(what+" "+query, func(t *testing.T) {
				t.Parallel()
				outer := &breaking{place: afterOurOperation, cause: cause}
				s := newAdmitting(t, func(_ *throttle.Config, cfg *ratelimit.Config) { cfg.Settlement.FailedShare = 1 }, answeringFirst{earlier{outer}})
				s.server.SetRecoverFunc(func(context.Context, any) error { return errors.New("recovered") })
				r := request{Query: query, Key: testKey}
				outer.active.Store(true)
				s.post(r)
				outer.active.Store(false)
				require.Len(t, s.store.Settlements(), 1)
				require.Zero(t, s.store.Settlements()[0].Actual.Of(bucket.Points))
				require.NotContains(t, s.post(r).Body, `"errors"`, "the claim has ended")
				if query == createUser {
					require.EqualValues(t, 1, s.resolver.Created.Load())
				}
			})
		}
	}
}

// answeringFirst is an earlier extension that has an operation begin and then panics, or answers in its place if there is no cause.
type answeringFirst struct{ earlier }

func (a answeringFirst) InterceptOperation(ctx context.Context, next graphql.OperationHandler) graphql.ResponseHandler {
	if a.b.active.Load() && a.b.cause == nil {
		next(ctx)
		return graphql.OneShot(graphql.ErrorResponse(ctx, "not now"))
	}
	return a.earlier.InterceptOperation(ctx, next)
}

func TestAnEarlierAnswerToTheFirstEventEndsNoSubscription(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"SSE", "WebSocket"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			s := newAdmitting(t, func(_ *throttle.Config, cfg *ratelimit.Config) { cfg.Settlement.FailedShare = 1 }, &hidingFirst{})
			answers := ways[way](s.fixture, request{Query: `subscription { ticks(count: 2) }`}).Body
			require.Contains(t, answers, "hidden")
			require.Contains(t, answers, `"ticks":1`)
			require.NotContains(t, answers, "refunded")
			require.Empty(t, s.store.Settlements())
		})
	}
}

// hidingFirst is an earlier extension that answers the first event.
type hidingFirst struct{ seen atomic.Bool }

func (*hidingFirst) ExtensionName() string                   { return "HidingFirst" }
func (*hidingFirst) Validate(graphql.ExecutableSchema) error { return nil }

func (h *hidingFirst) InterceptResponse(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
	if h.seen.CompareAndSwap(false, true) {
		return graphql.ErrorResponse(ctx, "hidden")
	}
	return next(ctx)
}
