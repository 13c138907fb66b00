package tiers_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// fields are the root fields of a small schema.
var fields = []string{"Query.me", "Query.searchBooks", "Mutation.checkout", "Mutation.login"}

func texts(warnings []tiers.Warning) (all []string) {
	for _, warning := range warnings {
		all = append(all, warning.String())
	}
	return all
}

func TestAnOperationRuleThatNoRootFieldMatchesIsNamedWhereverItStands(t *testing.T) {
	t.Parallel()
	id := tiers.DocumentID("{ me }")
	s, err := tiers.Load([]byte(`version: 1
default: free
backstop:
  operations:
    Mutation.checkout: {limits: {second: {capacity: 10, per: second}}}
    Mutation.chekout: {limits: {second: {capacity: 10, per: second}}}
    Subscription.*: {limits: {second: {capacity: 10, per: second}}}
tiers:
  free:
    operations:
      Query.search*: {maxCost: 5}
      Query.find*: {maxCost: 5}
      Query.*: {maxCost: 9}
      `+id+`: {maxCost: 9}
    users:
      operations:
        Mutation.logout: {limits: {minute: {capacity: 5, per: minute}}}
        Mutation.login: {limits: {minute: {capacity: 5, per: minute}}}
tenants:
  acme: {operations: {Mutation.signup: {maxCost: 5}, Mutation.chekout: {maxCost: 5}}}
  globex: {users: {operations: {Mutation.signup: {limits: {minute: {capacity: 5, per: minute}}}}}}
  initech: {users: {operations: {query.me: {limits: {minute: {capacity: 5, per: minute}}}}}}
`), 1)
	require.NoError(t, err)
	const why = ": no root field of the schema matches, so that nothing falls under the rule"
	require.Equal(t, []string{
		`line 6, column 5: backstop.operations["Mutation.chekout"]` + why + `; is "Mutation.checkout" meant?`,
		`line 7, column 5: backstop.operations["Subscription.*"]` + why,
		`line 12, column 7: tiers.free.operations["Query.find*"]` + why,
		`line 17, column 9: tiers.free.users.operations["Mutation.logout"]` + why,
		`line 20, column 23: tenants.acme.operations["Mutation.signup"]` + why,
		`line 22, column 34: tenants.initech.users.operations["query.me"]` + why + `; is "Query.me" meant?`,
	}, texts(s.Unmatched(fields)))
	require.Empty(t, s.Warnings(), "the policy itself knows no schema")
}

func TestAtMostAHundredOperationRulesAreNamedAndAPolicyOfGoValuesHasNoLines(t *testing.T) {
	t.Parallel()
	policy := tiers.Policy{Version: 1, Default: "free", Tiers: map[string]tiers.Tier{}}
	for i := range 30 {
		rules := map[string]tiers.OperationRule{}
		for j := range 10 {
			rules[fmt.Sprintf("Query.x%02d", j)] = tiers.OperationRule{MaxCost: 1}
		}
		policy.Tiers[fmt.Sprintf("t%02d", i)] = tiers.Tier{Operations: rules}
	}
	policy.Tiers["free"] = tiers.Tier{Unlimited: true}
	s, err := tiers.Compile(policy)
	require.NoError(t, err)
	unmatched := s.Unmatched(fields)
	require.Len(t, unmatched, 100)
	require.True(t, strings.HasPrefix(unmatched[0].String(), `tiers.t00.operations["Query.x00"]: `), unmatched[0].String())
}
