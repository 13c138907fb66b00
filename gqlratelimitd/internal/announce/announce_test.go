package announce_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/gqlgen-ratelimit/ratelimit/event/stream"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/announce"
)

func TestEachEntryOfTheLogIsAnEventWithItsRecordAsItIs(t *testing.T) {
	t.Parallel()
	both(t, func(s *scene) {
		s.do(entry("policy.publish", "", 0), entry("override.set", "acme", 1), entry("of.the.future", `a\b`, 2))
		b := &broker{}
		s.start(s.config(b))
		s.arrived()
		got := b.all()
		require.Zero(s, s.requireLog(got))
		before := audit.Hash{}
		for i, want := range []struct{ name, subject string }{
			{"ratelimit.policy.published.v1", ""}, {"ratelimit.override.set.v1", "acme"}, {"ratelimit.audit.entry.v1", `a\\b`},
		} {
			e := got[i]
			require.Equal(s, want.name, e.Type)
			require.Equal(s, want.subject, e.Subject)
			require.Equal(s, "ratelimit:main/audit", e.Source)
			require.Equal(s, "ratelimit.policy.updates", e.Topic)
			before = audit.ChainHash(before, e.Data)
			require.Equal(s, fmt.Sprintf("%d-%s", i, before), e.ID, "whoever has the events has the chain of the log")
			entry, err := audit.ParseRecord(e.Data)
			require.NoError(s, err)
			require.True(s, entry.Time.Equal(e.Time))
		}
	})
}

func TestWhatComesWhileADaemonRunsIsAnnouncedAndNothingAgainAfterItHasEnded(t *testing.T) {
	t.Parallel()
	both(t, func(s *scene) {
		b := &broker{}
		a, stop := s.start(s.config(b))
		s.overrides(100)
		a.Wake()
		s.arrived()
		stop()
		s.overrides(3)
		s.start(s.config(b))
		s.arrived()
		require.Zero(s, s.requireLog(b.all()))
	})
}

func TestABrokerThatFailsNowAndThenHasEachEntryInTheOrderOfEachTenant(t *testing.T) {
	t.Parallel()
	both(t, func(s *scene) {
		s.overrides(200)
		calls := 0
		b := &broker{}
		b.judge = func(context.Context, *stream.Envelope) error {
			if calls++; calls%9 == 0 {
				return errAway
			}
			return nil
		}
		s.start(s.config(b))
		s.arrived()
		// A sink goes on with other tenants: these stand before what was sent again.
		s.requireTenants(b.all())
	})
}

func TestOfTwoDaemonsOneAnnouncesAndTheOtherGoesOnWhenThatEnds(t *testing.T) {
	t.Parallel()
	both(t, func(s *scene) {
		b := &broker{}
		s.overrides(5)
		first, stop := s.start(s.config(b))
		s.arrived()
		second, _ := s.start(s.config(b))
		require.True(s, first.Status().Leads)
		require.False(s, second.Status().Leads)
		stop()
		s.overrides(5)
		s.arrived()
		s.eventually(func() bool { return second.Status().Leads })
		require.Zero(s, s.requireLog(b.all()))
	})
}

func TestABrokerThatIsFrozenDelaysNoChangeAndTheLagIsTheAgeOfTheOldestEntry(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	b := &broker{}
	b.set(func(ctx context.Context, _ *stream.Envelope) error { <-ctx.Done(); return ctx.Err() })
	var ahead atomic.Int64
	reader := sdk.NewManualReader()
	cfg := s.config(b)
	cfg.MeterProvider = sdk.NewMeterProvider(sdk.WithReader(reader))
	cfg.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	a, _ := s.start(cfg)
	// If a change waited for the broker this would not end.
	s.overrides(20)
	s.eventually(func() bool { return a.Status().Waiting == 20 })
	// The attempt under way may have had some of the twenty only.
	s.eventually(func() bool { return measured(t, reader)["ratelimit.announce.repeated"] >= 20 })
	require.Empty(t, b.all())
	ahead.Store(int64(time.Hour))
	got := measured(t, reader)
	require.Equal(t, 20.0, got["ratelimit.announce.waiting"])
	require.InDelta(t, 3600, got["ratelimit.announce.lag"], patience.Seconds())
	require.Equal(t, 1.0, got["ratelimit.announce.leads"])
	require.Positive(t, got["ratelimit.announce.failures"])
	require.Zero(t, got["ratelimit.announce.sent"])

	b.set(nil)
	s.arrived()
	s.requireTenants(b.all())
	s.eventually(func() bool { return a.Status().Waiting == 0 })
	got = measured(t, reader)
	require.Zero(t, got["ratelimit.announce.waiting"])
	require.Zero(t, got["ratelimit.announce.lag"])
	require.GreaterOrEqual(t, got["ratelimit.announce.sent"], 20.0)
}

// measured are the sums and gauges of a reader.
func measured(t *testing.T, reader sdk.Reader) map[string]float64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(context.Background(), &all))
	got := map[string]float64{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				got[m.Name] = float64(data.DataPoints[0].Value)
			case metricdata.Gauge[int64]:
				got[m.Name] = float64(data.DataPoints[0].Value)
			case metricdata.Gauge[float64]:
				got[m.Name] = data.DataPoints[0].Value
			}
		}
	}
	return got
}

