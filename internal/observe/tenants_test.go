package observe_test

import (
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
	"github.com/gqlgen-ratelimit/ratelimit/internal/observe"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// traffic counts decisions of tenants, of which metrics name the busiest.
type traffic struct {
	t        *testing.T
	reporter *observe.Reporter
	reader   *sdk.ManualReader
}

func newTraffic(t *testing.T, top int) *traffic {
	t.Helper()
	reader := sdk.NewManualReader()
	r, err := observe.New(observe.Config{
		Logger: slog.New(slog.DiscardHandler), TopTenants: top,
		MeterProvider: sdk.NewMeterProvider(sdk.WithReader(reader), sdk.WithCardinalityLimit(0)),
	}, nil)
	require.NoError(t, err)
	return &traffic{t, r, reader}
}

func (f *traffic) of(tenant string, operations int) {
	f.t.Helper()
	for range operations {
		ctx, span := f.reporter.Start(f.t.Context())
		f.reporter.Decided(ctx, span, &decision.Decision{
			Outcome: decision.Admitted, Subject: tiers.Subject{Tenant: tenant}, Kind: "query", Rules: &tiers.Rules{},
		})
	}
}

// counts returns how many operations metrics have by the name of a tenant.
func (f *traffic) counts() map[string]int64 {
	f.t.Helper()
	var collected metricdata.ResourceMetrics
	require.NoError(f.t, f.reader.Collect(f.t.Context(), &collected))
	counts := map[string]int64{}
	for _, m := range collected.ScopeMetrics[0].Metrics {
		if sum, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == "ratelimit.tenant.decisions" {
			for _, p := range sum.DataPoints {
				name, _ := p.Attributes.Value("ratelimit.tenant")
				counts[name.AsString()] += p.Value
			}
		}
	}
	return counts
}

// pass moves the clock of a synctest bubble.
func pass(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // see above

func TestABurstOfManyTenantsDoesNotHideTheOneThatComesAfterThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTraffic(t, 5)
		for i := range 200 {
			f.of(fmt.Sprint("puppet-", i), 3)
		}
		f.of("customer", 600)
		pass(10 * time.Second)
		f.of("customer", 600)
		counts := f.counts()
		require.EqualValues(t, 600, counts["customer"])
		require.LessOrEqual(t, len(counts), 1+5+5, "other, the first five, and the busiest five")
	})
}

func TestNamesOfTenantsThatAreNotBusyAnyMoreAgeOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTraffic(t, 2)
		// Eight puppets, each busier than all before, take every name there is, and then those that may change in an hour.
		for i := range 40 {
			f.of(fmt.Sprint("puppet-", i), 100*(i+1))
			pass(10 * time.Second)
			f.of(fmt.Sprint("puppet-", i), 1)
		}
		named := len(f.counts()) - 1
		require.Equal(t, 2*4+2, named)
		f.of("customer", 50_000)
		pass(10 * time.Second)
		f.of("customer", 1)
		require.Zero(t, f.counts()["customer"], "no more names change in this hour")
		for range 9 {
			pass(10 * time.Minute)
			f.of("customer", 50)
		}
		require.Positive(t, f.counts()["customer"])
		f.of("puppet-39", 1)
		before := f.counts()
		f.of("puppet-0", 1)
		require.Equal(t, before["puppet-0"], f.counts()["puppet-0"], "the first has lost its name")
	})
}

func TestHoweverTenantsTakeTurnsFewGetANameInAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const top, hours = 3, 6
		f := newTraffic(t, top)
		for i := range hours * 360 {
			f.of(fmt.Sprint("puppet-", i), 20)
			pass(10 * time.Second)
			f.of(fmt.Sprint("puppet-", i), 1)
		}
		named := len(f.counts()) - 1
		require.LessOrEqual(t, named, hours*5*top)
		require.Greater(t, named, 4*top, "and they change")
	})
}

