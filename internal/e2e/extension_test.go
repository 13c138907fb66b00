package e2e_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
	"github.com/gqlgen-ratelimit/ratelimit/internal/testserver"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

const (
	cheapQuery = `{ me { name } }`
	// listQuery costs 1 for the call, 1 for the root type and 60 for the users.
	listQuery  = `{ users(first: 60) { name } }`
	createUser = `mutation { createUser(input: {name: "Grace"}) { id name } }`
)

func TestAnOperationAboveTheMaximumCostIsNeverAdmitted(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	reply := f.post(request{Query: `{ users(first: 100) { friends(first: 100) { name } } }`})
	require.Equal(t, http.StatusBadRequest, reply.Status)
	require.Equal(t, ratelimitclient.CodeCostLimitExceeded, reply.errorCode(t))
	require.Empty(t, reply.Header.Get("Retry-After"), "waiting does not help")
	require.Empty(t, f.store.Takes(), "the store is not asked")
}

func TestAnOperationAboveACapacityIsToldThatWaitingDoesNotHelp(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	reply := f.post(request{Query: `{ users(first: 100) { name } }`})
	require.Equal(t, http.StatusBadRequest, reply.Status)
	require.Equal(t, ratelimitclient.CodeCostLimitExceeded, reply.errorCode(t))
	require.Empty(t, reply.Header.Get("Retry-After"))
}

func TestTwoSlicingArgumentsWhereOneIsRequiredAreRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	reply := f.post(request{Query: `{ page(first: 1, last: 2) { name } }`})
	require.Equal(t, http.StatusBadRequest, reply.Status)
	require.Equal(t, ratelimitclient.CodeQueryLimitExceeded, reply.errorCode(t))
	require.Contains(t, reply.Body, "page")
}

func TestShadowModeReportsWhatItWouldRefuseAndRefusesNothing(t *testing.T) {
	t.Parallel()
	var outcomes []ratelimit.Outcome
	f := newFixture(t, showShadow)
	see(f.server, func(d ratelimit.Decision) { outcomes = append(outcomes, d.Outcome) })
	tooExpensive := f.post(request{Query: listQuery, Tenant: "shadow"})
	require.Equal(t, http.StatusOK, tooExpensive.Status)
	require.Equal(t, ratelimitclient.CodeCostLimitExceeded, tooExpensive.rateLimit(t)["wouldRefuse"])

	require.Nil(t, f.post(request{Query: half, Tenant: "shadow"}).rateLimit(t)["wouldRefuse"])
	over := f.post(request{Query: half, Tenant: "shadow"})
	require.Equal(t, http.StatusOK, over.Status)
	require.Equal(t, ratelimitclient.CodeRateLimited, over.rateLimit(t)["wouldRefuse"])
	require.EqualValues(t, 8, over.rateLimit(t)["remaining"], "what would be refused is left uncharged")
	require.Equal(t, []ratelimit.Outcome{ratelimit.OutcomeShadowed, ratelimit.OutcomeAdmitted, ratelimit.OutcomeShadowed}, outcomes)
}

func TestALimitThatIsEnforcedInAShadowTierRefuses(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	require.Equal(t, http.StatusOK, f.post(request{Query: half, Tenant: "watchful"}).Status)
	require.Equal(t, http.StatusTooManyRequests, f.post(request{Query: half, Tenant: "watchful"}).Status)
	f.store.Fail(bucket.ErrUnavailable)
	require.Equal(t, http.StatusServiceUnavailable, f.post(request{Query: half, Tenant: "watchful"}).Status)
}

func TestModeOffAsksNoStore(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	for range 5 {
		require.Equal(t, http.StatusOK, f.post(request{Query: listQuery, Tenant: "off"}).Status)
	}
	require.Empty(t, f.store.Takes())
}

