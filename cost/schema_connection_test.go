package cost_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

// relay is a schema without directives that follows the convention of connections, with fields that
// only seem to.
const relay = `
	type Query {
		users(first: Int, last: Int): UserConnection
		named(first: Int): [User!]!
		words(first: String): [User!]!
		found(first: Int): Found
		all: [User!]!
		one(first: Int): User
		mixed(first: Int): Mixed
	}
	type UserConnection { nodes: [User!]! edges: [Edge!]! more: [User!]! pageInfo: Page! }
	type Edge { node: User! }
	type Page { more: Boolean }
	type User { id: ID! friends(last: Int! = 3): UserConnection! }
	union Found = UserConnection | Page
	union Mixed = UserConnection | Box
	type Box { nodes: User edges: [Edge!]! }
`

var connections = cost.Connections{SlicingArguments: []string{"first", "last"}, SizedFields: []string{"nodes", "edges"}}

// relayTypeCost returns what a query costs in type cost under the convention.
func relayTypeCost(t *testing.T, query string, cfg cost.Config) float64 {
	t.Helper()
	schema, err := gqlparser.LoadSchema(&ast.Source{Input: relay})
	require.NoError(t, err)
	estimator, err := cost.New(schema, cfg)
	require.NoError(t, err)
	doc, errs := gqlparser.LoadQueryWithRules(schema, query, nil)
	require.Empty(t, errs)
	plan, err := estimator.Compile(doc, doc.Operations[0])
	require.NoError(t, err)
	price, err := plan.Evaluate(nil)
	require.NoError(t, err)
	return price.Type
}

func TestConnectionsAreSizedByTheirArguments(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]float64{
		`{ users(first: 4) { nodes { id } } }`:                           1 + 1 + 4,
		`{ users(first: 4, last: 7) { edges { node { id } } } }`:         1 + 1 + 7 + 7,
		`{ users { nodes { id } } }`:                                     1 + 1 + 10,
		`{ users(first: 4) { more { id } } }`:                            1 + 1 + 10,
		`{ users(first: 2) { nodes { friends { nodes { id } } } } }`:     1 + 1 + 2*(1+1+3),
		`{ named(first: 4) { id } }`:                                     1 + 4,
		`{ one(first: 4) { id } }`:                                       1 + 1,
		`{ all { id } }`:                                                 1 + 10,
		`{ words(first: "4") { id } }`:                                   1 + 4,
		`{ words(first: "four") { id } }`:                                math.Inf(1),
		`{ found(first: 4) { ... on UserConnection { nodes { id } } } }`: 1 + 1 + 4,
		`{ mixed(first: 4) { ... on UserConnection { nodes { id } } } }`: 1 + 1 + 10,
		`{ mixed(first: 4) { ... on Box { edges { node { id } } } } }`:   1 + 1 + 4 + 4,
	} {
		require.Equal(t, want, relayTypeCost(t, query, cost.Config{Connections: connections}), query)
	}
}

func TestListSizesBeatConnections(t *testing.T) {
	t.Parallel()
	two := 2
	cfg := cost.Config{Connections: connections, ListSizes: map[string]cost.ListSize{"Query.named": {AssumedSize: &two}}}
	require.Equal(t, 3.0, relayTypeCost(t, `{ named(first: 4) { id } }`, cfg))
}

func TestAListThatAConnectionSizesIsNotUnsized(t *testing.T) {
	t.Parallel()
	schema, err := gqlparser.LoadSchema(&ast.Source{Input: relay})
	require.NoError(t, err)
	estimator, err := cost.New(schema, cost.Config{Connections: connections})
	require.NoError(t, err)
	require.Equal(t, []string{"Query.all", "UserConnection.more"}, estimator.UnsizedLists())
}
