package e2e_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimittest"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

func TestARefusalForItsPriceNamesTheMostExpensiveCallAndItsList(t *testing.T) {
	t.Parallel()
	f, told := newDecided(t, nil)
	reply := f.post(request{Query: `{ me { name } users(first: 20) { friends(first: 30) { name } } }`})
	require.Equal(t, ratelimitclient.CodeCostLimitExceeded, reply.errorCode(t))
	require.Contains(t, reply.message(t), "% of that is User.friends, a list of 30 (first), called 20 times")
	response, err := ratelimitclient.FromResponse([]byte(reply.Body))
	require.NoError(t, err)
	require.Equal(t, "User.friends", response.Refusal.Dearest)
	require.EqualValues(t, 30, response.Refusal.DearestList)
	require.Equal(t, "User.friends", told.last(t).Dearest)

	never := f.post(request{Query: `{ users(first: 300) { name } }`})
	require.Contains(t, never.message(t), `can ever hold (100): ask for less at a time; 99 % of that is Query.users, a list of 300 (first)`)

	f.post(request{Query: dear})
	limited := f.post(request{Query: dear})
	require.NotContains(t, limited.message(t), "Query.users", "it passes later as it is")
	require.NotContains(t, limited.Body, "dearest")
}

func TestTheMostExpensiveCallIsLookedForInAFewOperationsOfATenantInASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newInProcess(t, ratelimittest.NewStore(nil), nil)
		named := func(tenant string) (n int) {
			for range 50 {
				reply := f.post(request{Query: `{ users(first: 900) { name } }`, Tenant: tenant})
				require.Equal(t, ratelimitclient.CodeCostLimitExceeded, reply.errorCode(t))
				if strings.Contains(reply.Body, "Query.users") {
					n++
				}
			}
			return n
		}
		require.Equal(t, 10, named("free"))
		require.Equal(t, 10, named("other"), "the flood of one tenant is no matter of another")
		sleep(time.Second)
		require.Equal(t, 10, named("free"))
	})
}

func TestAWarningForItsPriceNamesTheMostExpensiveCallToo(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	warned, _ := f.post(request{Query: dear, Tenant: "warned"}).rateLimit(t)["warning"].(map[string]any)
	require.Contains(t, warned["message"], "Query.users, a list of 60 (first)")
}

func TestWhoIsNotToldPricesIsNotToldTheMostExpensiveCall(t *testing.T) {
	t.Parallel()
	f, told := newDecided(t, func(cfg *ratelimit.Config) { cfg.Response.Hide = tiers.Hide{Cost: true} })
	for _, query := range []string{`{ users(first: 900) { name } }`, `{ users(first: 300) { name } }`} {
		reply := f.post(request{Query: query})
		require.Equal(t, ratelimitclient.CodeCostLimitExceeded, reply.errorCode(t))
		require.NotContains(t, reply.Body, "Query.users")
		require.NotContains(t, reply.Body, "dearest")
		require.Equal(t, "Query.users", told.last(t).Dearest, "the operator sees it")
	}
}

func TestAPriceBeyondAnyNumberNamesItsCallWithoutAShare(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	query := `query($n: Int!) { users(first: $n) { friends(first: $n) { friends(first: $n) { name } } } }`
	reply := f.post(request{Query: query, Variables: map[string]any{"n": 2147483647}})
	require.Equal(t, ratelimitclient.CodeCostLimitExceeded, reply.errorCode(t))
	require.Contains(t, reply.message(t), "User.friends, a list of 2147483647 (first), called ")
}
