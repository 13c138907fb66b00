package e2e_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

func TestATrustedDocumentHasABudgetOfItsOwn(t *testing.T) {
	t.Parallel()
	policy, err := tiers.Compile(tiers.Policy{Default: "pro", Tiers: map[string]tiers.Tier{"pro": {
		Operations: map[string]tiers.OperationRule{tiers.DocumentID(half): {Limits: map[string]*tiers.Limit{
			"minute": {Unit: "requests", Capacity: 1, Per: tiers.Minute},
		}}},
	}}})
	require.NoError(t, err)
	f := newFixture(t, func(cfg *ratelimit.Config) { cfg.Policy = policy })
	require.Equal(t, http.StatusOK, f.post(request{Query: half}).Status)
	refused := f.post(request{Query: half})
	require.Equal(t, http.StatusTooManyRequests, refused.Status)
	require.Contains(t, refused.Body, tiers.DocumentID(half))
	for _, same := range []string{half + " ", "\n,," + half + "# once more", strings.ReplaceAll(half, "{", " {\t")} {
		require.Equal(t, http.StatusTooManyRequests, f.post(request{Query: same}).Status, "%q", same)
	}
	require.Equal(t, http.StatusOK, f.post(request{Query: dear}).Status)
}