func TestAnUnlimitedTenantIsAdmittedAndABlockedOneIsNot(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	unlimited := f.post(request{Query: `{ users(first: 100) { friends(first: 100) { name } } }`, Tenant: "unlimited"})
	require.Equal(t, http.StatusOK, unlimited.Status)
	blocked := f.post(request{Query: cheapQuery, Tenant: "blocked"})
	require.Equal(t, http.StatusForbidden, blocked.Status)
	require.Equal(t, ratelimitclient.CodeTenantBlocked, blocked.errorCode(t))
}

func TestAnExemptSubjectIsNeitherChargedNorReported(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(cfg *ratelimit.Config) {
		cfg.Subject = func(context.Context, *ratelimit.Request) (ratelimit.Subject, error) {
			return ratelimit.Subject{Exempt: true}, nil
		}
	})
	reply := f.post(request{Query: listQuery})
	require.Equal(t, http.StatusOK, reply.Status)
	require.Nil(t, reply.rateLimit(t))
	require.Empty(t, f.store.Takes())
}

func TestDocumentsThatDoNotValidateAreChargedTheFlatAmount(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(cfg *ratelimit.Config) { cfg.Pricing.InvalidDocument = 50 })
	for name, document := range map[string]string{
		"syntax": `{ me {`, "validation": `{ nothingLikeThis }`,
	} {
		reply := f.post(request{Query: document, Tenant: name})
		require.Equal(t, http.StatusUnprocessableEntity, reply.Status, name)
		require.EqualValues(t, 50, reply.rateLimit(t)["charged"], name)
		f.post(request{Query: document, Tenant: name})
		refused := f.post(request{Query: document, Tenant: name})
		require.Equal(t, http.StatusTooManyRequests, refused.Status, name)
		require.Equal(t, ratelimitclient.CodeRateLimited, refused.errorCode(t), name)
	}
}

func TestWhatAnotherExtensionRefusesIsNotCharged(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.server.Use(refusingExtension{})
	reply := f.post(request{Query: listQuery})
	require.Contains(t, reply.Body, "refused by another")
	require.Empty(t, f.store.Takes())
}

// refusingExtension refuses every operation after it was priced.
type refusingExtension struct{}

func (refusingExtension) ExtensionName() string                   { return "Refusing" }
func (refusingExtension) Validate(graphql.ExecutableSchema) error { return nil }
func (refusingExtension) MutateOperationContext(context.Context, *graphql.OperationContext) *gqlerror.Error {
	return gqlerror.Errorf("refused by another extension")
}

// refusingResponses answers in the place of the resolvers while it is active.
type refusingResponses struct{ active atomic.Bool }

func (*refusingResponses) ExtensionName() string                   { return "RefusingResponses" }
func (*refusingResponses) Validate(graphql.ExecutableSchema) error { return nil }
func (r *refusingResponses) InterceptResponse(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
	if r.active.Load() {
		return &graphql.Response{Errors: gqlerror.List{gqlerror.Errorf("refused by another extension")}}
	}
	return next(ctx)
}

func TestAMutationByGETIsNotCharged(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	require.Equal(t, http.StatusNotAcceptable, f.get(request{Query: createUser}).Status)
	require.Empty(t, f.store.Takes())
}

func TestANegativeChargeIsAnError(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	var err error
	f.resolver.OnExport = func(ctx context.Context, _ int) error {
		err = ratelimit.Charge(ctx, "exports", -5)
		return nil
	}
	f.post(request{Query: `{ export(rows: 1) }`})
	require.ErrorIs(t, err, bucket.ErrInvalid)
}

func TestAStoreThatIsAwayAdmitsOrRefusesByTheFailMode(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.store.Fail(bucket.ErrAmbiguous)
	open := f.post(request{Query: cheapQuery})
	require.Equal(t, http.StatusOK, open.Status)
	require.Equal(t, true, open.rateLimit(t)["storeUnavailable"])
	closed := f.post(request{Query: cheapQuery, Tenant: "closed"})
	require.Equal(t, http.StatusServiceUnavailable, closed.Status)
	require.Equal(t, ratelimitclient.CodeUnavailable, closed.errorCode(t))
	require.NotEmpty(t, closed.Header.Get("Retry-After"))

	f.store.Fail(nil)
	require.Equal(t, http.StatusOK, f.post(request{Query: cheapQuery, Tenant: "closed"}).Status)
}

