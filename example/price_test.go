package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
	"github.com/gqlgen-ratelimit/ratelimit/example/internal/generated"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// schema returns the schema as the server has it.
func schema() *ast.Schema {
	return generated.NewExecutableSchema(generated.Config{}).Schema()
}

// price returns what the query costs without variables.
func price(t *testing.T, query string) int64 {
	t.Helper()
	estimator, err := cost.New(schema(), cost.Config{RequireListSizes: true})
	require.NoError(t, err, "every list of the schema has a size")
	doc, errs := gqlparser.LoadQueryWithRules(schema(), query, rules.NewDefaultRules())
	require.Empty(t, errs)
	plan, err := estimator.Plan(doc, doc.Operations[0])
	require.NoError(t, err)
	priced, err := plan.Evaluate(nil)
	require.NoError(t, err)
	return priced.Points()
}

func TestCommandsCostWhatTheySay(t *testing.T) {
	t.Parallel()
	for _, c := range commands {
		t.Run(c.title, func(t *testing.T) {
			t.Parallel()
			_, data, found := strings.Cut(c.line, "-d '")
			require.True(t, found)
			var body struct{ Query string }
			require.NoError(t, json.Unmarshal([]byte(strings.TrimSuffix(data, "'")), &body))
			require.Equal(t, c.cost, price(t, body.Query))
		})
	}
}

func TestPricesFollowFromTheSchema(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]int64{
		`{ viewer { login } }`: 3,
		`{ repository(owner: "mira", name: "x") { topics labels { name } } }`:            4,
		`{ repositories { nodes { name } } }`:                                            13,
		`{ repositories(first: 10) { edges { cursor node { name } } } }`:                 13,
		`{ repositories(first: 100) { nodes { owner { login } } } }`:                     303,
		`{ node(id: "I_1") { id } }`:                                                     3,
		`{ search(query: "cache") { __typename } }`:                                      21,
		`mutation { addComment(input: {issueId: "I_1", body: "x"}) { comment { id } } }`: 16,
		`subscription { issueCreated { title } }`:                                        13,
	} {
		require.Equal(t, want, price(t, query), query)
	}
}

// builtIn returns the policy that the server has without flags.
func builtIn(t *testing.T) (tiers.Policy, *tiers.Snapshot) {
	t.Helper()
	policy, err := tiers.Parse(builtInPolicy)
	require.NoError(t, err)
	snapshot, err := tiers.Compile(policy)
	require.NoError(t, err)
	return policy, snapshot
}

func TestBuiltInPolicyCountsOperationsThatCostNothing(t *testing.T) {
	t.Parallel()
	require.Zero(t, price(t, `{ __typename }`))
	policy, snapshot := builtIn(t)
	require.NotEmpty(t, policy.Tiers)
	for tier := range policy.Tiers {
		t.Run(tier, func(t *testing.T) {
			t.Parallel()
			rules := snapshot.Rules(tiers.Subject{Tenant: "x", Tier: tier}, tiers.Selection{})
			require.NotEmpty(t, rules.Buckets)
			require.True(t, slices.ContainsFunc(rules.Buckets[0].Limits.All(), func(l bucket.Limit) bool {
				return l.Unit == bucket.Requests && l.Mode == bucket.Enforce
			}))
		})
	}
}

func TestBuiltInPolicyAssignsATierToEveryKey(t *testing.T) {
	t.Parallel()
	_, snapshot := builtIn(t)
	for tenant, tier := range map[string]string{
		"demo-free": "free", "demo-pro": "pro", "demo-enterprise": "enterprise", "203.0.113.7": "anonymous",
	} {
		require.Equal(t, tier, snapshot.Rules(tiers.Subject{Tenant: tenant}, tiers.Selection{}).Tier)
	}
	creating := snapshot.Rules(tiers.Subject{Tenant: "demo-free"}, tiers.Selection{Fields: []string{"Mutation.createIssue"}})
	require.Len(t, creating.Buckets, 2, "the tenant's and that of the operation")
}
