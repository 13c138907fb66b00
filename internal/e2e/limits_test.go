package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

func TestAnOperationAboveALimitOfShapeIsToldWhichAndByHowMuch(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		limits cost.Shape
		query  string
	}{
		"depth":     {cost.Shape{MaxDepth: 3}, `{ me { friends(first: 1) { friends(first: 1) { name } } } }`},
		"listnodes": {cost.Shape{MaxListNodes: 20}, `{ users(first: 4) { friends(first: 5) { name } } }`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, func(cfg *ratelimit.Config) {
				showShadow(cfg)
				cfg.Pricing.Cost.Shape = tt.limits
			})
			golden(t, "post-above-"+name, f.post(request{Query: tt.query}).transcript())
			require.Empty(t, f.store.Takes(), "nothing is charged")
			shadowed := f.post(request{Query: tt.query, Tenant: "shadow"})
			require.Equal(t, ratelimitclient.CodeQueryLimitExceeded, shadowed.rateLimit(t)["wouldRefuse"])
			require.Len(t, f.store.Takes(), 1, "in shadow mode the operation runs and is charged")
		})
	}
}

func TestAClientReadsWhichLimitOfShapeRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(cfg *ratelimit.Config) { cfg.Pricing.Cost.Shape.MaxAliases = 1 })
	reply := f.post(request{Query: `{ a: me { n: name } }`})
	response, err := ratelimitclient.FromResponse([]byte(reply.Body))
	require.NoError(t, err)
	require.Len(t, response.Refusal.ID, 26)
	response.Refusal.ID = ""
	require.Equal(t, &ratelimitclient.Refusal{
		Code: ratelimitclient.CodeQueryLimitExceeded, Message: "there are too many aliases: 2 given, 1 allowed",
		Rule: string(cost.RuleAliases), Given: 2, Allowed: 1,
	}, response.Refusal)
}
