// Package prometheus_test holds docs/reference/metrics.md to what OpenTelemetry's exporter for Prometheus makes of the
// instruments of the limiter. It is a module of its own, because the limiter does not need the exporter.
package prometheus_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/edge"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/event/stream"
	"github.com/gqlgen-ratelimit/ratelimit/internal/testserver"
	"github.com/gqlgen-ratelimit/ratelimit/observe/report"
	"github.com/gqlgen-ratelimit/ratelimit/placement"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/policy/directory"
	"github.com/gqlgen-ratelimit/ratelimit/policy/redisswitch"
	"github.com/gqlgen-ratelimit/ratelimit/throttle"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// documented is a row of the page.
type documented struct {
	name, kind, instrument string
	labels                 []string
}

var row = regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (\\w+) \\| `([\\w.]+)` \\| .+ \\| (.*) \\|$")

func page(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "metrics.md"))
	require.NoError(t, err)
	// The module of the control plane looks after the metrics of its own.
	library, _, found := strings.Cut(string(text), "\n## The control plane\n")
	require.True(t, found)
	return library
}

// documentedMetrics returns the rows of the page by their name.
func documentedMetrics(t *testing.T) map[string]documented {
	t.Helper()
	rows := map[string]documented{}
	for _, m := range row.FindAllStringSubmatch(page(t), -1) {
		d := documented{name: m[1], kind: m[2], instrument: m[3]}
		for _, label := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(m[4], -1) {
			d.labels = append(d.labels, label[1])
		}
		rows[d.name] = d
	}
	return rows
}

func TestThePageHasEveryInstrumentUnderItsNameInPrometheus(t *testing.T) {
	t.Parallel()
	made := &recorder{}
	newServer(t, &provider{recorder: made})
	require.NotEmpty(t, made.instruments)

	registry, meter := export(t)
	byHelp := map[string]string{}
	for _, i := range made.instruments {
		i.again(t, meter.Meter("test"))
		byHelp[i.description] = i.name
	}
	var found []documented
	for _, family := range gather(t, registry) {
		if instrument, ours := byHelp[family.GetHelp()]; ours {
			found = append(found, documented{name: family.GetName(), kind: strings.ToLower(family.GetType().String()), instrument: instrument})
		}
	}
	require.Len(t, found, len(made.instruments))
	var written []documented
	for _, d := range documentedMetrics(t) {
		d.labels = nil
		written = append(written, d)
	}
	require.ElementsMatch(t, found, written)
}

func TestThePageHasTheLabelsOfEveryMetricThatAServerHas(t *testing.T) {
	t.Parallel()
	registry, meter := export(t)
	server := newServer(t, meter)
	for range 3 {
		request := httptest.NewRequest(http.MethodPost, "/query", strings.NewReader(`{"query": "{ users(first: 45) { name } }"}`))
		request.Header.Set("Content-Type", "application/json")
		server.ServeHTTP(httptest.NewRecorder(), request)
	}
	rows, seen := documentedMetrics(t), 0
	for _, family := range gather(t, registry) {
		if !strings.HasPrefix(family.GetName(), "ratelimit_") {
			continue
		}
		for _, series := range family.GetMetric() {
			for _, label := range series.GetLabel() {
				if !strings.HasPrefix(label.GetName(), "otel_scope_") {
					require.Contains(t, rows[family.GetName()].labels, label.GetName(), family.GetName())
					seen++
				}
			}
		}
	}
	require.Greater(t, seen, 20)
}

// queries returns the blocks of the page in PromQL.
func queries(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, block := range regexp.MustCompile("(?s)```promql\n(.*?)```").FindAllStringSubmatch(page(t), -1) {
		found = append(found, strings.TrimSpace(block[1]))
	}
	require.Len(t, found, 10)
	return found
}

func TestTheQueriesOfThePageAskForMetricsAndLabelsThatAreThere(t *testing.T) {
	t.Parallel()
	rows := documentedMetrics(t)
	all := []string{"le"}
	for _, d := range rows {
		all = append(all, d.labels...)
	}
	for _, query := range queries(t) {
		plain := regexp.MustCompile(`"[^"]*"`).ReplaceAllString(query, "")
		require.Contains(t, plain, "ratelimit_")
		for _, name := range regexp.MustCompile(`\b(?:ratelimit|graphql)_\w+`).FindAllString(plain, -1) {
			if !slices.Contains(all, name) {
				series := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
				require.Contains(t, rows, series, query)
				require.Equal(t, series != name, rows[series].kind == "histogram", query)
			}
		}
		for _, by := range regexp.MustCompile(`by \(([^)]*)\)`).FindAllStringSubmatch(plain, -1) {
			for _, label := range strings.Split(by[1], ",") {
				require.Contains(t, all, strings.TrimSpace(label), query)
			}
		}
	}
}

func TestPrometheusReadsTheQueriesOfThePage(t *testing.T) {
	t.Parallel()
	promql := parser.NewParser(parser.Options{})
	for _, query := range queries(t) {
		_, err := promql.ParseExpr(query)
		require.NoError(t, err, query)
	}
	_, err := promql.ParseExpr("topk(10, sum by ratelimit_tenant (x))")
	require.Error(t, err, "a query that is wrong")
}

