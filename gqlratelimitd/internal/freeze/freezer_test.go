package freeze_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric/noop"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/freeze"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/storetest"
)

// ledger is one in memory.
type ledger struct {
	mu sync.Mutex
	// frozen is the day before which everything is frozen, and collected when counts were collected first.
	frozen, collected time.Time
	// pages is how many pages of tenants there are, and failed what a page of a period fails with.
	pages  int
	failed map[string]error
	// asked are the periods and pages that were asked for.
	asked []string
	// forgets says that the ledger does not note what is frozen.
	forgets bool
}

func (l *ledger) Frozen(context.Context) (time.Time, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.frozen, nil
}

func (l *ledger) Begin(_ context.Context, s freeze.Schedule, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.collected.IsZero() {
		l.frozen = s.First(now, l.collected)
	}
	return nil
}

func (l *ledger) Freeze(_ context.Context, p freeze.Period, after string) (freeze.Page, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	from := p.From.Format(time.DateOnly)
	l.asked = append(l.asked, from+after)
	if err := l.failed[from+after]; err != nil {
		return freeze.Page{}, err
	}
	page := freeze.Page{Made: 2, Corrected: 1}
	if len(after)+1 < l.pages {
		page.Next = after + "+"
		return page, nil
	}
	page.Left = []freeze.Left{{Tenant: "odd", Problem: "it has no name"}}
	if !l.forgets {
		l.frozen = p.To
	}
	return page, nil
}

// scene is a freezer on a ledger.
type scene struct {
	*testing.T
	*freeze.Freezer
	ledger *ledger
	now    time.Time
	log    bytes.Buffer
	cfg    freeze.Config
}

