package observe_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
	"github.com/gqlgen-ratelimit/ratelimit/internal/observe"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

var hourly = &bucket.Limit{Name: "hour", Unit: bucket.Points, Capacity: 100, Refill: 100, Period: time.Hour}

// near is a decision whose charge has taken a limit of the tenant over four fifths.
func near(tenant string) *decision.Decision {
	return &decision.Decision{
		Outcome: decision.Admitted, Subject: tiers.Subject{Tenant: tenant}, Tier: "pro", Kind: "query", Points: 10, Charged: 10,
		Limits: []bucket.LimitState{{Limit: hourly, Asked: 10, Charged: 10, Remaining: 15}}, Rules: &tiers.Rules{},
	}
}

// crossings reports near-limits, and counts how often the observer is told of each tenant's.
type crossings struct {
	t        *testing.T
	reporter *observe.Reporter
	reader   *sdk.ManualReader
	told     map[string]int
}

func newCrossings(t *testing.T, facts int) *crossings {
	t.Helper()
	c := &crossings{t: t, reader: sdk.NewManualReader(), told: map[string]int{}}
	var err error
	c.reporter, err = observe.New(observe.Config{
		Logger: slog.New(slog.DiscardHandler), MeterProvider: sdk.NewMeterProvider(sdk.WithReader(c.reader)),
		Thresholds: []float64{0.8}, Facts: facts,
		Observer: event.Func(func(_ context.Context, e event.Event) {
			if crossed, ok := e.(event.ThresholdCrossed); ok {
				c.told[crossed.Tenant]++
			}
		}),
	}, nil)
	require.NoError(t, err)
	return c
}

func (c *crossings) of(tenant string) {
	c.reporter.Charged(c.t.Context(), near(tenant))
}

// untold returns how many events were not told, by what they had no room in.
func (c *crossings) untold() map[string]int64 {
	c.t.Helper()
	var collected metricdata.ResourceMetrics
	require.NoError(c.t, c.reader.Collect(c.t.Context(), &collected))
	untold := map[string]int64{}
	for _, m := range collected.ScopeMetrics[0].Metrics {
		if sum, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == "ratelimit.events.untold" {
			for _, p := range sum.DataPoints {
				by, _ := p.Attributes.Value("ratelimit.events.untold_by")
				untold[by.AsString()] = p.Value
			}
		}
	}
	return untold
}

func TestTenThousandTenantsOverAThresholdAreToldOnceEachInFourHundredThousandDecisions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const tenants, rounds = 10_000, 40
		c := newCrossings(t, 1<<18)
		names := make([]string, tenants)
		for i := range names {
			names[i] = fmt.Sprint("tenant-", i)
		}
		for range rounds {
			for i, tenant := range names {
				c.of(tenant)
				// No more than 250 a second are told.
				if i%200 == 199 {
					pass(time.Second)
				}
			}
		}
		require.Len(t, c.told, tenants)
		for tenant, n := range c.told {
			require.Equal(t, 1, n, tenant)
		}
		require.Empty(t, c.untold())
		pass(time.Hour)
		c.of(names[0])
		require.Equal(t, 2, c.told[names[0]], "the next period")
	})
}

func TestAFactThatFindsNoRoomIsCountedAndNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const tenants, room = 5_000, 2_048
		c := newCrossings(t, room)
		for range 3 {
			for i := range tenants {
				c.of(fmt.Sprint("tenant-", i))
				if i%200 == 199 {
					pass(time.Second)
				}
			}
		}
		require.LessOrEqual(t, len(c.told), room)
		require.Greater(t, len(c.told), room*9/10)
		for tenant, n := range c.told {
			require.Equal(t, 1, n, tenant)
		}
		require.Equal(t, map[string]int64{"room": int64(3 * (tenants - len(c.told)))}, c.untold())
	})
}

