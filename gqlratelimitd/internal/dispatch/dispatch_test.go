package dispatch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/gqlgen-ratelimit/ratelimit/event/redisstream"
	"github.com/gqlgen-ratelimit/ratelimit/event/stream"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/dispatch"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/storetest"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/webhook"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/webhook/delivery"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

const (
	patient = time.Minute
	soon    = 20 * time.Millisecond
	refused = "ratelimit.decision.refused.v1"
)

// scene is a dispatcher between a Redis and endpoints that answer as they are told.
type scene struct {
	*testing.T
	db      *store.DB
	server  *redistest.Server
	client  *redis.Client
	sink    *redisstream.Sink
	metrics *metric.ManualReader
	// provider takes the metrics.
	provider *metric.MeterProvider

	mu   sync.Mutex
	came []string
	gone []string
	// result is what attempts come to.
	result webhook.Result
	// keepDead is that of the configuration.
	keepDead time.Duration
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{T: t, server: redistest.Start(t), metrics: metric.NewManualReader(), result: webhook.Result{Outcome: webhook.Delivered}}
	s.provider = metric.NewMeterProvider(metric.WithReader(s.metrics))
	var err error
	s.db, err = store.Open(t.Context(), store.Config{URL: storetest.SQLite(t)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.db.Close()) })
	s.client = redis.NewClient(&redis.Options{Addr: s.server.Addr})
	t.Cleanup(func() { _ = s.client.Close() })
	s.sink, err = redisstream.New(redisstream.Config{Client: s.client})
	require.NoError(t, err)
	return s
}

// Send implements delivery.Sender.
func (s *scene) Send(_ context.Context, _ webhook.Endpoint, m webhook.Message) webhook.Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	var e stream.Envelope
	if err := json.Unmarshal(m.Body, &e); err != nil {
		s.Error(err)
	}
	s.came = append(s.came, e.ID)
	return s.result
}

// run runs a dispatcher until the test ends.
func (s *scene) run() *dispatch.Dispatcher {
	s.Helper()
	d, err := dispatch.New(dispatch.Config{
		Store: s.db, Client: s.client, Sender: s, KeepDead: s.keepDead, Logger: slog.New(slog.DiscardHandler), MeterProvider: s.provider,
		Endpoint: func(context.Context, string) (webhook.Endpoint, error) { return webhook.Endpoint{}, nil },
		Gone: func(_ context.Context, id string) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.gone = append(s.gone, id)
		},
	})
	require.NoError(s, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	s.Cleanup(func() {
		stop()
		require.NoError(s, <-ended)
	})
	return d
}

// publish puts events of a tenant into the stream.
func (s *scene) publish(ids ...string) {
	s.Helper()
	var batch []stream.Envelope
	for _, id := range ids {
		batch = append(batch, stream.Envelope{
			ID: id, Source: "ratelimit:main/web-1", Type: refused, Subject: "acme", Time: time.Now(), Data: json.RawMessage(`{"tenant":"acme"}`), Topic: "ratelimit.denials",
		})
	}
	require.Nil(s, s.sink.Send(s.Context(), batch))
}

// register registers an endpoint of the tenant, and waits until the stream is read for it.
func (s *scene) register(d *dispatch.Dispatcher) {
	s.Helper()
	w := &store.Webhook{ID: "hook", Tenant: "acme", Subject: "acme", Types: dispatch.Types(), Written: store.Written{By: "ada", Reason: "why"}}
	require.NoError(s, s.db.Change(s.Context(), func(tx *store.Tx) error { return tx.AddWebhook(w) }))
	d.Wake()
	require.Eventually(s, func() bool { return s.position() != "" }, patient, soon)
}

func (s *scene) position() (at string) {
	s.Helper()
	require.NoError(s, s.db.Read(s.Context(), func(v *store.View) (err error) {
		at, err = v.Position("ratelimit.denials")
		return err
	}))
	return at
}

// arrived waits for what has come.
func (s *scene) arrived(want ...string) {
	s.Helper()
	require.Eventually(s, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return slices.Equal(want, slices.Sorted(slices.Values(s.came)))
	}, patient, soon, "%v", want)
}

// number is the sum of a metric.
func (s *scene) number(name string) (sum float64) {
	s.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(s, s.metrics.Collect(s.Context(), &all))
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name != name {
				continue
			}
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					sum += float64(p.Value)
				}
			case metricdata.Gauge[int64]:
				for _, p := range data.DataPoints {
					sum += float64(p.Value)
				}
			case metricdata.Gauge[float64]:
				for _, p := range data.DataPoints {
					sum += p.Value
				}
			}
		}
	}
	return sum
}