func newScene(t *testing.T, every freeze.Every) *scene {
	t.Helper()
	s := &scene{T: t, now: on("2026-11-23 10:00"), ledger: &ledger{pages: 1, collected: on("2026-01-01"), failed: map[string]error{}}}
	db, err := store.Open(t.Context(), store.Config{URL: storetest.SQLite(t)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	s.cfg = freeze.Config{
		Store: db, Ledger: s.ledger, Status: func(context.Context) (freeze.Status, error) { return freeze.Status{}, nil }, Schedule: freeze.Schedule{Every: every},
		Logger: slog.New(slog.NewTextHandler(&s.log, nil)), MeterProvider: noop.NewMeterProvider(), Now: func() time.Time { return s.now },
	}
	return s.again()
}

// again is the freezer after a restart.
func (s *scene) again() *scene {
	s.Helper()
	var err error
	s.Freezer, err = freeze.New(s.cfg)
	require.NoError(s, err)
	return s
}

// look looks at a time, and returns what was asked of the ledger.
func (s *scene) look(at string) []string {
	s.Helper()
	s.now, s.ledger.asked = on(at), nil
	require.NoError(s, s.Look(s.Context()))
	return s.ledger.asked
}

func TestAMonthIsFrozenOnceItIsDueAndNotBefore(t *testing.T) {
	t.Parallel()
	s := newScene(t, freeze.Monthly)
	require.Empty(t, s.look("2026-11-23"), "freezing begins with November, which is not over")
	require.Equal(t, on("2026-11-01"), s.ledger.frozen)
	require.Empty(t, s.look("2026-12-02 23:59"))
	require.Equal(t, []string{"2026-11-01"}, s.look("2026-12-03"))
	require.Empty(t, s.look("2026-12-03"), "it is frozen")
	require.Empty(t, s.again().look("2026-12-31"), "also after a restart")
	require.Equal(t, []string{"2026-12-01"}, s.look("2027-01-03"))
	require.Contains(t, s.log.String(), `a billing period is frozen" from=2026-11-01 to=2026-12-01 statements=2 corrections=1 left=1`)
	require.Contains(t, s.log.String(), `a tenant has no statement" tenant=odd why="it has no name" from=2026-11-01`)
}

func TestFreezingBeginsOnceSomethingWasCollected(t *testing.T) {
	t.Parallel()
	s := newScene(t, freeze.Monthly)
	s.ledger.collected = time.Time{}
	require.Empty(t, s.look("2026-12-05"))
	require.Zero(t, s.ledger.frozen)
	s.ledger.collected = on("2027-01-02 08:00")
	require.Empty(t, s.look("2027-01-02"))
	require.Equal(t, on("2027-01-01"), s.ledger.frozen)
}

func TestPeriodsThatNobodyHasFrozenAreFrozenLateAndInTheirOrder(t *testing.T) {
	t.Parallel()
	s := newScene(t, freeze.Daily)
	s.look("2026-11-23")
	require.Equal(t, []string{"2026-11-21", "2026-11-22", "2026-11-23", "2026-11-24"}, s.again().look("2026-11-27 00:00"))
	// Whoever changes the schedule has no day in two periods.
	s.cfg.Schedule = freeze.Schedule{Every: freeze.Monthly}
	require.Equal(t, []string{"2026-11-25", "2026-12-01"}, s.again().look("2027-01-30"))
	require.Equal(t, on("2027-01-01"), s.ledger.frozen)
}

func TestAPeriodIsFrozenPageByPageAndFromTheBeginningAfterACrash(t *testing.T) {
	t.Parallel()
	s := newScene(t, freeze.Daily)
	s.look("2026-11-23")
	s.ledger.pages = 3
	s.ledger.failed["2026-11-21++"] = errors.New("the database is away")
	s.now = on("2026-11-24")
	require.ErrorContains(t, s.Look(t.Context()), "the database is away")
	require.Equal(t, []string{"2026-11-21", "2026-11-21+", "2026-11-21++"}, s.ledger.asked)
	require.Equal(t, on("2026-11-21"), s.ledger.frozen)
	clear(s.ledger.failed)
	require.Equal(t, []string{"2026-11-21", "2026-11-21+", "2026-11-21++"}, s.again().look("2026-11-24"))
}

func TestWhatCannotBeFrozenHoldsBackThoseAfterIt(t *testing.T) {
	t.Parallel()
	s := newScene(t, freeze.Daily)
	s.look("2026-11-23")
	s.ledger.failed["2026-11-22"] = &freeze.WaitError{Reason: freeze.Behind, Problem: "the collector is behind"}
	s.now, s.ledger.asked = on("2026-11-28"), nil
	for range 3 {
		var wait *freeze.WaitError
		require.ErrorAs(t, s.Look(t.Context()), &wait)
		require.Equal(t, freeze.Behind, wait.Reason)
	}
	require.Equal(t, []string{"2026-11-21", "2026-11-22", "2026-11-22", "2026-11-22"}, s.ledger.asked)
	clear(s.ledger.failed)
	require.Equal(t, []string{"2026-11-22", "2026-11-23", "2026-11-24", "2026-11-25"}, s.look("2026-11-28"))
}

func TestALedgerThatForgetsWhatIsFrozenIsNotAskedWithoutEnd(t *testing.T) {
	t.Parallel()
	s := newScene(t, freeze.Daily)
	s.look("2026-11-23")
	s.ledger.forgets = true
	s.now, s.ledger.asked = on("2026-11-28"), nil
	require.ErrorContains(t, s.Look(t.Context()), "nobody has noted it")
	require.Len(t, s.ledger.asked, 1)
}

func TestOfSeveralDaemonsOneFreezesAndAnotherOneTakesOver(t *testing.T) {
	t.Parallel()
	s := newScene(t, freeze.Daily)
	s.look("2026-11-23")
	s.ledger.failed["2026-11-21"] = &freeze.WaitError{Reason: freeze.Gap, Problem: "nobody has collected"}
	s.now = on("2026-11-24")
	const daemons = 3
	var logs [daemons]strings.Builder
	var all sync.WaitGroup
	var stops []context.CancelFunc
	for i := range daemons {
		cfg := s.cfg
		cfg.Holder, cfg.Interval, cfg.Lease = fmt.Sprint("daemon-", i), 5*time.Millisecond, 6*time.Second
		cfg.Logger = slog.New(slog.NewTextHandler(&locked{mu: &s.ledger.mu, w: &logs[i]}, nil))
		f, err := freeze.New(cfg)
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		stops = append(stops, stop)
		all.Go(func() { _ = f.Run(ctx) })
	}
	t.Cleanup(all.Wait)
	// waits are the daemons that have said why a period waits, each of them once.
	waits := func() (who []int) {
		s.ledger.mu.Lock()
		defer s.ledger.mu.Unlock()
		for i := range logs {
			said := strings.Count(logs[i].String(), `is due and cannot be frozen" reason=gap why="nobody has collected"`)
			require.LessOrEqual(t, said, 1, "it is said once")
			if said == 1 {
				who = append(who, i)
			}
		}
		return who
	}
	asked := func() int {
		s.ledger.mu.Lock()
		defer s.ledger.mu.Unlock()
		return len(s.ledger.asked)
	}
	require.Eventually(t, func() bool { return asked() > 20 }, 30*time.Second, 5*time.Millisecond)
	first := waits()
	require.Len(t, first, 1)
	stops[first[0]]()
	require.Eventually(t, func() bool { return len(waits()) == 2 }, 30*time.Second, 5*time.Millisecond)
	for _, stop := range stops {
		stop()
	}
}

// locked is a writer under a lock.
type locked struct {
	mu *sync.Mutex
	w  *strings.Builder
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

func TestMetricsSayForHowLongAPeriodIsDueAndWhyInEveryDaemon(t *testing.T) {
	t.Parallel()
	s := newScene(t, freeze.Daily)
	reader := sdk.NewManualReader()
	s.cfg.MeterProvider = sdk.NewMeterProvider(sdk.WithReader(reader))
	status := freeze.Status{}
	s.cfg.Status = func(context.Context) (freeze.Status, error) { return status, nil }
	s.cfg.Holder, s.cfg.Interval = "this", time.Hour
	require.NoError(t, s.cfg.Store.Change(t.Context(), func(tx *store.Tx) error {
		_, err := tx.TakeLease("freezer", "another", store.Lease{})
		return err
	}))
	s.again()
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = s.Freezer.Run(ctx) })
	defer running.Wait()
	defer stop()
	read := func() map[string]float64 {
		var all metricdata.ResourceMetrics
		require.NoError(t, reader.Collect(t.Context(), &all))
		found := map[string]float64{}
		for _, scope := range all.ScopeMetrics {
			for _, m := range scope.Metrics {
				switch data := m.Data.(type) {
				case metricdata.Gauge[float64]:
					found[m.Name] = data.DataPoints[0].Value
				case metricdata.Gauge[int64]:
					for _, point := range data.DataPoints {
						reason, _ := point.Attributes.Value(attribute.Key("ratelimit.freezer.reason"))
						found[reason.AsString()] = float64(point.Value)
					}
				}
			}
		}
		return found
	}
	require.Eventually(t, func() bool { return len(read()) > 0 }, 10*time.Second, time.Millisecond)
	require.Zero(t, read()["ratelimit.freezer.overdue"], "nothing has begun")
	status = freeze.Status{Frozen: on("2026-11-20"), Next: freeze.Period{From: on("2026-11-20"), To: on("2026-11-21")}, Due: s.now.Add(time.Hour)}
	require.Zero(t, read()["ratelimit.freezer.overdue"], "it is not due")
	status.Due, status.Wait = s.now.Add(-90*time.Minute), &freeze.WaitError{Reason: freeze.Unsearched}
	found := read()
	require.InDelta(t, 5400, found["ratelimit.freezer.overdue"], 0)
	for _, reason := range freeze.Reasons() {
		want := 0.
		if reason == freeze.Unsearched {
			want = 1
		}
		require.InDelta(t, want, found[string(reason)], 0, reason)
	}
}

func TestEveryMistakeOfAFreezerIsSaid(t *testing.T) {
	t.Parallel()
	_, err := freeze.New(freeze.Config{Interval: -1})
	for _, mistake := range []string{"set Config.Store, Ledger and Status", "Config.Schedule is off", "Config.Interval is a millisecond or more"} {
		require.ErrorContains(t, err, mistake)
	}
	_, err = freeze.New(freeze.Config{Schedule: freeze.Schedule{Every: "weekly"}})
	require.ErrorContains(t, err, "write monthly, daily or off")
}
