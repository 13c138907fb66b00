package e2e_test

import (
	"context"
	"encoding/json"
	"math"
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
