package session_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/session"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

func TestDuringARollOutATenantHasTheOperationsOfThePolicyThatHoldsForIt(t *testing.T) {
	t.Parallel()
	const document = "version: 1\ndefault: free\ntiers: {free: {operations: {%s: {limits: {minute: {capacity: 1, per: minute}}}}}}\ntenants: {%s: {times: 2}}\n"
	stage := tiers.Stage{ID: "r1", Seed: "seed", Percent: 50}
	staged, err := tiers.StageDocument(fmt.Appendf(nil, document, "Query.old", "acme"), fmt.Appendf(nil, document, "Query.new", "globex"), stage)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "policy.json")
	require.NoError(t, os.WriteFile(path, staged, 0o600))
	policy, err := session.LoadPolicy(path)
	require.NoError(t, err)
	require.Equal(t, []string{"Query.new", "Query.old"}, policy.Operations(), "a switch may name either")
	turns := map[bool]bool{}
	for i := range 20 {
		tenant := fmt.Sprint("tenant-", i)
		want, listed := "Query.old", "acme"
		if stage.Has(tenant) {
			want, listed = "Query.new", "globex"
		}
		turns[stage.Has(tenant)] = true
		held, err := policy.Resolve(session.NewScope(tenant, "", "", "", ""), nil)
		require.NoError(t, err)
		require.Equal(t, []string{want}, held.Operations())
		require.Contains(t, policy.WrittenFor(tenant).Tenants, listed)
	}
	require.Len(t, turns, 2)
}