func TestWhatABrokerNeverTakesHoldsUpNothingAndIsCounted(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.overrides(10)
	b := &broker{judge: func(_ context.Context, e *stream.Envelope) error {
		switch e.Sequence {
		case 4:
			return fmt.Errorf("no: %w", stream.ErrTooLarge)
		case 7:
			return fmt.Errorf("no: %w", stream.ErrRefused)
		}
		return nil
	}}
	reader := sdk.NewManualReader()
	cfg := s.config(b)
	cfg.MeterProvider = sdk.NewMeterProvider(sdk.WithReader(reader))
	s.start(cfg)
	s.arrived()
	require.Len(t, b.all(), 8)
	got := measured(t, reader)
	require.Equal(t, 2.0, got["ratelimit.announce.dropped"])
	require.Zero(t, got["ratelimit.announce.repeated"])
}

func TestASinkThatPanicsOrSaysTooLittleHasFailed(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.overrides(3)
	b := &broker{}
	var calls atomic.Int32
	s.start(s.config(sinkFunc(func(ctx context.Context, batch []stream.Envelope) []error {
		switch calls.Add(1) {
		case 1:
			panic("broken")
		case 2:
			return []error{}
		}
		return b.Send(ctx, batch)
	})))
	s.arrived()
	require.Zero(t, s.requireLog(b.all()))
}

type sinkFunc func(context.Context, []stream.Envelope) []error

func (f sinkFunc) Send(ctx context.Context, batch []stream.Envelope) []error { return f(ctx, batch) }

func TestAnEventIsBoundedWhateverItsEntryHas(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	long := func(n int) string { return strings.Repeat(`"`, n) }
	largest := audit.Entry{
		Time:   time.Now(),
		Actor:  audit.Actor{Subject: long(audit.MaxName), Issuer: long(audit.MaxName), Method: long(audit.MaxName), Owner: long(2 * audit.MaxName), Address: long(audit.MaxName), Agent: long(audit.MaxName)},
		Action: long(audit.MaxName), Target: long(audit.MaxName), Tenant: long(audit.MaxName), RevisionBefore: 1, RevisionAfter: 2,
		Before: json.RawMessage(`"` + strings.Repeat("x", audit.MaxValue-2) + `"`), After: json.RawMessage(`"` + strings.Repeat("y", audit.MaxValue-2) + `"`),
		Reason: strings.Repeat("\n", audit.MaxReason), Ticket: long(audit.MaxName), Request: long(audit.MaxName),
	}
	s.do(largest)
	b := &broker{}
	s.start(s.config(b))
	s.arrived()
	e := b.all()[0]
	require.Less(t, len(e.Data), 32<<10)
	require.Contains(t, e.ID, s.rows()[0].Hash.String(), "it is the row of the log all the same")
	var data struct {
		audit.Entry
		Cut bool `json:"cut"`
	}
	require.NoError(t, json.Unmarshal(e.Data, &data))
	require.True(t, data.Cut)
	require.Empty(t, data.Before)
	require.Equal(t, largest.Reason, data.Reason)
}

func TestAnotherEntryUnderANumberThatWasAnnouncedIsAnotherEvent(t *testing.T) {
	t.Parallel()
	// A database that was restored to a moment before, and has gone on otherwise.
	b := &broker{}
	for n := range 2 {
		s := newScene(t)
		s.do(entry("override.set", "acme", n))
		s.start(s.config(b))
		s.arrived()
	}
	got := b.all()
	require.Equal(t, got[0].Sequence, got[1].Sequence)
	require.NotEqual(t, got[0].ID, got[1].ID)
}

func TestEachActionThatChangesSomethingHasATypeWhichIsOnThePageOfStreams(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/reference/streams.md")
	require.NoError(t, err)
	var seen []string
	for _, action := range access.Actions() {
		name := announce.TypeOf(action)
		switch {
		case strings.HasSuffix(string(action), ".read") || action == access.CheckPolicy || action == access.ExportAudit:
			require.Empty(t, name, action)
			continue
		default:
			require.NotEmpty(t, name, "%s needs a type", action)
			require.NotContains(t, seen, name)
			seen = append(seen, name)
			require.Regexp(t, "(?m)^\\| `"+string(action)+"` \\| `"+name+"`", string(page))
		}
	}
}

func TestMistakesOfTheConfigurationAreReportedAllAtOnce(t *testing.T) {
	t.Parallel()
	_, err := announce.New(announce.Config{Topic: "a/b", Interval: time.Hour, Lease: 1, Timeout: -1})
	for _, part := range []string{"Config.Store", "Config.Sink", "Config.Source", "Config.Topic", "Config.Interval", "Config.Lease", "Config.Timeout"} {
		require.ErrorContains(t, err, part)
	}
}

func TestAnAnnouncerRunsOnceAtATime(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	a, _ := s.start(s.config(&broker{}))
	s.eventually(func() bool { return a.Status().Leads })
	require.Error(t, a.Run(t.Context()))
}
