package refusals_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	sdk "go.opentelemetry.io/otel/sdk/metric"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/refusals"
	"github.com/gqlgen-ratelimit/ratelimit/observe/report"
)

// scene is a fleet of which the test says what it has decided.
type scene struct {
	*testing.T
	registry *prometheus.Registry
	now      time.Time
	tenants  map[string]report.Tenant
	unread   error
	blocked  map[string]bool
	lost     error
	reads    int
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{T: t, registry: prometheus.NewRegistry(), now: time.Unix(1_800_000_000, 0)}
	reader, err := exporter.New(exporter.WithRegisterer(s.registry), exporter.WithoutScopeInfo())
	require.NoError(t, err)
	meter := sdk.NewMeterProvider(sdk.WithReader(reader))
	t.Cleanup(func() { _ = meter.Shutdown(context.Background()) })
	require.NoError(t, refusals.Observe(refusals.Config{
		Tenants: func(context.Context) ([]report.Tenant, error) {
			s.reads++
			return slices.Collect(maps.Values(s.tenants)), s.unread
		},
		Blocked: func(context.Context, []string) (map[string]bool, error) { return s.blocked, s.lost },
		Now:     func() time.Time { return s.now }, MeterProvider: meter,
	}))
	return s
}

// decided has an instance say what tenants have asked for, and how much of it was refused.
func (s *scene) decided(tenants ...report.Tenant) {
	if s.tenants == nil {
		s.tenants = make(map[string]report.Tenant)
	}
	for _, t := range tenants {
		t.Counts = t.Plus(s.tenants[t.Name].Counts)
		s.tenants[t.Name] = t
	}
}

func tenant(name string, decisions, refused int64) report.Tenant {
	return report.Tenant{Name: name, Counts: report.Counts{Decisions: decisions, Refused: refused}}
}

// gauges are what a Prometheus reads, by their name and tenant, twelve seconds later.
func (s *scene) gauges() map[string]float64 {
	s.Helper()
	s.now = s.now.Add(12 * time.Second)
	return s.gather()
}

func (s *scene) gather() map[string]float64 {
	s.Helper()
	// An error of a callback is told to the handler of OpenTelemetry, and what is there is gathered all the same.
	families, _ := s.registry.Gather()
	all := map[string]float64{}
	for _, family := range families {
		for _, series := range family.GetMetric() {
			name := strings.TrimPrefix(family.GetName(), "ratelimit_fleet_")
			for _, label := range series.GetLabel() {
				name += " " + label.GetValue()
			}
			if strings.HasPrefix(family.GetName(), "ratelimit_fleet_") {
				all[name] = series.GetGauge().GetValue()
			}
		}
	}
	return all
}

func TestATenantThatNoMetricNamesIsNamedWhereAllInstancesTogetherRefuseMuchOfWhatItAsks(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.decided(tenant("acme", 40, 10), tenant("calm", 1000, 100), tenant("small", 29, 29))
	s.decided(tenant("acme", 40, 20), tenant("globex", 31, 31))
	require.Equal(t, map[string]float64{
		"tenant_refused_share acme": 30. / 80, "tenant_decisions acme": 80,
		"tenant_refused_share globex": 1, "tenant_decisions globex": 31,
		"tenants_refused": 1, "tenants_unnamed": 0,
	}, s.gauges(), "globex is refused, and asks less than once a second")
}

func TestBothSidesOfShareAndFloorAreCountedAsTheAlertsDo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		decisions, refused int64
		counts             float64
	}{{100, 31, 1}, {100, 30, 0}, {60, 60, 1}, {59, 59, 0}} {
		s := newScene(t)
		s.decided(tenant("acme", c.decisions, c.refused))
		require.InDelta(t, c.counts, s.gauges()["tenants_refused"], 0, "%d of %d", c.refused, c.decisions)
	}
}

func TestWhomAnOperatorHasBlockedNobodyHasToBeToldOf(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.decided(tenant("acme", 100, 100))
	s.blocked = map[string]bool{"acme": true}
	require.Equal(t, map[string]float64{"tenants_refused": 0, "tenants_unnamed": 0}, s.gauges())
}