func TestAnEndpointGetsWhatHappensAfterItWasRegistered(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.publish("before")
	d := s.run()
	s.register(d)
	s.publish("1", "2", "3")
	s.arrived("1", "2", "3")
	require.EqualValues(t, 3, s.number("ratelimit.webhook.messages"))
	require.Eventually(t, func() bool { return s.number("ratelimit.webhook.attempts") == 3 }, patient, soon)
	require.EqualValues(t, 1, s.number("ratelimit.webhook.endpoints"))

	// What somebody else has written is passed over, and a Redis that was away is read again.
	require.NoError(t, s.client.XAdd(t.Context(), &redis.XAddArgs{Stream: "rl:main:stream:ratelimit.denials", Values: []string{"a", "b"}}).Err())
	s.publish("4")
	s.arrived("1", "2", "3", "4")
	require.EqualValues(t, 1, s.number("ratelimit.webhook.dropped"))
	require.NoError(t, s.client.FlushAll(t.Context()).Err())
	s.publish("5")
	s.arrived("1", "2", "3", "4", "5")
}

func TestAStreamThatBeganAnewWithAnEarlierClockIsReadOn(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	d := s.run()
	s.register(d)
	const key = "rl:main:stream:ratelimit.denials"
	ahead := fmt.Sprint(time.Now().AddDate(1, 0, 0).UnixMilli(), "-7")
	add := func() {
		t.Helper()
		require.NoError(t, s.client.XAdd(t.Context(), &redis.XAddArgs{Stream: key, ID: ahead, Values: []string{"a", "b"}}).Err())
		require.Eventually(t, func() bool { return s.position() == ahead }, patient, soon)
	}
	// It is gone: what comes is new.
	add()
	require.NoError(t, s.client.Del(t.Context(), key).Err())
	require.Eventually(t, func() bool { return s.position() == "0-0" }, patient, soon)
	s.publish("1")
	s.arrived("1")
	// In its place is an older one, of which nobody knows what was read.
	add()
	require.NoError(t, s.client.Del(t.Context(), key).Err())
	s.publish("older")
	require.Eventually(t, func() bool { return s.position() != ahead }, patient, soon)
	s.publish("2")
	require.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return slices.Contains(s.came, "2")
	}, patient, soon)
}

func TestWhenTheLastEndpointIsRemovedNobodyReadsTheStreams(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	d := s.run()
	s.register(d)
	require.NoError(t, s.db.Change(t.Context(), func(tx *store.Tx) error {
		w, err := tx.Webhook("hook")
		require.NoError(t, err)
		_, err = tx.RemoveWebhook(w, w.Revision)
		return err
	}))
	d.Wake()
	require.Eventually(t, func() bool { return s.position() == "" }, patient, soon)
	s.publish("meanwhile")
	s.register(d)
	s.publish("after")
	s.arrived("after")
}

func TestWhatCannotBeBroughtIsCountedAndAnEndpointThatIsGoneIsTold(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.result = webhook.Result{Outcome: webhook.Gone, Reason: webhook.ReasonStatus, Status: 410}
	d := s.run()
	s.register(d)
	s.publish("1")
	require.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.gone) == 1 && s.gone[0] == "hook"
	}, patient, soon)
	require.EqualValues(t, 1, s.number("ratelimit.webhook.died"))
	require.EqualValues(t, 1, s.number("ratelimit.webhook.dead"))
	require.Zero(t, s.number("ratelimit.webhook.waiting"))
	require.Less(t, s.number("ratelimit.webhook.behind"), 60.0)
}

func TestWhatHasBeenDeadForLongIsForgotten(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.result = webhook.Result{Outcome: webhook.Gone, Reason: webhook.ReasonStatus, Status: 410}
	s.keepDead = 10 * time.Millisecond
	s.register(s.run())
	s.publish("1")
	require.Eventually(t, func() bool {
		var dead []delivery.Record
		require.NoError(t, s.db.Read(t.Context(), func(v *store.View) (err error) {
			dead, err = v.DeadDeliveries("hook", 10)
			return err
		}))
		return s.number("ratelimit.webhook.died") == 1 && len(dead) == 0
	}, patient, soon)
}

func TestWhatFindsNoRoomIsCounted(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.result = webhook.Result{Outcome: webhook.Failed, Reason: webhook.ReasonTimeout}
	d := s.run()
	s.register(d)
	var ids []string
	for n := range store.MaxWaiting + 50 {
		ids = append(ids, fmt.Sprint(n))
	}
	s.publish(ids...)
	require.Eventually(t, func() bool { return s.number("ratelimit.webhook.dropped") == 50 }, patient, soon)
	require.EqualValues(t, store.MaxWaiting, s.number("ratelimit.webhook.messages"))
}

func TestAConfigurationThatLacksSomethingSaysSo(t *testing.T) {
	t.Parallel()
	_, err := dispatch.New(dispatch.Config{Topics: []string{"a..b"}, KeepDead: -1})
	require.ErrorContains(t, err, "set Config.Store, Client, Sender, Endpoint and Gone")
	require.ErrorContains(t, err, "Config.Topics[0]")
	require.ErrorContains(t, err, "Config.KeepDead is -1ns: write more than 0, or 0 for 720h0m0s")
}
