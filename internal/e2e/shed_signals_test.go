package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/throttle"
)

func TestAnOperationWhoseClientHasGoneHasNotFailed(t *testing.T) {
	t.Parallel()
	s := newAdmitting(t, func(cfg *throttle.Config, _ *ratelimit.Config) { cfg.Errors = 0.5 })
	began := make(chan struct{}, 1)
	s.resolver.OnExport = func(ctx context.Context, _ int) error {
		began <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}
	const operations = 10
	for range operations {
		ctx, leave := context.WithCancel(t.Context())
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, strings.NewReader(`{"query": "{ export(rows: 1) }"}`))
		require.NoError(t, err)
		request{}.setHeaders(r.Header)
		r.Header.Set("Content-Type", "application/json")
		// The client goes, as one does that has typed another letter.
		go func() {
			<-began
			leave()
		}()
		_, err = s.client.Do(r) //nolint:bodyclose // There is no answer.
		require.ErrorIs(t, err, context.Canceled)
	}
	require.Eventually(t, func() bool { return s.centre.seen().Completed > operations-1 }, redistest.Patience, 10*time.Millisecond)
	require.Zero(t, s.centre.seen().Pressure)
}

func TestAllWhomNobodyKnowsAreOneVoiceOfTheThrottle(t *testing.T) {
	t.Parallel()
	// Each address asks once, for what fails: a quarter of all operations, where one in fifty may. The pressure is the fourth root of how many times too many count: 1.9 of
	// all. One voice is none.
	const between, enough = 1.6, 40
	for name, anonymous := range map[string]bool{"known": false, "anonymous": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked, before int64
			busy := make(chan float64, 1000)
			s := newAdmitting(t, func(cfg *throttle.Config, c *ratelimit.Config) {
				cfg.Errors = 0.02
				centre, ok := cfg.Centre.(*fixedCentre)
				require.True(t, ok)
				centre.told = func(r throttle.Report) {
					now := atomic.LoadInt64(&asked)
					if now-before >= enough && len(busy) < cap(busy) {
						busy <- r.Pressure
					}
					before = now
				}
				c.Subject = func(_ context.Context, r *ratelimit.Request) (ratelimit.Subject, error) {
					tenant := r.Header.Get("X-Tenant")
					return ratelimit.Subject{Tenant: tenant, Anonymous: anonymous && strings.HasPrefix(tenant, "ip:")}, nil
				}
				c.Throttle.Failed = func(r *graphql.Response) bool { return len(r.Errors) > 0 }
			})
			for i, began := 0, time.Now(); time.Since(began) < redistest.Patience && len(busy) < 3; i++ {
				// One tenant alone would have used up its limit, and what is refused does not run.
				r := request{Query: `{ me { name } }`, Tenant: fmt.Sprint("tenant", i%100)}
				if i%4 == 3 {
					r = request{Query: `{ fails }`, Tenant: fmt.Sprint("ip:", i)}
				}
				s.post(r)
				atomic.AddInt64(&asked, 1)
			}
			most := max(<-busy, <-busy, <-busy)
			if anonymous {
				require.Less(t, most, between)
			} else {
				require.Greater(t, most, between)
			}
		})
	}
}
