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
	_, err := collect.New(collect.Config{Interval: -1, Search: time.Millisecond, Settled: time.Second, Lease: time.Hour, HourDays: 9999})
	for _, mistake := range []string{
		"Config.Store is nil", "Config.Source is nil", "Config.Interval is -1ns: write 10ms to 1h0m0s, or 0", "Config.Search is 1ms", "Config.Settled is 1s", "Config.Lease is 1h",
		"hours are kept for 9999 days: write 32 to 3660, or 0 for 400",
	} {
		require.ErrorContains(t, err, mistake)
	}
}

// counting is a source that says what was asked of it.
type counting struct {
	usage.Source
	// away is what cannot be read, gone that nothing can, and found why nothing is found.
	away  string
	gone  bool
	found error
	// reads is how often counts of each hour were read.
	mu    sync.Mutex
	reads map[time.Time]int
}

func (s *counting) Now(ctx context.Context) (time.Time, error) {
	if s.gone {
		return time.Time{}, errFault
	}
	return s.Source.Now(ctx)
}

func (s *counting) Found(ctx context.Context, cursor string) ([]bucket.UsageFound, string, error) {
	if s.found != nil {
		return nil, "", s.found
	}
	return s.Source.Found(ctx, cursor)
}

func (s *counting) ReadUsage(ctx context.Context, tenant string, hour time.Time, grade bucket.UsageGrade) (*bucket.UsageHour, error) {
	s.mu.Lock()
	s.reads[hour]++
	s.mu.Unlock()
	if s.gone || s.away == tenant {
		return nil, errFault
	}
	return s.Source.ReadUsage(ctx, tenant, hour, grade)
}

func (s *scene) counting() *counting { return &counting{Source: s.budget, reads: map[time.Time]int{}} }

// leading returns a round of a daemon that reads a source.
func (s *scene) leading(from usage.Source) collect.Round {
	s.Helper()
	return collect.NewRound(s.collector(from), nil)
}

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

func TestOnlyASearchReadsHoursThatAreOver(t *testing.T) {
	t.Parallel()
	both(t, func(s *scene) {
		ctx, from := s.Context(), s.counting()
		cfg := s.config(from)
		cfg.Settled = 3 * time.Hour
		c, err := collect.New(cfg)
		require.NoError(s, err)
		r := collect.NewRound(c, nil)
		settle := s.take("acme", 5)
		require.NoError(s, r.Collect(ctx))
		require.Equal(s, map[string]int64{"acme": 5}, s.nets())
		hour := s.clock.now().Truncate(time.Hour)
		s.clock.advance(time.Hour)
		settle(1)
		require.NoError(s, r.Collect(ctx))
		require.Equal(s, map[string]int64{"acme": 1}, s.nets(), "a correction is in the minute of its take")
		clear(from.reads)
		s.clock.advance(time.Hour)
		require.NoError(s, r.Collect(ctx), "a search is due")
		require.Equal(s, 1, from.reads[hour])
		s.take("acme", 7)
		for range 10 {
			s.clock.advance(time.Minute)
			require.NoError(s, r.Collect(ctx))
		}
		require.Equal(s, 1, from.reads[hour])
		require.Equal(s, map[string]int64{"acme": 8}, s.nets())
		s.clock.advance(2 * time.Hour)
		require.NoError(s, r.Collect(ctx))
		found, _, err := s.budget.Found(ctx, "")
		require.NoError(s, err)
		require.Len(s, found, 1, "what is over is forgotten")
	})
}

