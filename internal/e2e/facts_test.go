package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/event"
)

// observed runs a server in a bubble in which time is the test's, and returns what was told so far.
func observed(t *testing.T, configure func(*ratelimit.Config)) (*inProcess, func() []string) {
	t.Helper()
	var told []string
	server := newInProcess(t, bucket.NewMemory(bucket.MemoryConfig{}), func(cfg *ratelimit.Config) {
		cfg.Observe.Observer = event.Func(func(_ context.Context, e event.Event) {
			if _, decision := e.(event.Decided); decision {
				// What every single operation came to is none of the facts about limits.
				return
			}
			told = append(told, e.Name()+" "+e.LogValue().String())
		})
		if configure != nil {
			configure(cfg)
		}
	})
	return server, func() []string {
		taken := told
		told = nil
		return taken
	}
}

func TestAThresholdIsToldWhenAChargeCrossesItAndOncePerPeriod(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, told := observed(t, nil)
		spend := func() int { return server.post(request{Query: half, Tenant: "levels"}).Status }
		for range 3 {
			require.Equal(t, http.StatusOK, spend())
		}
		require.Empty(t, told(), "66 of 100")
		spend()
		crossed := []string{"threshold_crossed [tenant=levels tier=levels level=tenant limit=minute unit=points capacity=100 mode=enforce threshold=0.8 share=0.88 remaining=12]"}
		require.Equal(t, crossed, told())
		time.Sleep(20 * time.Second) //nolint:forbidigo // the clock of a synctest bubble
		require.Equal(t, http.StatusOK, spend())
		require.Equal(t, http.StatusOK, spend())
		require.Empty(t, told(), "33 came back, and 44 were taken, in the same period")
		time.Sleep(time.Minute) //nolint:forbidigo // the clock of a synctest bubble
		for range 4 {
			require.Equal(t, http.StatusOK, spend())
		}
		require.Equal(t, crossed, told(), "another period")
		for range 40 {
			time.Sleep(1800 * time.Millisecond) //nolint:forbidigo // the clock of a synctest bubble
			require.Equal(t, http.StatusOK, server.post(request{Query: cheapQuery, Tenant: "levels"}).Status)
		}
		require.Empty(t, told(), "72 seconds above the threshold cross nothing")
	})
}

func TestALimitThatRefusesIsToldOncePerPeriod(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, told := observed(t, func(cfg *ratelimit.Config) { cfg.Observe.Thresholds = []float64{} })
		for range 5 {
			server.post(request{Query: half, Tenant: "levels", User: "alice"})
		}
		reached := []string{"limit_reached [tenant=levels tier=levels level=user owner=alice limit=minute unit=points capacity=30 mode=enforce retryAfter=28s]"}
		require.Equal(t, reached, told())
		time.Sleep(time.Minute) //nolint:forbidigo // the clock of a synctest bubble
		server.post(request{Query: half, Tenant: "levels", User: "alice"})
		server.post(request{Query: half, Tenant: "levels", User: "alice"})
		require.Equal(t, reached, told())
	})
}

func TestWhatWouldBeRefusedIsToldWithItsDay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, told := observed(t, func(cfg *ratelimit.Config) { cfg.Observe.Thresholds = []float64{} })
		for range 3 {
			server.post(request{Query: half, Tenant: "warned"})
			server.post(request{Query: dear, Tenant: "warned"})
		}
		require.Equal(t, []string{
			"would_refuse [tenant=warned tier=warned level=tenant limit=minute unit=points capacity=30 mode=warn code=COST_LIMIT_EXCEEDED enforceFrom=2126-12-01 00:00:00 +0000 UTC]",
			"would_refuse [tenant=warned tier=warned level=tenant limit=hour unit=points capacity=40 mode=shadow code=COST_LIMIT_EXCEEDED]",
			"would_refuse [tenant=warned tier=warned mode=warn code=COST_LIMIT_EXCEEDED enforceFrom=2126-12-01 00:00:00 +0000 UTC]",
		}, told())
	})
}

