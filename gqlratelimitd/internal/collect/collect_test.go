package collect_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	sdk "go.opentelemetry.io/otel/sdk/metric"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/collect"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/usage"
)

func TestEveryMistakeOfAConfigurationIsSaid(t *testing.T) {
	t.Parallel()
	_, err := collect.New(collect.Config{
		Interval: -1, Fresh: -1, Search: time.Millisecond, Settled: time.Second, Lease: time.Hour, Keep: collect.Retention{MinuteDays: 1, HourDays: 9999, DayMonths: 1},
	})
	for _, mistake := range []string{
		"Config.Store is nil", "Config.Source is nil", "Config.Interval is -1ns: write 10ms to 1m0s, or 0", "Config.Fresh", "Config.Search is 1ms", "Config.Settled is 1s", "Config.Lease is 1h",
		"minutes are kept for 1 days: write 3 to 400, or 0", "hours are kept for 9999 days: write 1, as minutes are kept", "days are kept for 1 months: write 323",
	} {
		require.ErrorContains(t, err, mistake)
	}
}

// counting is a source that says what was asked of it.
type counting struct {
	usage.Source
	minutes map[int64]int
	// away is what cannot be read, and gone that nothing can.
	away string
	gone bool
	// reports says that no reports can be read.
	reports bool
}

func (s *counting) Reports(ctx context.Context, told time.Time, cursor string) ([]usage.Report, string, error) {
	if s.reports {
		return nil, "", errFault
	}
	return s.Source.Reports(ctx, told, cursor)
}

func (s *counting) Now(ctx context.Context) (time.Time, error) {
	if s.gone {
		return time.Time{}, errFault
	}
	return s.Source.Now(ctx)
}

func (s *counting) Counted(ctx context.Context, told time.Time, cursor string) ([]usage.Counted, string, error) {
	if cursor == "" {
		s.minutes[told.Unix()/60]++
	}
	return s.Source.Counted(ctx, told, cursor)
}

func (s *counting) ReadUsage(ctx context.Context, tenant string, hour time.Time, grade bucket.UsageGrade) (*bucket.UsageHour, error) {
	if s.gone || s.away == tenant {
		return nil, errFault
	}
	return s.Source.ReadUsage(ctx, tenant, hour, grade)
}

func (s *scene) counting() *counting { return &counting{Source: s.budget, minutes: map[int64]int{}} }

// nets are the points of each tenant.
func (s *scene) nets() map[string]int64 {
	return s.sums("SELECT " + s.text("tenant") + ", charged - given_back FROM usage_minute WHERE unit = " + s.literal("points"))
}

// text is a column of bytes as a text.
func (s *scene) text(column string) string {
	if s.db.Dialect() == store.SQLite {
		return "CAST(" + column + " AS TEXT)"
	}
	return "encode(" + column + ", 'escape')"
}

// literal writes a text as bytes.
func (s *scene) literal(text string) string {
	if s.db.Dialect() == store.SQLite {
		return fmt.Sprintf("x'%x'", text)
	}
	return fmt.Sprintf("'\\x%x'", text)
}

func TestEachMinuteIsReadOnceItWasToldInFull(t *testing.T) {
	t.Parallel()
	both(t, func(s *scene) {
		ctx, from := s.Context(), s.counting()
		r := collect.NewRound(s.collector(from), nil)
		require.NoError(s, r.ReadMinutes(ctx))
		require.Empty(s, from.minutes, "there is no room for anything yet")
		require.NoError(s, r.Keep(ctx))
		require.NoError(s, r.Search(ctx))
		settle := s.take("acme", 5)
		s.tell("acme")
		require.NoError(s, r.ReadMinutes(ctx))
		require.Equal(s, map[string]int64{"acme": 5}, s.nets(), "what is not told in full is there already")
		now := s.clock.now().Unix() / 60
		clear(from.minutes)
		// It is told late, in another minute, and so is a correction in an old one.
		s.take("globex", 7)
		s.clock.advance(20 * time.Minute)
		s.take("acme", 20)
		settle(1)
		s.tell("globex", "acme")
		for range 3 {
			s.clock.advance(time.Minute)
			require.NoError(s, r.ReadMinutes(ctx))
		}
		require.Equal(s, map[string]int64{"acme": 21, "globex": 7}, s.nets())
		for m := now; m < now+22; m++ {
			require.Positive(s, from.minutes[m], "minute %d", m-now)
		}
		clear(from.minutes)
		// Another daemon goes on where this one was.
		other := collect.NewRound(s.collector(from), nil)
		require.NoError(s, other.Keep(ctx))
		require.NoError(s, other.ReadMinutes(ctx))
		for m := range from.minutes {
			require.Greater(s, m, now+21, "it was read before")
		}
	})
}

