package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimittest"
	"github.com/gqlgen-ratelimit/ratelimit/throttle"
)

func TestAllWhomNobodyKnowsHaveThePartOfOneTenant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ranLast atomic.Int64
		shedder, err := throttle.New(throttle.Config{
			Centre: throttle.NewMemory(nil), Processor: throttle.None, Memory: throttle.None, Logger: discard,
			Sources: []throttle.Source{{Name: "load", Target: 1, Read: func() (float64, bool) { return float64(ranLast.Load()) / 130, true }}},
		})
		require.NoError(t, err)
		run := newInProcess(t, ratelimittest.NewStore(nil), func(c *ratelimit.Config) {
			c.Policy, c.Throttle.Throttle = policyOf(t, shedPolicy), shedder
			c.Subject = func(_ context.Context, r *ratelimit.Request) (ratelimit.Subject, error) {
				tenant := r.Header.Get("X-Tenant")
				return ratelimit.Subject{Tenant: tenant, Anonymous: strings.HasPrefix(tenant, "ip:")}, nil
			}
		})
		go func() { _ = shedder.Run(t.Context()) }()
		ask := func(tenant string) bool {
			return run.post(request{Query: `{ me { name } }`, Tenant: tenant}).Status == http.StatusOK
		}
		asked, known, addresses := 0, 0, 0
		for second := range 60 {
			ran := int64(0)
			for i := range 100 {
				// Twenty tenants ask for five operations a second each, and as many addresses as there are operations for a hundred and fifty.
				runs := ask(fmt.Sprint("known", i%20))
				if runs {
					ran++
				}
				if second >= 30 {
					asked++
					if runs {
						known++
					}
				}
				for range 1 + i%2 {
					if addresses++; ask(fmt.Sprint("ip:", addresses)) {
						ran++
					}
				}
				sleep(10 * time.Millisecond)
			}
			ranLast.Store(ran)
		}
		require.Greater(t, float64(known)/float64(asked), 0.9)
		require.NoError(t, shedder.Shutdown(context.Background()))
	})
}
