package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/testserver"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

// decisions are the events about decisions that an extension has told. It is safe for concurrent use.
type decisions struct {
	mu   sync.Mutex
	told []event.Decided
}

func (d *decisions) Observe(_ context.Context, e event.Event) {
	if decided, ok := e.(event.Decided); ok {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.told = append(d.told, decided)
	}
}

// last returns the decision that was told last.
func (d *decisions) last(t *testing.T) event.Decided {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	require.NotEmpty(t, d.told)
	return d.told[len(d.told)-1]
}

func (d *decisions) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.told)
}

// find returns the decision with the id.
func (d *decisions) find(t *testing.T, id string) event.Decided {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	var found []event.Decided
	for _, e := range d.told {
		if e.RefusalID == id {
			found = append(found, e)
		}
	}
	require.Len(t, found, 1, "one event has the id %q", id)
	return found[0]
}

// newDecided is a fixture whose decisions are observed.
func newDecided(t *testing.T, configure func(*ratelimit.Config)) (*fixture, *decisions) {
	t.Helper()
	told := &decisions{}
	return newFixture(t, func(cfg *ratelimit.Config) {
		cfg.Observe.Observer = told
		if configure != nil {
			configure(cfg)
		}
	}), told
}

var refusalID = regexp.MustCompile(`"refusalId":"([A-Z2-7]{26})"`)

// refusalIDOf returns the only id in an answer.
func refusalIDOf(t *testing.T, answer string) string {
	t.Helper()
	found := refusalID.FindAllStringSubmatch(answer, -1)
	require.Len(t, found, 1, answer)
	return found[0][1]
}

// verdictStore answers each take with a claim in the same way.
type verdictStore struct {
	bucket.Store
	verdict bucket.Verdict
}

func (s verdictStore) Take(ctx context.Context, take bucket.Take) (bucket.Result, error) {
	if take.Claim != nil {
		return bucket.Result{Verdict: s.verdict}, nil
	}
	return s.Store.Take(ctx, take)
}

// refusedBy is what makes a server refuse a request.
type refusedBy struct {
	configure func(*ratelimit.Config)
	prepare   func(*fixture)
	request   request
	outcome   ratelimit.Outcome
}

// refusing has each code.
var refusing = map[string]refusedBy{
	ratelimitclient.CodeRateLimited: {
		prepare: func(f *fixture) { f.post(request{Query: dear}) },
		request: request{Query: dear}, outcome: ratelimit.OutcomeLimited,
	},
	ratelimitclient.CodeCostLimitExceeded: {request: request{Query: `{ users(first: 900) { name } }`}, outcome: ratelimit.OutcomeTooExpensive},
	ratelimitclient.CodeQueryLimitExceeded: {
		configure: func(cfg *ratelimit.Config) { cfg.Pricing.Cost.Shape.MaxAliases = 1 },
		request:   request{Query: `{ a: me { n: name } }`}, outcome: ratelimit.OutcomeQueryLimited,
	},
	ratelimitclient.CodeTenantBlocked: {request: request{Query: cheapQuery, Tenant: "blocked"}, outcome: ratelimit.OutcomeBlocked},
	ratelimitclient.CodeUnavailable: {
		prepare: func(f *fixture) { f.store.Fail(bucket.ErrUnavailable) },
		request: request{Query: cheapQuery, Tenant: "closed"}, outcome: ratelimit.OutcomeUnavailable,
	},
	ratelimitclient.CodeSubjectUnknown: {
		configure: func(cfg *ratelimit.Config) {
			cfg.Subject = func(context.Context, *ratelimit.Request) (ratelimit.Subject, error) {
				return ratelimit.Subject{}, ratelimit.ErrNoSubject
			}
		},
		request: request{Query: cheapQuery}, outcome: ratelimit.OutcomeSubjectUnknown,
	},
	ratelimitclient.CodeKeyInvalid:        {request: request{Query: createUser, Key: "short"}, outcome: "key_invalid"},
	ratelimitclient.CodeKeyReused:         byVerdict(bucket.KeyReused, "key_reused"),
	ratelimitclient.CodeInFlight:          byVerdict(bucket.InFlight, "in_flight"),
	ratelimitclient.CodeAnswerUnavailable: byVerdict(bucket.AnswerUnavailable, "answer_unavailable"),
	ratelimitclient.CodeOutcomeUnknown:    byVerdict(bucket.OutcomeUnknown, "outcome_unknown"),
	ratelimitclient.CodeCostRequestInvalid: {
		request: request{Query: cheapQuery, Cost: "nonsense"}, outcome: "cost_request_invalid",
	},
	ratelimitclient.CodeCostRequestForbidden: {
		request: request{Query: cheapQuery, Cost: "validate"}, outcome: "cost_request_forbidden",
	},
}

