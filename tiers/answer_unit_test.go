package tiers_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// Bytes and events are charged on when they leave, to the budgets of the tenant alone.
func TestLimitsAcrossTenantsDoNotCountWhatLeaves(t *testing.T) {
	t.Parallel()
	for _, unit := range []string{"response_bytes", "events"} {
		policy, err := tiers.Parse([]byte(`
version: 1
default: free
tiers:
  free:
    limits: {minute: {capacity: 10, per: minute}}
    operations:
      Mutation.login:
        limits:
          account: {unit: ` + unit + `, capacity: 10, per: minute, by: input.email, across: true}
`))
		if err == nil {
			_, err = tiers.Compile(policy)
		}
		require.ErrorContains(t, err, "beside by a limit counts calls", unit)
	}
}