func TestATenantThatKeepsBeingRefusedIsToldOnceInThatTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		i := &instruments{t: t}
		server, told := observed(t, func(cfg *ratelimit.Config) {
			i.configure(cfg)
			cfg.Observe.Thresholds = []float64{}
		})
		repeated := func() (n int) {
			for _, text := range told() {
				if text == "refused_repeatedly [tenant=levels tier=levels refusals=100 within=1m0s]" {
					n++
				}
			}
			return n
		}
		alice := request{Query: half, Tenant: "levels", User: "alice"}
		refuse := func(times int) {
			server.post(alice) // which leaves too little for another
			for range times {
				require.Equal(t, http.StatusTooManyRequests, server.post(alice).Status)
			}
		}
		refuse(99)
		time.Sleep(time.Minute) //nolint:forbidigo // the clock of a synctest bubble
		refuse(99)
		require.Zero(t, repeated(), "99 in each minute")
		require.Equal(t, http.StatusTooManyRequests, server.post(alice).Status)
		require.Equal(t, 1, repeated())
		require.Equal(t, map[string]float64{"levels": 1}, i.sums("ratelimit.tenant.refused_repeatedly", "ratelimit.tier"))
	})
}

func TestAChargeOfAResolverCrossesThresholdsToo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, told := observed(t, nil)
		server.resolver.OnExport = func(ctx context.Context, _ int) error { return ratelimit.Charge(ctx, "exports", 10) }
		server.post(request{Query: `{ export(rows: 1) }`})
		const at = "threshold_crossed [tenant=free tier=free level=operation owner=Query.export limit=exports unit=exports capacity=10 mode=enforce threshold="
		require.Equal(t, []string{at + "0.8 share=1 remaining=0]", at + "1 share=1 remaining=0]"}, told())
	})
}

func TestMetricsNameTheLimitsThatFillUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		i := &instruments{t: t}
		server, _ := observed(t, func(cfg *ratelimit.Config) {
			i.configure(cfg)
			cfg.Observe.Observer = nil
		})
		for range 6 {
			server.post(request{Query: half, Tenant: "levels"})
			server.post(request{Query: half, Tenant: "warned"})
		}
		require.Equal(t, map[string]float64{"0.8": 1}, i.sums("ratelimit.limit.crossings", "ratelimit.threshold"))
		require.Equal(t, map[string]float64{"enforce": 2, "warn": 5, "shadow": 5}, i.sums("ratelimit.limit.exceeded", "ratelimit.mode"))
		require.Equal(t, map[string]float64{"minute": 7, "hour": 5}, i.sums("ratelimit.limit.exceeded", "ratelimit.limit"))
		require.Equal(t, map[string]float64{"levels": 6, "warned": 6}, i.sums("ratelimit.limit.used", "ratelimit.tier"))
		require.Equal(t, "RATE_LIMITED", valueOf(attribute.NewSet(i.spans.Ended()[11].Attributes()...), "ratelimit.would_refuse"))
	})
}

func TestAnObserverThatPanicsEndsNoRequest(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(cfg *ratelimit.Config) {
		cfg.Observe.Observer = event.Func(func(context.Context, event.Event) { panic("broken") })
	})
	require.Equal(t, http.StatusOK, f.post(request{Query: listQuery}).Status)
	require.Equal(t, http.StatusTooManyRequests, f.post(request{Query: listQuery}).Status)
}

func TestFactsAreFoundByManyRequestsAtOnce(t *testing.T) {
	t.Parallel()
	events := event.NewChannel(1000)
	server := newInProcess(t, bucket.NewMemory(bucket.MemoryConfig{}), func(cfg *ratelimit.Config) {
		cfg.Observe.Observer = events
	})
	var group sync.WaitGroup
	for i := range 16 {
		group.Go(func() {
			for range 8 {
				server.post(request{Query: half, Tenant: "levels", User: fmt.Sprint(i % 2)})
			}
		})
	}
	group.Wait()
	told := make(map[string]int)
	for len(events.Events()) > 0 {
		e := <-events.Events()
		if crossed, ok := e.(event.ThresholdCrossed); ok {
			told[fmt.Sprint(crossed.Level, crossed.Owner, crossed.Threshold)]++
		}
		if reached, ok := e.(event.LimitReached); ok {
			told[reached.Level+reached.Owner]++
		}
	}
	require.Equal(t, map[string]int{"user0": 1, "user1": 1}, told)
}
