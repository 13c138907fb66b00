package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

// newFixtureUnder starts a server whose tenants are all in one tier.
func newFixtureUnder(t *testing.T, tier string, configure ...func(*ratelimit.Config)) *fixture {
	t.Helper()
	return newFixture(t, func(cfg *ratelimit.Config) {
		cfg.Policy = policyOf(t, "version: 1\ndefault: free\ntiers:\n  free:\n    limits: {minute: {capacity: 100000, per: minute}}\n"+tier)
		for _, more := range configure {
			more(cfg)
		}
	})
}

// logIn tries accounts, each under an alias of its own. Creating a user stands for logging in as one.
func logIn(accounts ...string) string {
	var document strings.Builder
	document.WriteString("mutation {")
	for i, account := range accounts {
		fmt.Fprintf(&document, " a%d: createUser(input: {name: %q}) { id }", i, account)
	}
	document.WriteString("}")
	return document.String()
}

// guesses are so many accounts.
func guesses(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprint("account", i)
	}
	return all
}

// left returns what is left of each limit in the bucket of a tenant.
func (f *fixture) left(tenant string, b bucket.Bucket) []int64 {
	f.t.Helper()
	states, err := f.store.Peek(f.t.Context(), tenant, []bucket.Bucket{b})
	require.NoError(f.t, err)
	var left []int64
	for _, state := range states {
		left = append(left, state.Remaining)
	}
	return left
}

// lastBucket is the last one of the last take.
func (f *fixture) lastBucket() bucket.Bucket {
	f.t.Helper()
	takes := f.store.Takes()
	require.NotEmpty(f.t, takes)
	buckets := takes[len(takes)-1].Buckets
	require.NotEmpty(f.t, buckets)
	return buckets[len(buckets)-1]
}

func TestTwoHundredLogInsUnderAliasesCostTwoHundred(t *testing.T) {
	t.Parallel()
	f := newFixtureUnder(t, "    operations: {Mutation.createUser: {limits: {minute: {capacity: 5, per: minute, unit: requests}}}}\n")
	require.Equal(t, ratelimitclient.CodeQueryLimitExceeded, f.post(request{Query: logIn(guesses(300)...)}).errorCode(t), "by the aliases alone")
	never := f.post(request{Query: logIn(guesses(200)...)})
	require.Equal(t, ratelimitclient.CodeCostLimitExceeded, never.errorCode(t), never.Body)
	require.Equal(t, http.StatusBadRequest, never.Status)
	require.Contains(t, never.Body, "200 requests")
	require.Zero(t, f.resolver.Created.Load(), "none of them ran")

	require.Equal(t, http.StatusOK, f.post(request{Query: logIn(guesses(3)...)}).Status)
	limited := f.post(request{Query: logIn(guesses(3)...)})
	require.Equal(t, http.StatusTooManyRequests, limited.Status, limited.Body)
	require.Contains(t, limited.Body, "3 requests needed, 2 of 5 left")
	require.Equal(t, http.StatusOK, f.post(request{Query: logIn(guesses(2)...)}).Status)
	require.EqualValues(t, 5, f.resolver.Created.Load())
}

func TestACallIsWhatExecutionRuns(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		query     string
		variables map[string]any
		calls     int64
	}{
		"two of one response name are one": {
			`mutation { a: createUser(input: {name: "x"}) { id } a: createUser(input: {name: "x"}) { name } }`, nil, 1,
		},
		"those in fragments count": {
			`mutation { ...f ...f ... on Mutation { b: createUser(input: {name: "x"}) { id } } }
			 fragment f on Mutation { a: createUser(input: {name: "x"}) { id } }`, nil, 2,
		},
		"those that are skipped do not": {
			`mutation($no: Boolean!) { a: createUser(input: {name: "x"}) { id } b: createUser(input: {name: "x"}) @skip(if: $no) { id }
			   c: createUser(input: {name: "x"}) @include(if: $no) { id } d: createUser(input: {name: "x"}) @include(if: false) { id } }`,
			map[string]any{"no": true},
			2,
		},
		"those of other fields do not": {
			`mutation { a: createUser(input: {name: "x"}) { id } b: createAndFail(name: "x") { id } }`, nil, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixtureUnder(t, "    operations: {Mutation.createUser: {limits: {minute: {capacity: 100, per: minute, unit: requests}}}}\n")
			f.post(request{Query: test.query, Variables: test.variables})
			require.Equal(t, []int64{100 - test.calls}, f.left("free", f.lastBucket()))
		})
	}
}