func byVerdict(verdict bucket.Verdict, outcome ratelimit.Outcome) refusedBy {
	return refusedBy{
		configure: func(cfg *ratelimit.Config) { cfg.Store = verdictStore{cfg.Store, verdict} },
		request:   request{Query: createUser, Key: testKey}, outcome: outcome,
	}
}

func TestEachRefusalHasAnIDByWhichItsEventIsFoundOnEveryTransport(t *testing.T) {
	t.Parallel()
	require.Len(t, refusing, 13, "the codes of package ratelimitclient")
	for code, how := range refusing {
		require.True(t, ratelimitclient.IsCode(code))
		for transport, send := range map[string]func(*fixture, request) string{
			"post": func(f *fixture, r request) string { return f.post(r).Body },
			"sse":  func(f *fixture, r request) string { return f.sse(r).Body },
			"websocket": func(f *fixture, r request) string {
				return strings.Join(f.dial(r.tenant(), nil).run("1", r), "\n")
			},
		} {
			t.Run(transport+"/"+code, func(t *testing.T) {
				t.Parallel()
				f, told := newDecided(t, how.configure)
				if how.prepare != nil {
					how.prepare(f)
				}
				answer := send(f, how.request)
				id := refusalIDOf(t, answer)
				e := told.find(t, id)
				require.Equal(t, code, e.Code)
				require.Equal(t, string(how.outcome), e.Outcome)
				require.Contains(t, answer, `"`+code+`"`)
				require.NotEqual(t, id, refusalIDOf(t, send(f, how.request)), "each refusal has its own")
			})
		}
	}
}

func TestARefusalIsFoundByItsIDInTheDecisionTheSpanAndTheError(t *testing.T) {
	t.Parallel()
	var ids []string
	i := &instruments{t: t}
	f := newFixture(t, i.configure)
	see(f.server, func(d ratelimit.Decision) { ids = append(ids, d.Refusal.ID) })
	f.server.SetErrorPresenter(func(_ context.Context, err error) *gqlerror.Error {
		var refused *ratelimit.RefusedError
		require.ErrorAs(t, err, &refused)
		ids = append(ids, refused.ID)
		var presented *gqlerror.Error
		require.ErrorAs(t, err, &presented)
		return presented
	})
	id := refusalIDOf(t, f.post(request{Query: cheapQuery, Tenant: "blocked"}).Body)
	require.Equal(t, []string{id, id}, ids)
	spans := i.spans.Ended()
	require.Len(t, spans, 1)
	found := false
	for _, a := range spans[0].Attributes() {
		found = found || a.Key == "ratelimit.refusal.id" && a.Value.AsString() == id
	}
	require.True(t, found)
}

func TestTheErrorOfTheUserHasTheIDBesideItsOwnExtensions(t *testing.T) {
	t.Parallel()
	cause := errors.New("token of yesterday")
	shared := &gqlerror.Error{Err: cause, Message: "who are you", Extensions: map[string]any{"code": "UNAUTHENTICATED"}}
	f, told := newDecided(t, func(cfg *ratelimit.Config) {
		cfg.Subject = func(context.Context, *ratelimit.Request) (ratelimit.Subject, error) {
			return ratelimit.Subject{}, shared
		}
	})
	f.server.SetErrorPresenter(func(ctx context.Context, err error) *gqlerror.Error {
		require.ErrorIs(t, err, cause)
		return graphql.DefaultErrorPresenter(ctx, err)
	})
	reply := f.post(request{Query: cheapQuery})
	require.Equal(t, "UNAUTHENTICATED", reply.errorCode(t))
	told.find(t, refusalIDOf(t, reply.Body))
	require.Len(t, shared.Extensions, 1, "the error of the user is not changed")
}

