package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimittest"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

const readBudget = `{ rateLimit { cost unit limit remaining used resetAfter resetAt } }`

// data returns the data of an answer.
func (r reply) data(t *testing.T) map[string]any {
	t.Helper()
	var body struct {
		Data map[string]any `json:"data"`
	}
	require.NoError(t, json.Unmarshal([]byte(r.Body), &body), r.Body)
	return body.Data
}

func TestTheFieldRateLimitReadsTheBudgetForNothingButARequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Second / 2) //nolint:forbidigo // in a bubble, where it takes no time
		store := ratelimittest.NewStore(&ratelimittest.Clock{})
		p := newInProcess(t, store, nil)
		p.post(request{Query: listQuery})
		for range 2 {
			reply := p.post(request{Query: readBudget})
			require.Equal(t, map[string]any{
				"cost": 0.0, "unit": "points", "limit": 100.0, "remaining": 38.0, "used": 62.0,
				"resetAfter": 37.2, "resetAt": "2000-01-01T00:00:38Z",
			}, reply.data(t)["rateLimit"])
			require.EqualValues(t, 0, reply.rateLimit(t)["charged"])
		}
		last := store.Takes()[2]
		require.EqualValues(t, 0, last.Amounts.Of(bucket.Points))
		require.EqualValues(t, 1, last.Amounts.Of(bucket.Requests))
	})
}

func TestTheFieldRateLimitAddsNothingToALargerOperation(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	alone := f.post(request{Query: `{ users(first: 3) { name } }`}).rateLimit(t)["cost"]
	beside := f.post(request{Query: `{ users(first: 3) { name } rateLimit { cost limit remaining } b: rateLimit { cost } }`})
	require.Equal(t, alone, beside.rateLimit(t)["cost"])
	require.Equal(t, map[string]any{"cost": alone, "limit": 100.0, "remaining": 90.0}, beside.data(t)["rateLimit"],
		"the limit in points, although fewer requests are left")
}

func TestTheFieldRateLimitKnowsWhatAResolverHasCharged(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.resolver.OnExport = func(ctx context.Context, rows int) error {
		before := ratelimit.BudgetFromContext(ctx)
		if err := ratelimit.Charge(ctx, bucket.Points, int64(rows)); err != nil {
			return err
		}
		require.Equal(t, *before.Remaining-rows, *ratelimit.BudgetFromContext(ctx).Remaining)
		return nil
	}
	require.Equal(t, true, f.post(request{Query: `{ export(rows: 7) }`}).data(t)["export"])
}

func TestTheFieldRateLimitIsNullWhereNothingIsKnown(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	unlimited := f.post(request{Query: `{ me { name } rateLimit { cost limit remaining resetAt } }`, Tenant: "unlimited"})
	require.Equal(t, map[string]any{"cost": 3.0, "limit": nil, "remaining": nil, "resetAt": nil}, unlimited.data(t)["rateLimit"])

	exempt := newFixture(t, func(cfg *ratelimit.Config) {
		cfg.Subject = func(context.Context, *ratelimit.Request) (ratelimit.Subject, error) {
			return ratelimit.Subject{Exempt: true}, nil
		}
	})
	require.Contains(t, exempt.post(request{Query: readBudget}).Body, `{"rateLimit":null}`)
	require.Nil(t, ratelimit.BudgetFromContext(t.Context()))
}

func TestNumbersThatNoIntOfGraphQLHoldsAreTheLargest(t *testing.T) {
	t.Parallel()
	snapshot, err := tiers.Compile(tiers.Policy{Default: "huge", Tiers: map[string]tiers.Tier{
		"huge": {Limits: map[string]*tiers.Limit{"hour": {Capacity: 5_000_000_000, Per: tiers.Hour}}},
	}})
	require.NoError(t, err)
	f := newFixture(t, func(cfg *ratelimit.Config) { cfg.Policy = snapshot })
	f.post(request{Query: listQuery})
	budget := f.post(request{Query: readBudget}).data(t)["rateLimit"]
	require.Subset(t, budget, map[string]any{"limit": float64(math.MaxInt32), "remaining": float64(math.MaxInt32), "used": 62.0})
}

// restOfAsked is what is selected in asked, with the end of the operation.
var restOfAsked = strings.TrimPrefix(asked, `query ($n: Int!) { `)