func TestEachUserHasABudgetOfAnOperation(t *testing.T) {
	t.Parallel()
	f := newFixtureUnder(t, `
    users: {operations: {Mutation.createUser: {limits: {minute: {capacity: 2, per: minute, unit: requests}}}}}
`)
	as := func(user string, calls int) reply {
		return f.post(request{Query: logIn(guesses(calls)...), User: user})
	}
	require.Equal(t, http.StatusOK, as("ann", 2).Status)
	refused := as("ann", 1)
	require.Equal(t, http.StatusTooManyRequests, refused.Status)
	require.Contains(t, refused.Body, `"owner":"Mutation.createUser#1"`)
	require.Equal(t, http.StatusOK, as("bob", 1).Status, "another user has a budget of its own")
	require.Equal(t, http.StatusOK, as("", 3).Status, "who is no user has none")
	require.Equal(t, http.StatusOK, f.post(request{Query: "{ me { name } }", User: "ann"}).Status, "it is of that operation alone")

	_, err := f.store.SetOverride(t.Context(), "free", bucket.Override{
		Owner: bucket.Owner{Level: bucket.Operation, Name: "Mutation.createUser", Part: "user:bob"}, Blocked: true, Reason: "r", Actor: "a",
	})
	require.NoError(t, err)
	require.Equal(t, ratelimitclient.CodeTenantBlocked, as("bob", 1).errorCode(t))
	require.Contains(t, as("bob", 1).Body, "Mutation.createUser is blocked for now, other operations are not: contact support")
	require.Equal(t, http.StatusOK, f.post(request{Query: "{ me { name } }", User: "bob"}).Status)
	require.Equal(t, http.StatusOK, as("eve", 1).Status)
}

func TestAUnitThatIsComputedFromArgumentsRefusesBeforeAResolverRuns(t *testing.T) {
	t.Parallel()
	f := newFixtureUnder(t, `
    users: {limits: {elements: {capacity: 3000, per: minute, unit: elements}}}
    operations: {Query.matrix: {units: {elements: [origins, destinations]}, limits: {hour: {capacity: 6000, per: hour, unit: elements}}}}
`)
	matrix := func(user string, origins, destinations int) reply {
		return f.post(request{
			Query:     `query($o: [ID!]!, $d: [ID!]!) { matrix(origins: $o, destinations: $d) other: matrix(origins: $o, destinations: "x") }`,
			Variables: map[string]any{"o": guesses(origins), "d": guesses(destinations)}, User: user,
		})
	}
	never := matrix("ann", 100, 100)
	require.Equal(t, ratelimitclient.CodeCostLimitExceeded, never.errorCode(t), never.Body)
	require.Zero(t, f.resolver.Asked.Load())
	require.Equal(t, http.StatusOK, matrix("ann", 40, 49).Status, "40 × 49 + 40 × 1")
	require.EqualValues(t, 2, f.resolver.Asked.Load())
	limited := matrix("ann", 40, 49)
	require.Equal(t, http.StatusTooManyRequests, limited.Status)
	require.Contains(t, limited.Body, "2000 elements needed, 1000 of 3000 left")
	require.EqualValues(t, 2, f.resolver.Asked.Load(), "no resolver ran")
	require.Equal(t, http.StatusOK, matrix("bob", 40, 49).Status)
	require.Equal(t, []int64{2000}, f.left("free", f.lastBucket()), "the operation counts those of both")
}

func TestAChargeInsideAnOperationDoesNotAskAgainForItsCalls(t *testing.T) {
	t.Parallel()
	f := newFixtureUnder(t, `
    operations: {Query.export: {limits: {minute: {capacity: 10, per: minute, unit: requests}, hour: {capacity: 100, per: hour, unit: exports}}}}
`)
	f.resolver.OnExport = func(ctx context.Context, rows int) error {
		return ratelimit.Charge(ctx, "exports", int64(rows))
	}
	reply := f.post(request{Query: `{ a: export(rows: 1) b: export(rows: 2) c: export(rows: 3) }`})
	require.Equal(t, http.StatusOK, reply.Status, reply.Body)
	require.Equal(t, []int64{7, 94}, f.left("free", f.lastBucket()))
}
