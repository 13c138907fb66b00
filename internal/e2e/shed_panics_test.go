package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimittest"
	"github.com/gqlgen-ratelimit/ratelimit/throttle"
)

// scene is requests that panic while gqlgen collects the fields of the root, beside those of others.
type scene struct {
	tenants int
	// every is how often one of each of these tenants comes.
	every time.Duration
}

func TestPanicsOfFewDoNotShedOthers(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]scene{
		"ten tenants twice a second":   {10, 500 * time.Millisecond},
		"one tenant 47 times a second": {1, 21 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				cfg := throttle.Config{Centre: throttle.NewMemory(nil), Latency: 300 * time.Millisecond, Processor: throttle.None, Memory: throttle.None}
				shedder, err := throttle.New(cfg)
				require.NoError(t, err)
				run := newInProcess(t, ratelimittest.NewStore(nil), func(c *ratelimit.Config) {
					c.Policy, c.Throttle.Throttle = policyOf(t, shedPolicy), shedder
				})
				run.server.SetRecoverFunc(func(context.Context, any) error { return errors.New("recovered") })
				go func() { _ = shedder.Run(t.Context()) }()
				s.play(t, run, shedder)
				require.NoError(t, shedder.Shutdown(context.Background()))
			})
		})
	}
}

// play has the requests come for 14 seconds, beside 188 a second of others.
func (s scene) play(t *testing.T, run *inProcess, shedder *throttle.Throttle) {
	t.Helper()
	const others = 188
	var broken, honest, refused atomic.Int64
	ctx, end := context.WithTimeout(t.Context(), 14*time.Second)
	defer end()
	var group sync.WaitGroup
	repeat := func(every time.Duration, ask func(i int)) {
		group.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				ask(i)
				sleep(every)
			}
		})
	}
	for i := range s.tenants {
		repeat(s.every, func(int) {
			answer := run.post(request{
				Query: `query($x: Boolean = true) { me @include(if: $x) { id } }`, Variables: map[string]any{"x": nil}, Tenant: fmt.Sprint("breaks", i),
			})
			if answer.Status == http.StatusInternalServerError {
				broken.Add(1)
			}
		})
	}
	most := 0.0
	repeat(time.Second/others, func(i int) {
		honest.Add(1)
		if run.post(request{Query: `{ me { name } }`, Tenant: fmt.Sprint("honest", i%40)}).Status != http.StatusOK {
			refused.Add(1)
		}
		most = max(most, shedder.Status().Shed)
	})
	group.Wait()
	require.GreaterOrEqual(t, broken.Load(), int64(280))
	require.Zero(t, refused.Load(), "of %d", honest.Load())
	require.Zero(t, most)
}