func TestRefusalsOfAllInstancesAreAddedUpOnce(t *testing.T) {
	t.Parallel()
	both(t, func(s *scene) {
		hour := s.clock.now().Truncate(time.Hour)
		refuse := func(run, limit string, n int64) {
			s.budget.Refuse(run, usage.Refused{Tenant: "acme", Limit: limit, Hour: hour, N: n})
		}
		refuse("1", "tenant:minute", 3)
		refuse("2", "tenant:minute", 4)
		refuse("2", "blocked", 1)
		r := s.round()
		for range 2 {
			require.NoError(s, r.Collect(s.Context()))
		}
		refuse("1", "tenant:minute", 5)
		s.clock.advance(time.Hour)
		require.NoError(s, r.Collect(s.Context()))
		require.Equal(s, map[string]int64{"tenant:minute": 9, "blocked": 1}, s.sums("SELECT "+s.text("name")+", refused FROM refused_hour"))
		s.clock.advance(2 * time.Hour)
		for n := range 300 {
			s.budget.Refuse("1", usage.Refused{Tenant: "acme", Limit: fmt.Sprint(n), Hour: s.clock.now().Truncate(time.Hour), N: int64(n)})
		}
		require.NoError(s, r.Collect(s.Context()))
		require.EqualValues(s, 102, s.sums("SELECT 'n', count(*) FROM refused_hour")["n"], "a tenant has so many limits")
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

func TestMinutesThatNobodyHasCollectedInTimeAreCounted(t *testing.T) {
	t.Parallel()
	s := newScene(t, "SQLite")
	meter, metrics := exported(t)
	cfg := s.config(s.budget)
	cfg.MeterProvider = meter
	c, err := collect.New(cfg)
	require.NoError(t, err)
	missed := func() float64 { return metrics()["ratelimit_collector_missed_total"] }
	r := collect.NewRound(c, nil)
	require.NoError(t, r.Collect(t.Context()))
	require.Zero(t, missed(), "where nothing was ever collected nothing is missed")
	s.clock.advance(usage.CountsLife)
	require.NoError(t, r.Collect(t.Context()))
	require.Zero(t, missed(), "it was just in time")
	s.clock.advance(usage.CountsLife + 7*time.Minute)
	require.NoError(t, collect.NewRound(c, nil).Collect(t.Context()))
	require.InDelta(t, 7, missed(), 0)
}

func TestOfAnHourThatIsReadAgainOnlyWhatMayHaveChangedIsWritten(t *testing.T) {
	t.Parallel()
	s := newScene(t, "SQLite")
	meter, metrics := exported(t)
	cfg := s.config(s.budget)
	cfg.MeterProvider = meter
	c, err := collect.New(cfg)
	require.NoError(t, err)
	r := collect.NewRound(c, nil)
	rows := func() int { return int(metrics()["ratelimit_collector_rows_total usage"]) }
	var settle func(int64)
	for minutes := range 40 {
		next := s.take("acme", 5)
		if minutes == 1 {
			settle = next
		}
		s.clock.advance(time.Minute)
		before := rows()
		require.NoError(t, r.Collect(t.Context()))
		require.LessOrEqual(t, rows()-before, 2*5, "points and requests of a few minutes")
	}
	require.Equal(t, map[string]int64{"acme": 40 * 5}, s.nets())
	// A correction of an old minute is found among them.
	settle(1)
	s.clock.advance(2 * time.Minute)
	require.NoError(t, r.Collect(t.Context()))
	require.Equal(t, map[string]int64{"acme": 40*5 - 4}, s.nets())
	s.clock.advance(time.Hour)
	require.NoError(t, r.Collect(t.Context()))
	before := rows()
	require.NoError(t, r.Collect(t.Context()))
	require.Equal(t, before, rows(), "of an hour that is over and has not changed nothing is written")
}

func TestWhatCannotBeReadHoldsNobodyElseBackAndIsReadAgain(t *testing.T) {
	t.Parallel()
	both(t, func(s *scene) {
		ctx, from := s.Context(), s.counting()
		r := s.leading(from)
		for _, tenant := range []string{"acme", "broken", "globex"} {
			s.take(tenant, 5)
		}
		from.gone = true
		require.ErrorIs(s, r.Collect(ctx), errFault)
		require.Empty(s, s.nets())
		from.gone, from.away = false, "broken"
		require.ErrorIs(s, r.Collect(ctx), collect.ErrLeft)
		require.Equal(s, map[string]int64{"acme": 5, "globex": 5}, s.nets())
		require.Equal(s, s.clock.now().Unix()/60, s.pass().Collected)
		from.away = ""
		require.NoError(s, r.Collect(ctx))
		require.Equal(s, map[string]int64{"acme": 5, "globex": 5, "broken": 5}, s.nets())
	})
}

func TestMinutesAreForgottenAfterTwoDaysAndHoursLater(t *testing.T) {
	t.Parallel()
	both(t, func(s *scene) {
		s.take("acme", 5)
		s.settle()
		s.clock.advance(49 * time.Hour)
		s.take("acme", 7)
		s.settle()
		require.Equal(s, map[string]int64{"acme": 7}, s.nets())
		hours := "SELECT " + s.text("tenant") + ", charged FROM usage_hour WHERE unit = " + s.literal("points")
		require.Equal(s, map[string]int64{"acme": 12}, s.sums(hours))
		// The clock of the store is ahead by days, and so is that of the daemon.
		for _, there := range []time.Duration{2 * 24 * time.Hour, -2 * 24 * time.Hour} {
			cfg := s.config(&skewed{s.budget, there})
			if there < 0 {
				cfg.Source = s.budget
				cfg.Now = func() time.Time { return s.clock.now().Add(-there) }
			}
			c, err := collect.New(cfg)
			require.NoError(s, err)
			require.NoError(s, collect.NewRound(c, nil).Keep(s.Context()))
			require.Equal(s, map[string]int64{"acme": 7}, s.nets(), "nothing is forgotten too early")
		}
		s.clock.advance((collect.DefaultHourDays + 1) * 24 * time.Hour)
		s.settle()
		require.Empty(s, s.sums(hours))
	})
}

func TestOfTwoCollectorsOneLeadsAndTheOtherTakesOver(t *testing.T) {
	t.Parallel()
	both(t, func(s *scene) {
		s.take("acme", 5)
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
		eventually(func() bool { return s.nets()["acme"] == 5 && metrics()["ratelimit_collector_lag_seconds"] < 60 })
		require.Equal(s, 1., metrics()["ratelimit_collector_leads"])
		stop()
		run()
		s.take("acme", 6)
		s.clock.advance(2 * time.Minute)
		eventually(func() bool { return s.nets()["acme"] == 11 })
	})
}