// dryRuns are queries that ask not to be run, with their variables.
var dryRuns = map[string]request{
	"literal":     {Query: `query($n: Int!) { rateLimit(dryRun: true) { cost } ` + restOfAsked},
	"alias":       {Query: `query($n: Int!) { __typename a: rateLimit(dryRun: true) { cost } ` + restOfAsked},
	"variable":    {Query: `query($n: Int!, $d: Boolean!) { rateLimit(dryRun: $d) { cost } ` + restOfAsked, Variables: map[string]any{"d": true}},
	"default":     {Query: `query($n: Int!, $d: Boolean = true) { rateLimit(dryRun: $d) { cost } ` + restOfAsked},
	"fragment":    {Query: `query($n: Int!) { ...F ` + restOfAsked + ` fragment F on Query { ... on Query { rateLimit(dryRun: true) { cost } } }`},
	"included":    {Query: `query($n: Int!, $y: Boolean!) { ...F @include(if: $y) ` + restOfAsked + ` fragment F on Query { rateLimit(dryRun: true) @skip(if: false) { cost } }`, Variables: map[string]any{"y": true}},
	"one of both": {Query: `query($n: Int!) { rateLimit { cost } b: rateLimit(dryRun: true) { cost } ` + restOfAsked},
}

func TestADryRunIsPricedAndRunsNothingButRateLimit(t *testing.T) {
	t.Parallel()
	for name, r := range dryRuns {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newAskingFixture(t)
			variables := map[string]any{"n": 3}
			for key, value := range r.Variables {
				variables[key] = value
			}
			r.Variables, r.Tenant, r.Key = variables, "both", testKey
			reply := f.post(r)
			require.Equal(t, http.StatusOK, reply.Status, reply.Body)
			require.Zero(t, f.resolver.Asked.Load())
			require.NotContains(t, reply.data(t), "search")
			require.Contains(t, reply.Body, `"cost":20}`, "the price of the whole operation")
			signal := reply.rateLimit(t)
			require.Subset(t, signal, map[string]any{"cost": 20.0, "charged": 0.0, "remaining": 100.0, "validated": true})
			require.NotContains(t, signal, "actual")
			require.Len(t, f.store.Takes(), 1)
			require.Nil(t, f.store.Takes()[0].Claim, "the key is not used")
			require.EqualValues(t, 0, f.store.Takes()[0].Amounts.Of(bucket.Points))
			require.EqualValues(t, 1, f.store.Takes()[0].Amounts.Of(bucket.Requests))

			run := f.post(request{Query: asked, Variables: map[string]any{"n": 3}, Tenant: "both"})
			require.EqualValues(t, 20, run.rateLimit(t)["cost"])
			require.EqualValues(t, 1, f.resolver.Asked.Load())
		})
	}
}

func TestAQueryThatAsksForNoDryRunRuns(t *testing.T) {
	t.Parallel()
	for _, query := range []string{
		`{ rateLimit { cost } me { name } }`,
		`{ rateLimit(dryRun: false) { cost } me { name } }`,
		`query($d: Boolean = true) { rateLimit(dryRun: $d) { cost } me { name } }`,
		`{ rateLimit(dryRun: true) @skip(if: true) { cost } me { name } }`,
		`{ ... @include(if: false) { rateLimit(dryRun: true) { cost } } me { name } }`,
		`{ ...F @skip(if: true) me { name } } fragment F on Query { rateLimit(dryRun: true) { cost } }`,
	} {
		f := newAskingFixture(t)
		require.Contains(t, f.post(request{Query: query, Tenant: "both", Variables: map[string]any{"d": false}}).Body, "Ada", query)
	}
}

func TestOnlyWhoMayValidateMayRunDry(t *testing.T) {
	t.Parallel()
	f := newAskingFixture(t)
	reply := f.post(request{Query: `{ rateLimit(dryRun: true) { cost } me { name } }`, Tenant: "report"})
	require.Equal(t, http.StatusForbidden, reply.Status)
	require.Equal(t, ratelimit.CodeCostRequestForbidden, reply.errorCode(t))
	require.Contains(t, reply.Body, "without rateLimit(dryRun: true)")
	require.Zero(t, f.resolver.Asked.Load())
	require.Equal(t, ratelimit.CodeTenantBlocked,
		f.post(request{Query: `{ rateLimit(dryRun: true) { cost } }`, Tenant: "blocked"}).errorCode(t))
}