func TestARefusalInsideAnOperationHasAnIDThatItsReplayKeeps(t *testing.T) {
	t.Parallel()
	f, told := newDecided(t, nil)
	f.resolver.OnExport = func(ctx context.Context, rows int) error { return ratelimit.Charge(ctx, "exports", int64(rows)) }
	id := refusalIDOf(t, f.post(request{Query: `{ export(rows: 11) }`}).Body)
	e := told.find(t, id)
	require.True(t, e.Charge)
	require.Equal(t, []event.Amount{{Unit: "exports", N: 11}}, e.Amounts)
	require.Equal(t, 1, told.count(), "the operation was admitted")

	f.resolver.BeforeCreate = func(ctx context.Context) { graphql.AddError(ctx, ratelimit.Charge(ctx, bucket.Points, 200)) }
	first := refusalIDOf(t, f.post(request{Query: createUser, Key: testKey}).Body)
	again := f.post(request{Query: createUser, Key: testKey})
	require.Equal(t, true, again.rateLimit(t)["replayed"])
	require.Equal(t, first, refusalIDOf(t, again.Body))
	require.True(t, told.find(t, first).Keyed)
	require.False(t, e.Keyed)
}

func TestAnEventSaysWhatLedToARefusalAndWhenItClears(t *testing.T) {
	t.Parallel()
	f, told := newDecided(t, nil)
	f.override(bucket.Override{Limit: "minute", Capacity: 50})
	for range 3 {
		f.post(request{Query: `query Report { users(first: 20) { name } }`, User: "ann"})
	}
	e := told.last(t)
	require.Equal(t, 60*time.Second/50*16, e.RetryAfter, "6 are left of 50, of which all come back a minute")
	require.Equal(t, e.At.Add(e.RetryAfter), e.ClearsAt)
	require.Equal(t, []string{"free", "", "ann", "free", "enforce", "query", "Report"},
		[]string{e.Tenant, e.Team, e.User, e.Tier, e.Mode, e.Kind, e.Operation})
	require.Equal(t, []string{"Query.users"}, e.RootFields)
	require.Equal(t, []event.Amount{{Unit: "points", N: 22}, {Unit: "requests", N: 1}}, e.Amounts)
	require.EqualValues(t, 22, e.Cost)
	require.Zero(t, e.Charged)
	require.Positive(t, e.StoreDuration)
	require.Equal(t, "default", e.Origin.Tier)

	state := e.Limits[0]
	require.Equal(t, "minute 50 6", fmt.Sprint(state.Limit, " ", state.Capacity, " ", state.Remaining))
	require.True(t, state.Exceeded && state.Refuses)
	require.Equal(t, []string{"tiers.free.limits.minute"}, state.Origin.Rule)
	record := state.Origin.Overrides[0]
	require.Len(t, state.Origin.Overrides, 1)
	require.False(t, record.SetAt.IsZero())
	record.SetAt = time.Time{}
	require.Equal(t, event.Override{Level: "tenant", Limit: "minute", Reason: "audited-reason", Actor: "audited-actor"}, record)
	for _, other := range e.Limits[1:] {
		require.False(t, other.Refuses, other.Limit)
		require.Nil(t, other.Origin, other.Limit)
	}
}

func TestTheRefusalOfADocumentThatDoesNotValidateIsToldAsOneOfNoKind(t *testing.T) {
	t.Parallel()
	f, told := newDecided(t, func(cfg *ratelimit.Config) { cfg.Pricing.InvalidDocument = 60 })
	f.post(request{Query: `{ nobody }`})
	require.Zero(t, told.count(), "it was not refused, but charged")
	e := told.find(t, refusalIDOf(t, f.post(request{Query: `{ nobody }`}).Body))
	require.Equal(t, []string{"", "limited", "free"}, []string{e.Kind, e.Outcome, e.Tenant})
	require.Equal(t, []event.Amount{{Unit: "points", N: 60}, {Unit: "requests", N: 1}}, e.Amounts)
}