// exported is a provider of metrics, and what Prometheus reads of them.
func exported(t testing.TB) (*sdk.MeterProvider, func() map[string]float64) {
	t.Helper()
	registry := prometheus.NewRegistry()
	reader, err := exporter.New(exporter.WithRegisterer(registry), exporter.WithoutScopeInfo())
	require.NoError(t, err)
	meter := sdk.NewMeterProvider(sdk.WithReader(reader))
	t.Cleanup(func() { _ = meter.Shutdown(context.Background()) })
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "reference", "metrics.md"))
	require.NoError(t, err)
	return meter, func() map[string]float64 {
		families, err := registry.Gather()
		require.NoError(t, err)
		all := map[string]float64{}
		for _, family := range families {
			if !strings.HasPrefix(family.GetName(), "ratelimit_") {
				continue
			}
			for _, series := range family.GetMetric() {
				name, labels := family.GetName(), ""
				for _, label := range series.GetLabel() {
					labels += "`" + label.GetName() + "`.*"
					name += " " + label.GetValue()
				}
				all[name] = series.GetCounter().GetValue() + series.GetGauge().GetValue()
				row := "(?m)^\\| `" + family.GetName() + "` \\| " + strings.ToLower(family.GetType().String()) + " \\| .* \\| " + labels + " \\|$"
				require.Truef(t, regexp.MustCompile(row).Match(page), "the page of metrics has no row %s", row)
			}
		}
		return all
	}
}

func TestMinutesThatAreCollectedAreCountedAndThoseThatNobodyHasCollectedInTime(t *testing.T) {
	t.Parallel()
	s := newScene(t, "SQLite")
	meter, metrics := exported(t)
	cfg := s.config(s.budget)
	cfg.MeterProvider = meter
	c, err := collect.New(cfg)
	require.NoError(t, err)
	counted := func() [2]float64 {
		all := metrics()
		return [2]float64{all["ratelimit_collector_minutes_total"], all["ratelimit_collector_missed_total"]}
	}
	life := usage.ReportLife.Minutes()
	lead := func() collect.Round {
		r := collect.NewRound(c, nil)
		require.NoError(t, r.Keep(t.Context()))
		require.NoError(t, r.ReadMinutes(t.Context()))
		// What was read is noted once a search has found who has counted.
		require.NoError(t, r.Search(t.Context()))
		require.NoError(t, r.ReadMinutes(t.Context()))
		return r
	}
	require.Equal(t, [2]float64{}, counted())
	r := lead()
	require.Equal(t, [2]float64{life, 0}, counted(), "where nothing was ever collected nothing is missed")
	s.clock.advance(3 * time.Minute)
	require.NoError(t, r.ReadMinutes(t.Context()))
	require.Equal(t, [2]float64{life + 3, 0}, counted())
	s.clock.advance(usage.ReportLife)
	lead()
	require.Equal(t, [2]float64{2*life + 3, 0}, counted(), "it was just in time")
	s.clock.advance(usage.ReportLife + 7*time.Minute)
	r = lead()
	require.Equal(t, [2]float64{3*life + 3, 7}, counted())
	s.clock.advance(usage.ReportLife + 5*time.Minute)
	require.NoError(t, r.ReadMinutes(t.Context()))
	require.Equal(t, [2]float64{4*life + 3, 12}, counted(), "it has led all the time, and read nothing")
}

func TestOfAnHourThatIsToldAgainOnlyWhatMayHaveChangedIsWritten(t *testing.T) {
	t.Parallel()
	s := newScene(t, "SQLite")
	meter, metrics := exported(t)
	cfg := s.config(s.budget)
	cfg.MeterProvider, cfg.Fresh = meter, time.Hour
	c, err := collect.New(cfg)
	require.NoError(t, err)
	r := collect.NewRound(c, nil)
	require.NoError(t, r.Keep(t.Context()))
	rows := func() int { return int(metrics()["ratelimit_collector_rows_total usage"]) }
	var settle func(int64)
	for minutes := range 40 {
		next := s.take("acme", 5)
		if minutes == 1 {
			settle = next
		}
		s.tell("acme")
		s.clock.advance(time.Minute)
		before := rows()
		require.NoError(t, r.ReadMinutes(t.Context()))
		require.LessOrEqual(t, rows()-before, 2*5, "points and requests of a few minutes")
	}
	require.Equal(t, map[string]int64{"acme": 40 * 5}, s.nets())
	// A correction of an old minute is found among them.
	settle(1)
	s.tell("acme")
	s.clock.advance(2 * time.Minute)
	require.NoError(t, r.ReadMinutes(t.Context()))
	require.Equal(t, map[string]int64{"acme": 40*5 - 4}, s.nets())
}