func TestADryRunSaysWhetherTheOperationCouldEverRun(t *testing.T) {
	t.Parallel()
	f := newAskingFixture(t)
	dear := request{
		Query:  `query($n: Int!) { rateLimit(dryRun: true) { cost } ` + restOfAsked,
		Tenant: "both", Variables: map[string]any{"n": 90}, Cost: "report",
	}
	reply := f.post(dear)
	require.Equal(t, http.StatusOK, reply.Status)
	require.Equal(t, ratelimit.CodeCostLimitExceeded, reply.rateLimit(t)["wouldRefuse"])
	require.Contains(t, reply.rateLimit(t), "breakdown", "who asks for a report as well gets one")
}

func TestADryRunCountsAsARequest(t *testing.T) {
	t.Parallel()
	snapshot, err := tiers.Compile(tiers.Policy{Default: "few", Tiers: map[string]tiers.Tier{
		"few": {CostValidate: true, Limits: map[string]*tiers.Limit{"minute": {Unit: "requests", Capacity: 2, Per: tiers.Minute}}},
	}})
	require.NoError(t, err)
	f := newFixture(t, func(cfg *ratelimit.Config) { cfg.Policy = snapshot })
	dry := request{Query: `{ rateLimit(dryRun: true) { cost unit remaining } me { name } }`}
	require.Equal(t, map[string]any{"cost": 3.0, "unit": "requests", "remaining": 1.0}, f.post(dry).data(t)["rateLimit"])
	require.Equal(t, http.StatusOK, f.post(dry).Status)
	require.Equal(t, ratelimit.CodeRateLimited, f.post(dry).errorCode(t))
	require.Zero(t, f.resolver.Asked.Load())
}

func TestADryRunWhileTheStoreIsAwayFollowsTheFailMode(t *testing.T) {
	t.Parallel()
	f := newAskingFixture(t)
	f.store.Fail(bucket.ErrUnavailable)
	reply := f.post(request{Query: `{ rateLimit(dryRun: true) { cost remaining } me { name } }`, Tenant: "both"})
	require.Equal(t, map[string]any{"cost": 3.0, "remaining": nil}, reply.data(t)["rateLimit"])
	require.Equal(t, true, reply.rateLimit(t)["storeUnavailable"])
	require.Zero(t, f.resolver.Asked.Load())
}

func TestADryRunOfWhatHasNoPriceRunsNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(cfg *ratelimit.Config) {
		cfg.Policy = askingPolicy(t)
		cfg.Cost.WorkLimit, cfg.Cost.RefuseOverWork = 1, true
	})
	reply := f.post(request{Query: `{ rateLimit(dryRun: true) { cost } me { name friends(first: 1) { name } } }`, Tenant: "off"})
	require.Zero(t, f.resolver.Asked.Load(), reply.Body)
	require.Equal(t, true, reply.rateLimit(t)["validated"])
}

func TestADryRunOnAWebSocketEndsWithItsAnswer(t *testing.T) {
	t.Parallel()
	f := newAskingFixture(t)
	s := f.dial("both", nil)
	messages := s.run("1", request{Query: `{ rateLimit(dryRun: true) { cost } me { name } }`})
	require.Len(t, messages, 2)
	require.Contains(t, messages[0], `"data":{"rateLimit":{"cost":3}}`)
	require.Contains(t, s.run("2", request{Query: `{ me { name } }`})[0], "Ada")
}

func TestTheTypeOfTheFieldHasTheKeysOfTheGoType(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.post(request{Query: listQuery})
	reply := f.post(request{Query: strings.Replace(readBudget, "{ rateLimit", "{ me { name } rateLimit", 1)})
	encoded, err := json.Marshal(reply.data(t)["rateLimit"])
	require.NoError(t, err)
	var budget ratelimitclient.Budget
	decoder := json.NewDecoder(strings.NewReader(string(encoded)))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&budget))
	require.Equal(t, 3, *budget.Cost)
	require.Equal(t, 35, *budget.Remaining)
}

// TestADryRunIsFoundInFragmentsThatSpreadEachOtherTwice would not end if a fragment were read at each of its
// spreads, of which there are 2^40.
func TestADryRunIsFoundInFragmentsThatSpreadEachOtherTwice(t *testing.T) {
	t.Parallel()
	var query strings.Builder
	query.WriteString(`{ ...F0 me { name } } fragment F40 on Query { rateLimit(dryRun: true) { cost } }`)
	for i := range 40 {
		fmt.Fprintf(&query, ` fragment F%d on Query { ...F%d ...F%d }`, i, i+1, i+1)
	}
	f := newAskingFixture(t)
	reply := f.post(request{Query: query.String(), Tenant: "both"})
	require.Equal(t, true, reply.rateLimit(t)["validated"], reply.Body)
	require.Zero(t, f.resolver.Asked.Load())
}
