package tiers_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

func TestADocumentThatTheRulesNameHasABudgetOfItsOwn(t *testing.T) {
	t.Parallel()
	trusted := tiers.DocumentID("{ me { name } }")
	require.Equal(t, "sha256:b58723c4fd7ce18043ae53635b304ba6cee765a67009645b04ca01e80ce1c065", trusted, "that of {me{name}}")
	s := compiled(t, fmt.Sprintf(`
version: 1
default: pro
tiers:
  pro:
    limits: {minute: {capacity: 100, per: minute}}
    operations:
      %s: {maxCost: 7, limits: {minute: {unit: requests, capacity: 5, per: minute}}}
      Query.*: {limits: {hour: {capacity: 1000, per: hour}}}
`, trusted))
	require.True(t, s.NamesDocuments())
	rules := s.Rules(tiers.Subject{Tenant: "x"}, tiers.Selection{Fields: []string{"Query.me"}, Document: trusted})
	require.Equal(t, []string{"tenant:", "operation:Query.*", "operation:" + trusted}, owners(rules))
	require.EqualValues(t, 7, rules.MaxCost.Enforce)
	limits := limitsOf(t, rules, bucket.Owner{Level: bucket.Operation, Name: trusted})
	require.EqualValues(t, 5, limits["minute"].Capacity)

	other := tiers.DocumentID("{ me { names } }")
	require.Equal(t, []string{"tenant:", "operation:Query.*"}, owners(s.Rules(tiers.Subject{Tenant: "x"}, tiers.Selection{Fields: []string{"Query.me"}, Document: other})))
	require.False(t, compiled(t, cascade).NamesDocuments())
}

func TestAnOperationIsOfOneDocument(t *testing.T) {
	t.Parallel()
	// Sixty documents of two limits each are 120 limits, of which an operation meets two.
	operations := make(map[string]tiers.OperationRule)
	for i := range 60 {
		operations[tiers.DocumentID(fmt.Sprint(i))] = tiers.OperationRule{Limits: map[string]*tiers.Limit{
			"minute": {Capacity: 1, Per: tiers.Minute}, "hour": {Capacity: 1, Per: tiers.Hour},
		}}
	}
	_, err := tiers.Compile(tiers.Policy{Default: "pro", Tiers: map[string]tiers.Tier{"pro": {Operations: operations}}})
	require.NoError(t, err)
}