func TestATenantThatStaysBusyKeepsItsName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTraffic(t, 1)
		total := int64(0)
		for i := range 100 {
			f.of("customer", 100)
			f.of(fmt.Sprint("other-", i), 10)
			total += 100
			pass(3 * time.Minute)
		}
		require.Equal(t, total, f.counts()["customer"])
	})
}

func TestAHundredThousandTenantsThatAreSeenOnceTakeNoNameThatTheBusyCouldHave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const top = 5
		f := newTraffic(t, top)
		once := func(from, to int) {
			for i := from; i < to; i++ {
				f.of(fmt.Sprint("once-", i), 1)
			}
		}
		customers := []string{"a", "b", "c"}
		// The first five have names at once, which they take from nobody.
		once(0, top)
		for _, customer := range customers {
			f.of(customer, 200)
		}
		once(top, 90_000)
		pass(10 * time.Second)
		before := map[string]int64{}
		// The rest come in an hour of looks, at each of which all names were free for them.
		for i := range 360 {
			once(90_000+i*28, 90_000+(i+1)*28)
			for _, customer := range customers {
				f.of(customer, 1)
				before[customer]++
			}
			pass(10 * time.Second)
		}
		counts := f.counts()
		for _, customer := range customers {
			require.Equal(t, before[customer], counts[customer], customer)
		}
		require.Len(t, counts, 1+top+len(customers), "other, the first five, and who is busy")
		f.of("late", 400)
		pass(10 * time.Second)
		f.of("late", 100)
		require.EqualValues(t, 100, f.counts()["late"])
	})
}

func TestWhoIsBusyKeepsItsNameWhileSeventyTimesAsManyOperationsAreOfTenantsThatAreSeenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTraffic(t, 1)
		for i := range 720 {
			f.of("customer", 2)
			for j := range 140 {
				f.of(fmt.Sprint("once-", i, "-", j), 1)
			}
			pass(10 * time.Second)
		}
		counts := f.counts()
		require.EqualValues(t, 1440, counts["customer"])
		require.Len(t, counts, 2, "the customer and other")
	})
}

func TestTenantsWithATinyShareOfTheTrafficGetNoNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTraffic(t, 2)
		f.of("first", 1)
		for i := range 100 {
			f.of("customer", 1000)
			f.of(fmt.Sprint("puppet-", i), 3)
			pass(10 * time.Second)
		}
		counts := f.counts()
		require.EqualValues(t, 100_000, counts["customer"])
		require.Len(t, counts, 3, "the customer, the first, and other")
		f.of("puppet", 500)
		pass(10 * time.Second)
		f.of("puppet", 1)
		require.EqualValues(t, 1, f.counts()["puppet"], "half a percent is a share")
	})
}

func TestTheBusiestTenantIsFoundAmongManyThatAreCountedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTraffic(t, 2)
		var callers sync.WaitGroup
		for caller := range 8 {
			callers.Go(func() {
				for i := range 500 {
					f.of(fmt.Sprint("puppet-", caller, "-", i), 1)
					f.of("customer", 1)
				}
			})
		}
		callers.Wait()
		pass(10 * time.Second)
		before := f.counts()["customer"]
		f.of("customer", 100)
		require.Equal(t, before+100, f.counts()["customer"])
	})
}

func TestTenantsThatMetricsDoNotNameTakeNoMemory(t *testing.T) {
	f := newTraffic(t, 10)
	heap := func() (bytes, objects uint64) {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc, m.HeapObjects
	}
	f.of("first", 1)
	bytes, objects := heap()
	for i := range 50_000 {
		f.of(fmt.Sprint("tenant-", i), 1)
	}
	bytesAfter, objectsAfter := heap()
	require.Less(t, int64(bytesAfter)-int64(bytes), int64(256<<10))
	require.Less(t, int64(objectsAfter)-int64(objects), int64(2_000))
	runtime.KeepAlive(f)
}