func TestAnObserverCannotChangeThePlanOfAnOperation(t *testing.T) {
	t.Parallel()
	var fields [][]string
	f := newFixture(t, func(cfg *ratelimit.Config) {
		cfg.Observe.Admissions = 1
		cfg.Observe.Observer = event.Func(func(_ context.Context, e event.Event) {
			if d, ok := e.(event.Decided); ok {
				fields = append(fields, slices.Clone(d.RootFields))
				d.RootFields[0] = "changed"
			}
		})
	})
	for range 2 {
		f.post(request{Query: cheapQuery})
	}
	require.Equal(t, [][]string{{"Query.me"}, {"Query.me"}}, fields)
}

func TestAnEventNamesWhatBlocksAndWhatAnOperationMayCost(t *testing.T) {
	t.Parallel()
	f, told := newDecided(t, nil)
	f.post(request{Query: cheapQuery, Tenant: "blocked"})
	require.Equal(t, []string{"tiers.blocked.blocked"}, told.last(t).Origin.Rule)
	f.post(request{Query: `{ users(first: 900) { name } }`})
	require.Equal(t, []string{"tiers.free.maxCost"}, told.last(t).Origin.Rule)
	require.EqualValues(t, 500, told.last(t).MaxCost)
	require.Zero(t, told.last(t).ClearsAt, "waiting does not help")
	f.override(bucket.Override{Blocked: true})
	f.post(request{Query: cheapQuery})
	require.Empty(t, told.last(t).Origin.Rule)
	require.Equal(t, "audited-reason", told.last(t).Origin.Overrides[0].Reason)
	f.store.Fail(bucket.ErrAmbiguous)
	f.post(request{Query: cheapQuery, Tenant: "closed"})
	e := told.last(t)
	require.Equal(t, []string{"unavailable", "ambiguous", "closed"}, []string{e.Outcome, e.StoreResult, e.FailMode})
	require.Equal(t, "tiers.closed.failMode", e.Origin.FailMode)
}

func TestAdmissionsAreToldByTheShareThatIsAskedFor(t *testing.T) {
	t.Parallel()
	for share, atLeast := range map[float64][2]int{0: {0, 0}, 1: {200, 200}, 0.5: {50, 150}} {
		f, told := newDecided(t, func(cfg *ratelimit.Config) { cfg.Observe.Admissions = share })
		for range 200 {
			require.Equal(t, http.StatusOK, f.post(request{Query: `{ __typename }`, Tenant: "unlimited"}).Status)
		}
		require.GreaterOrEqual(t, told.count(), atLeast[0], share)
		require.LessOrEqual(t, told.count(), atLeast[1], share)
		if share == 1 {
			require.Equal(t, string(ratelimit.OutcomeAdmitted), told.last(t).Outcome)
			require.Empty(t, told.last(t).RefusalID)
		}
	}
	schema := testserver.NewExecutableSchema(testserver.Config{Resolvers: &testserver.Resolver{}})
	for _, share := range []float64{-0.1, 1.1, math.NaN()} {
		extension := ratelimit.New(ratelimit.Config{Observe: ratelimit.ObserveConfig{Admissions: share}})
		require.ErrorContains(t, extension.Validate(schema), "Observe.Admissions is")
	}
}

func TestNamesInDecisionsAreBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("\xff\"\n", 3000)
	f, told := newDecided(t, func(cfg *ratelimit.Config) {
		cfg.Policy = policyOf(t, "{version: 1, default: p, tiers: {p: {users: {limits: {m: {capacity: 5, per: day}}}}}}")
		cfg.Subject = func(context.Context, *ratelimit.Request) (ratelimit.Subject, error) {
			return ratelimit.Subject{Tenant: long, Team: long, User: long, Tier: long}, nil
		}
	})
	var aliases strings.Builder
	for i := range 100 {
		fmt.Fprintf(&aliases, "a%d: users(first: 50) { name } ", i)
	}
	f.post(request{Query: "query " + strings.Repeat("N", 5000) + "{" + aliases.String() + "}"})
	e := told.last(t)
	require.LessOrEqual(t, len(e.Operation), 64)
	var line bytes.Buffer
	event.NewLogger(slog.New(slog.NewTextHandler(&line, nil))).Observe(t.Context(), e)
	require.Equal(t, 1, strings.Count(line.String(), "\n"), "one line, whatever the names hold")
	require.Less(t, line.Len(), 8<<10)
}