// newServer returns a server whose tenant can pay for two queries.
func newServer(t *testing.T, meter metric.MeterProvider) http.Handler {
	t.Helper()
	return newServerBehind(t, meter, 2)
}

// throttled runs a throttle until the test ends.
func throttled(t *testing.T, shedding *throttle.Throttle) {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- shedding.Run(context.WithoutCancel(t.Context())) }()
	t.Cleanup(func() {
		require.NoError(t, shedding.Shutdown(context.Background()))
		require.NoError(t, <-ended)
	})
}

// newServerBehind is one whose front door lets so many requests a minute in from an address.
func newServerBehind(t *testing.T, meter metric.MeterProvider, arrivals int64) http.Handler {
	t.Helper()
	limits, err := tiers.Compile(tiers.Policy{Default: "free", Tiers: map[string]tiers.Tier{
		"free": {Limits: map[string]*tiers.Limit{"minute": {Capacity: 100, Per: tiers.Minute}}},
	}})
	require.NoError(t, err)
	srv := handler.New(testserver.NewExecutableSchema(testserver.Config{Resolvers: &testserver.Resolver{}}))
	srv.AddTransport(transport.POST{})
	door, err := edge.New(edge.Config{
		Address: edge.AddressConfig{Limits: []bucket.Limit{{Name: "minute", Unit: bucket.Requests, Capacity: arrivals, Period: time.Minute}}},
		Observe: edge.ObserveConfig{MeterProvider: meter, Observer: event.NewChannel(10)},
	})
	require.NoError(t, err)
	srv.Use(door)
	follower, err := policy.Follow(t.Context(), noFeed{}, policy.Config{First: limits, Observe: policy.ObserveConfig{
		Name: "main", MeterProvider: meter, Observer: event.NewChannel(10),
	}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = follower.Close() })
	tenants, err := directory.Open(t.Context(), follower, directory.NewMemory(), directory.Config{
		Observe: directory.ObserveConfig{MeterProvider: meter, Logger: slog.New(slog.DiscardHandler)},
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = tenants.Close() })
	placed, err := placement.New(t.Context(), placement.Config{
		Open: func(context.Context, placement.Member) (placement.Opened, error) {
			return placement.Opened{Backend: bucket.NewMemory(bucket.MemoryConfig{})}, nil
		},
		Observe: placement.ObserveConfig{MeterProvider: meter, Logger: slog.New(slog.DiscardHandler)},
	}, &placement.Map{Generation: 1, Candidates: 1, Stores: []placement.Member{{Name: "north"}}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = placed.Close() })
	easing := tiers.NewModeSwitch(tenants)
	options := &redis.Options{Addr: "127.0.0.1:1"}
	redisclient.Bound(options)
	nowhere := redis.NewClient(options)
	t.Cleanup(func() { _ = nowhere.Close() })
	// A store that leases has metrics of that.
	leasing, err := bucket.NewRedis(bucket.RedisConfig{Client: nowhere})
	require.NoError(t, err)
	reporter, err := report.Start(report.Config{
		Place: report.Place{Client: nowhere}, MeterProvider: meter, Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = reporter.Close() })
	shedding, err := throttle.New(throttle.Config{
		Centre: throttle.NewMemory(nil), MeterProvider: meter, Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	throttled(t, shedding)
	switches, err := redisswitch.Follow(redisswitch.FollowerConfig{
		Config: redisswitch.Config{Client: nowhere}, Switch: easing, MeterProvider: meter, Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = switches.Close() })
	streams, err := stream.Start(stream.Config{Sink: noSink{}, MeterProvider: meter, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { _ = streams.Close(t.Context()) })
	srv.Use(ratelimit.New(ratelimit.Config{
		Store: bucket.NewMemory(bucket.MemoryConfig{}), Stores: map[string]bucket.Store{"leasing": leasing}, Policy: easing, Subject: ratelimit.ByPeer(ratelimit.PeerConfig{}),
		Throttle: ratelimit.ThrottleConfig{Throttle: shedding},
		Observe: ratelimit.ObserveConfig{
			MeterProvider: meter,
			TopTenants:    10,
			Operations:    []string{"Users"},
			Observer:      event.NewChannel(10),
		},
	}))
	return door.Handler(ratelimit.Handler(srv))
}

// noSink is a broker that acknowledges everything.
type noSink struct{}

func (noSink) Send(context.Context, []stream.Envelope) []error { return nil }

// noFeed is a feed that is away.
type noFeed struct{}

func (noFeed) Newest(context.Context, policy.Head) (*policy.Revision, error) {
	return nil, policy.ErrEmpty
}

func (noFeed) Hints(context.Context, func()) error { return policy.ErrNoHints }

// export returns a provider of meters and what Prometheus scrapes of it.
func export(t *testing.T) (*prometheus.Registry, *sdk.MeterProvider) {
	t.Helper()
	registry := prometheus.NewRegistry()
	reader, err := exporter.New(exporter.WithRegisterer(registry))
	require.NoError(t, err)
	meter := sdk.NewMeterProvider(sdk.WithReader(reader))
	t.Cleanup(func() { _ = meter.Shutdown(context.Background()) })
	return registry, meter
}

func gather(t *testing.T, registry *prometheus.Registry) []*dto.MetricFamily {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	return families
}
