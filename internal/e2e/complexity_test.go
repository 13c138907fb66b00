package e2e_test

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
	"github.com/gqlgen-ratelimit/ratelimit/internal/testserver"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

// withFunctions returns a server of the schema with complexity functions, and what it logs.
func withFunctions(t *testing.T, set func(*testserver.ComplexityRoot), cfg cost.Config) (*fixture, *bytes.Buffer) {
	t.Helper()
	f := newFixture(t, nil)
	log := &bytes.Buffer{}
	c := testserver.Config{Resolvers: f.resolver}
	set(&c.Complexity)
	f.serve(testserver.NewExecutableSchema(c), ratelimit.New(ratelimit.Config{
		Store: f.store, Policy: compiledPolicy(t), Subject: byTenantHeader, Observe: ratelimit.ObserveConfig{Logger: slog.New(slog.NewTextHandler(log, nil))},
		Pricing: ratelimit.PricingConfig{UseComplexity: true, Cost: cfg},
	}))
	return f, log
}

func TestComplexityFunctionsOfTheServerAreFieldCosts(t *testing.T) {
	t.Parallel()
	f, log := withFunctions(t, func(c *testserver.ComplexityRoot) {
		c.Query.Users = func(childComplexity int, first *int) int { return 5 + *first*childComplexity }
		c.User.Friends = func(_, first int) int { return 2 * first }
		c.Query.Me = func(childComplexity int) int { return 9 + childComplexity }
		c.Query.Export = func(int, int) int { return 1000 }
	}, cost.Config{Complexity: map[string]cost.ComplexityFunc{
		"Query.me": func(int, map[string]any) (int, bool) { return 3, true },
	}})
	charged := func(query string, variables map[string]any) any {
		answer := f.post(request{Query: query, Variables: variables, Tenant: "unlimited"})
		return answer.rateLimit(t)["cost"]
	}
	// 1 for the root type, 4 × (1 + 3) for the users and friends, and 5 + 4 × (2 × 3).
	require.EqualValues(t, 1+16+29, charged(`{ users(first: 4) { friends(first: 3) { name } } }`, nil))
	require.EqualValues(t, 1+16+29, charged(`query ($n: Int) { users(first: $n) { friends(first: 3) { name } } }`, map[string]any{"n": 4}))
	// The configuration beats the server, and a directive both: export has a weight of 5.
	require.EqualValues(t, 1+1+3, charged(`{ me { name } }`, nil))
	require.EqualValues(t, 1+5, charged(`{ export(rows: 1) }`, nil))
	require.NotContains(t, log.String(), "complexity")
	// A function that panics on a missing argument prices its call at more than any budget holds.
	require.EqualValues(t, cost.MaxPoints, charged(`{ users { name } }`, nil))
	require.Equal(t, ratelimitclient.CodeCostLimitExceeded, f.post(request{Query: `{ users { name } }`}).errorCode(t))
	require.Contains(t, log.String(), `"ratelimit: a complexity function panicked" field=Query.users`)
}

func TestComplexityFunctionsAreNotUsedUnasked(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	c := testserver.Config{Resolvers: f.resolver}
	c.Complexity.Query.Me = func(int) int { return 90 }
	f.serve(testserver.NewExecutableSchema(c), ratelimit.New(ratelimit.Config{
		Store: f.store, Policy: compiledPolicy(t), Subject: byTenantHeader, Observe: ratelimit.ObserveConfig{Logger: discard},
	}))
	require.EqualValues(t, 3, f.post(request{Query: `{ me { name } }`}).rateLimit(t)["cost"])
}

func TestUsingComplexityFunctionsWhereThereAreNoneIsAMistake(t *testing.T) {
	t.Parallel()
	extension := ratelimit.New(ratelimit.Config{
		Store: bucket.NewMemory(bucket.MemoryConfig{}), Policy: compiledPolicy(t), Subject: byTenantHeader, Pricing: ratelimit.PricingConfig{UseComplexity: true},
	})
	err := extension.Validate(testserver.NewExecutableSchema(testserver.Config{}))
	require.ErrorContains(t, err, "Config.Pricing.UseComplexity: the server has no complexity function")
}