func TestFactsBeyondThoseOfASecondAreCountedAndToldWhenTheyHappenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrossings(t, 1<<18)
		for range 2 {
			for i := range 300 {
				c.of(fmt.Sprint("tenant-", i))
			}
			pass(time.Second)
		}
		require.Len(t, c.told, 300)
		require.Equal(t, map[string]int64{"rate": 50}, c.untold())
	})
}

// flood takes a user each of a tenant over the threshold.
func (c *crossings) flood(tenant string, users int) {
	for i := range users {
		d := near(tenant)
		d.Limits[0].Owner = bucket.Owner{Level: bucket.User, Name: fmt.Sprint("user-", i)}
		c.reporter.Charged(c.t.Context(), d)
	}
}

func TestATenantWithTenThousandUsersOverAThresholdDoesNotHideTheOneFactOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrossings(t, 1<<18)
		c.flood("flood", 10_000)
		c.of("customer")
		require.Equal(t, 1, c.told["customer"])
		require.Equal(t, 100, c.told["flood"], "its share")
		require.Equal(t, map[string]int64{"rate": 9_900}, c.untold())
		pass(time.Second)
		c.of("neighbour")
		c.flood("flood", 10_000)
		require.Equal(t, 1, c.told["neighbour"])
		require.Equal(t, 200, c.told["flood"], "its share of each second")
	})
}

func TestHoweverManyUsersTwentyTenantsHaveThirtyOthersAreToldInTheSameSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrossings(t, 1<<18)
		for i := range 20 {
			c.flood(fmt.Sprint("flood-", i), 500)
		}
		for i := range 30 {
			customer := fmt.Sprint("customer-", i)
			c.of(customer)
			require.Equal(t, 1, c.told[customer], customer)
		}
		facts := 0
		for _, n := range c.told {
			facts += n
		}
		require.LessOrEqual(t, facts, 250, "of all")
	})
}

func TestATenantThatFillsTheMemoryOfFactsHidesNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrossings(t, 1<<14)
		for i := range 10_000 {
			d := near("flood")
			d.Limits[0].Owner = bucket.Owner{Level: bucket.User, Name: fmt.Sprint("user-", i)}
			c.reporter.Charged(t.Context(), d)
			if i%200 == 199 {
				pass(time.Second)
			}
		}
		require.LessOrEqual(t, c.told["flood"], 1<<14/64)
		for i := range 200 {
			c.of(fmt.Sprint("tenant-", i))
		}
		require.Greater(t, len(c.told), 190)
	})
}

func TestOfTenThousandTenantsThatAreRefusedInTurnEachIsTold(t *testing.T) {
	t.Parallel()
	const tenants, refusals = 10_000, 5
	told := map[string]int{}
	r, err := observe.New(observe.Config{
		Logger: slog.New(slog.DiscardHandler), Facts: 1 << 18, Refusals: -1, RepeatedRefusals: refusals, RepeatedWithin: time.Hour,
		Observer: event.Func(func(_ context.Context, e event.Event) {
			if refused, ok := e.(event.RefusedRepeatedly); ok {
				told[refused.Tenant]++
			}
		}),
	}, nil)
	require.NoError(t, err)
	for range refusals {
		for i := range tenants {
			d := limited()
			d.Subject.Tenant = fmt.Sprint("tenant-", i)
			r.Charged(t.Context(), d)
		}
	}
	// More than four tenants in the same set of slots count each other out.
	require.Greater(t, len(told), tenants*99/100)
	for tenant, n := range told {
		require.Equal(t, 1, n, tenant)
	}
}

func BenchmarkKnownFact(b *testing.B) {
	r, err := observe.New(observe.Config{
		Logger: slog.New(slog.DiscardHandler), Thresholds: []float64{0.8, 1}, Facts: 1 << 18,
		Observer: event.Func(func(context.Context, event.Event) {}),
	}, nil)
	require.NoError(b, err)
	decisions := make([]*decision.Decision, 10_000)
	for i := range decisions {
		decisions[i] = near(fmt.Sprint("tenant-", i))
	}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			r.Charged(b.Context(), decisions[i%len(decisions)])
		}
	})
}