func TestWhatCannotBeReadHoldsNobodyElseBackAndIsSearchedSoon(t *testing.T) {
	t.Parallel()
	both(t, func(s *scene) {
		ctx, from := s.Context(), s.counting()
		r := collect.NewRound(s.collector(from), nil)
		require.NoError(s, r.Keep(ctx))
		require.NoError(s, r.Search(ctx))
		for _, tenant := range []string{"acme", "broken", "globex"} {
			s.take(tenant, 5)
			s.tell(tenant)
		}
		s.clock.advance(2 * time.Minute)
		from.gone = true
		require.ErrorIs(s, r.ReadMinutes(ctx), errFault)
		require.Empty(s, s.nets())
		from.gone, from.away = false, "broken"
		require.NoError(s, r.ReadMinutes(ctx))
		require.Equal(s, map[string]int64{"acme": 5, "globex": 5}, s.nets())
		require.NoError(s, r.SearchWhenDue(ctx), "it is not due yet")
		s.clock.advance(6 * time.Minute)
		require.Error(s, r.SearchWhenDue(ctx), "it searches, and finds what it cannot read")
		require.Zero(s, s.sums("SELECT pass, minute FROM usage_pass WHERE pass = 'search' AND minute >= " + fmt.Sprint(s.clock.now().Unix()/60))["search"])
		from.away = ""
		s.clock.advance(6 * time.Minute)
		require.NoError(s, r.SearchWhenDue(ctx))
		require.Len(s, s.nets(), 2, "it waits longer each time")
		s.clock.advance(6 * time.Minute)
		require.NoError(s, r.SearchWhenDue(ctx))
		require.Equal(s, map[string]int64{"acme": 5, "globex": 5, "broken": 5}, s.nets())
		require.Equal(s, s.clock.now().Unix()/60, s.sums("SELECT pass, minute FROM usage_pass")["search"])
	})
}

func TestMinutesAreForgottenWhenTheyAreOldAndSumsStay(t *testing.T) {
	t.Parallel()
	both(t, func(s *scene) {
		s.take("acme", 5)
		s.settle()
		s.clock.advance(8 * 24 * time.Hour)
		s.take("acme", 7)
		s.settle()
		require.Equal(s, map[string]int64{"acme": 7}, s.nets())
		hours := "SELECT " + s.text("tenant") + ", charged FROM usage_hour WHERE unit = " + s.literal("points")
		require.Equal(s, map[string]int64{"acme": 12}, s.sums(hours))
		// The clock of the daemon is a year ahead, and later that of the Redis is.
		for _, there := range []time.Duration{0, 365 * 24 * time.Hour} {
			cfg := s.config(&shifted{s.budget, s.clock, there})
			cfg.Now = func() time.Time { return s.clock.now().Add(365*24*time.Hour - there) }
			c, err := collect.New(cfg)
			require.NoError(s, err)
			err = collect.NewRound(c, nil).Keep(s.Context())
			if there == 0 {
				require.NoError(s, err)
			} else {
				require.ErrorContains(s, err, "clocks of the daemon and of the store of budgets differ")
			}
			require.Equal(s, map[string]int64{"acme": 7}, s.nets())
		}
		s.clock.advance(100 * 24 * time.Hour)
		s.settle()
		require.Empty(s, s.sums(hours))
		require.Equal(s, map[string]int64{"acme": 12}, s.sums(strings.Replace(hours, "usage_hour", "usage_month", 1)))
	})
}

// shifted is a source whose clock is ahead.
type shifted struct {
	usage.Source
	clock *clock
	by    time.Duration
}

func (s *shifted) Now(context.Context) (time.Time, error) { return s.clock.now().Add(s.by), nil }

func TestOfTwoCollectorsOneLeadsAndTheOtherTakesOver(t *testing.T) {
	t.Parallel()
	both(t, func(s *scene) {
		s.take("acme", 5)
		s.tell("acme")
		s.clock.advance(2 * time.Minute)
		meter, metrics := exported(s.TB)
		run := func() (stop func()) {
			cfg := s.config(s.budget)
			cfg.MeterProvider, cfg.Interval = meter, 10*time.Millisecond
			c, err := collect.New(cfg)
			require.NoError(s, err)
			ctx, cancel := context.WithCancel(context.Background())
			ended := make(chan error, 1)
			go func() { ended <- c.Run(ctx) }()
			var once sync.Once
			stop = func() {
				once.Do(func() {
					cancel()
					require.NoError(s, <-ended)
				})
			}
			s.Cleanup(stop)
			return stop
		}
		eventually := func(is func() bool) {
			s.Helper()
			require.Eventually(s, is, 60*time.Second, 5*time.Millisecond)
		}
		stop := run()
		eventually(func() bool { return s.nets()["acme"] == 5 && metrics()["ratelimit_collector_lag_seconds"] < 180 })
		require.Equal(s, 1., metrics()["ratelimit_collector_leads"])
		stop()
		run()
		s.take("acme", 6)
		s.tell("acme")
		s.clock.advance(2 * time.Minute)
		eventually(func() bool { return s.nets()["acme"] == 11 })
		s.clock.advance(time.Minute)
		// What has changed is computed after a while.
		eventually(func() bool {
			return s.sums("SELECT " + s.text("tenant") + ", charged FROM usage_hour WHERE unit = " + s.literal("points"))["acme"] == 11
		})
		eventually(func() bool { return metrics()["ratelimit_collector_sums_lag_seconds"] == 0 })
	})
}