func TestStatusOKKeepsTheStatusOfGqlgen(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(cfg *ratelimit.Config) { cfg.Response.StatusOK = true })
	reply := f.post(request{Query: cheapQuery, Tenant: "blocked"})
	require.Equal(t, http.StatusOK, reply.Status)
	require.Equal(t, ratelimitclient.CodeTenantBlocked, reply.errorCode(t))
}

func TestAPricingFunctionOfOnesOwnSetsThePrice(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(cfg *ratelimit.Config) {
		cfg.Pricing.Points = func(c cost.Cost) int64 {
			if c.Base > 0 {
				panic("mutations are not priced")
			}
			return int64(c.Field)
		}
	})
	require.EqualValues(t, 1, f.post(request{Query: listQuery}).rateLimit(t)["cost"])
	require.Equal(t, ratelimitclient.CodeCostLimitExceeded, f.post(request{Query: createUser}).errorCode(t),
		"a function that panics makes the operation too expensive, never cheap")
}

func TestWeightsByCoordinatePriceASchemaOneDoesNotOwn(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(cfg *ratelimit.Config) {
		cfg.Pricing.Cost.Weights = map[string]float64{"Query.me": 40}
	})
	require.EqualValues(t, 42, f.post(request{Query: cheapQuery}).rateLimit(t)["cost"])
}

func TestAnAliasIsAnotherCallAndTheSameFieldIsNot(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	require.EqualValues(t, 3, f.post(request{Query: `{ me { name } me { id } }`}).rateLimit(t)["cost"])
	require.EqualValues(t, 6, f.post(request{Query: `{ me { name } again: me { id } }`}).rateLimit(t)["cost"], "and a tenth for the alias")
}

func TestTheFieldsOfARefusalNameTheLimit(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.resolver.OnExport = func(ctx context.Context, rows int) error {
		return ratelimit.Charge(ctx, "exports", int64(rows))
	}
	f.post(request{Query: `{ export(rows: 10) }`})
	body := f.post(request{Query: `{ export(rows: 1) }`}).Body
	for _, part := range []string{
		`"limit":"exports"`, `"level":"operation"`, `"owner":"Query.export"`, `"unit":"exports"`, `"retryAfter":360`,
	} {
		require.Contains(t, body, part)
	}
}

func TestWhereNoLimitWasJudgedNoBudgetIsShown(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	require.Equal(t, map[string]any{"cost": 3.0, "charged": 0.0}, f.post(request{Query: cheapQuery, Tenant: "unlimited"}).rateLimit(t))
	signal := f.post(request{Query: cheapQuery, Tenant: "unlimited", Cost: "full"}).rateLimit(t)
	require.Equal(t, map[string]any{
		"cost": 3.0, "charged": 0.0, "actual": 3.0, "limits": []any{}, "tier": "unlimited", "mode": "enforce", "replayed": false,
	}, signal)
}

func TestUsePanicsWithTheMistakes(t *testing.T) {
	t.Parallel()
	server := handler.New(testserver.NewExecutableSchema(testserver.Config{Resolvers: &testserver.Resolver{}}))
	require.PanicsWithError(t, errorOf(func() { server.Use(ratelimit.New(ratelimit.Config{})) }), func() {
		server.Use(ratelimit.New(ratelimit.Config{}))
	})
	require.Contains(t, errorOf(func() { server.Use(ratelimit.New(ratelimit.Config{})) }), "Config.Store is nil")
}

func errorOf(f func()) (message string) {
	defer func() {
		if err, ok := recover().(error); ok {
			message = err.Error()
		}
	}()
	f()
	return ""
}