func TestHoweverManyAreRefusedFewHaveANameAndTheOthersAreCounted(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	crowd := func(name string, n int) (all []report.Tenant) {
		for i := range n {
			all = append(all, tenant(fmt.Sprintf("%s-%03d", name, i), 100, 100))
		}
		return all
	}
	named := func(all map[string]float64, prefix string) (n int) {
		for name := range all {
			if strings.HasPrefix(name, "tenant_decisions "+prefix) {
				n++
			}
		}
		return n
	}
	s.decided(crowd("a", 100)...)
	all := s.gauges()
	require.Equal(t, refusals.Names, named(all, ""))
	require.InDelta(t, 100, all["tenants_refused"], 0)
	require.InDelta(t, 100-refusals.Names, all["tenants_unnamed"], 0)

	// Who comes under ever new names gets no more of them than there are in an hour.
	seen := map[string]bool{}
	for i := range 50 {
		s.tenants = nil
		s.decided(crowd(fmt.Sprint("b", i), 30)...)
		for name := range s.gauges() {
			if of, is := strings.CutPrefix(name, "tenant_decisions "); is {
				seen[of] = true
			}
		}
	}
	require.Len(t, seen, refusals.NewNames-refusals.Names)
	require.InDelta(t, 30, s.gauges()["tenants_unnamed"], 0, "they are counted all the same")

	s.now = s.now.Add(time.Hour)
	require.Equal(t, refusals.Names, named(s.gauges(), "b49-"), "in the next hour there are names again")
}

func TestWhoIsRefusedMostIsNamedFirst(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	var all []report.Tenant
	for i := range 30 {
		all = append(all, tenant(fmt.Sprintf("large-%02d", i), 10_000, 2000))
	}
	s.decided(append(all, tenant("zz", 61, 61))...)
	require.Contains(t, s.gauges(), "tenant_decisions zz", "who is above comes before who is not, however large")
}

func TestWhatCannotBeReadIsNotTold(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.decided(tenant("acme", 100, 100))
	s.unread = errors.New("Redis is away")
	require.Empty(t, s.gauges())
	s.unread = nil
	require.InDelta(t, 1, s.gauges()["tenants_refused"], 0)
	s.lost = errors.New("the database is away")
	require.Empty(t, s.gauges())
	s.lost, s.tenants = nil, nil
	require.Equal(t, map[string]float64{"tenants_refused": 0, "tenants_unnamed": 0}, s.gauges(), "nobody asks")
}

func TestManyWhoScrapeHaveTheReportsReadOnceInTenSeconds(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.gauges()
	for range 5 {
		s.gather()
	}
	require.Equal(t, 1, s.reads)
	s.gauges()
	require.Equal(t, 2, s.reads)
	s.now = s.now.Add(-time.Hour)
	s.gather()
	require.Equal(t, 3, s.reads, "a clock that is set back makes nothing old new")
}

func TestARedisThatHangsIsAskedOnceInTenSecondsAndNotByEveryScrape(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.unread = errors.New("it hangs")
	require.Empty(t, s.gauges())
	for range 5 {
		require.Empty(t, s.gather())
	}
	require.Equal(t, 1, s.reads)
	s.unread = nil
	s.decided(tenant("acme", 100, 100))
	require.InDelta(t, 1, s.gauges()["tenants_refused"], 0)
}

func TestThePageAndTheRulesHaveTheMetricsAndTheirNumbers(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.decided(tenant("acme", 100, 100))
	s.gauges()
	page, err := os.ReadFile("../../../docs/reference/metrics.md")
	require.NoError(t, err)
	rules, err := os.ReadFile("../../../contrib/prometheus/rules/ratelimit.rules.yml")
	require.NoError(t, err)
	families, err := s.registry.Gather()
	require.NoError(t, err)
	found := 0
	for _, family := range families {
		if strings.HasPrefix(family.GetName(), "ratelimit_fleet_") {
			found++
			require.Regexp(t, "(?m)^\\| `"+family.GetName()+"` \\| gauge \\|", string(page))
		}
	}
	require.Equal(t, 4, found)
	require.Len(t, regexp.MustCompile("(?m)^\\| `ratelimit_fleet_").FindAllString(string(page), -1), found)
	require.Contains(t, string(rules), fmt.Sprintf("(ratelimit_fleet_tenant_refused_share) > %g", refusals.Share))
	require.Contains(t, string(rules), fmt.Sprintf("(ratelimit_fleet_tenant_decisions) >= %d", refusals.Floor))
}
