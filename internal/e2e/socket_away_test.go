package e2e_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

// TestAWebSocketOutlivesTheStore sends the store away and back while a connection is open and a subscription runs
// on it: each operation is judged by the state of the moment, and neither the connection nor the subscription ends.
func TestAWebSocketOutlivesTheStore(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{transportWS, legacyWS} {
		for tenant, whileAway := range map[string]struct {
			code string
			// charged is of the operation that comes while the store is away.
			charged float64
		}{
			"bounded": {charged: 3},
			"closed":  {code: ratelimitclient.CodeUnavailable},
			"local":   {charged: 3},
		} {
			t.Run(protocol+"/"+tenant, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, func(cfg *ratelimit.Config) { cfg.Policy = policyOf(t, matrixPolicy) })
				ticks := make(chan int)
				f.resolver.Tick = ticks
				s := f.dialAs(protocol, tenant, nil)
				id := 0
				ask := func() (code string, facts map[string]any) {
					id++
					answers := answersIn(indented(s.run(strconv.Itoa(id), request{Query: cheapQuery})[0]))
					facts, _ = answers[0]["extensions"].(map[string]any)["rateLimit"].(map[string]any)
					return refusalIn(t, answers[0]).Code, facts
				}
				tick := func() string {
					ticks <- 1
					for {
						if message := s.receive(); !keptAlive.MatchString(message) {
							return message
						}
					}
				}
				_, before := ask()
				s.start("watch", request{Query: `subscription { ticks(count: 100) }`})
				require.Contains(t, tick(), `"ticks":0`)

				f.store.Fail(bucket.ErrUnavailable)
				code, away := ask()
				require.Equal(t, whileAway.code, code)
				require.Equal(t, true, away["storeUnavailable"])
				require.Equal(t, whileAway.charged, away["charged"])
				require.Contains(t, tick(), `"ticks":1`)

				f.store.Fail(nil)
				code, after := ask()
				require.Empty(t, code)
				require.NotContains(t, after, "storeUnavailable")
				require.EqualValues(t, 3, after["charged"])
				require.Less(t, after["remaining"], before["remaining"])
				require.Contains(t, tick(), `"ticks":2`)
			})
		}
	}
}
