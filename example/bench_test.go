//go:build unix

package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/example/internal/codehost"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// requestsPerTurn is how many requests a server answers before the other has its turn: some hundredths
// of a second of work.
const requestsPerTurn = 300

// BenchmarkActualCost says how much of its throughput the example loses by pricing responses as they
// leave. It is measured in processor time, garbage collection included, with turns of a server that does
// and one that does not:
//
//	go test -run '^$' -bench ActualCost -benchtime 21x ./example
//
// An iteration is a turn of each. The ratio is formed within an iteration, and the figures are medians.
func BenchmarkActualCost(b *testing.B) {
	with, without := unlimitedExample(b, true), unlimitedExample(b, false)
	queries := exampleQueries(b)
	var all []string
	for _, query := range queries {
		all = append(all, query.body)
	}
	for _, query := range append(queries, exampleQuery{"all", ""}) {
		b.Run(query.name, func(b *testing.B) {
			bodies := []string{query.body}
			if query.body == "" {
				bodies = all
			}
			turn(b, with, bodies)
			turn(b, without, bodies)
			var spentWith, spentWithout, lost []float64
			for round := 0; b.Loop(); round++ {
				var x, y float64
				if round%2 == 0 {
					x = turn(b, with, bodies)
					y = turn(b, without, bodies)
				} else {
					y = turn(b, without, bodies)
					x = turn(b, with, bodies)
				}
				spentWith, spentWithout = append(spentWith, x), append(spentWithout, y)
				lost = append(lost, 100*(1-y/x))
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(median(spentWithout), "µs-without")
			b.ReportMetric(median(spentWith), "µs-with")
			b.ReportMetric(median(lost), "%-lost")
		})
	}
}

// unlimitedExample returns the example with limits that nothing reaches. It adds up actual costs if it has to charge what
// they exceed the estimate by, which they never do here.
func unlimitedExample(b *testing.B, actualCost bool) http.Handler {
	b.Helper()
	snapshot, err := tiers.Compile(tiers.Policy{
		Default: "all",
		Tiers: map[string]tiers.Tier{
			"all": {Limits: map[string]*tiers.Limit{"second": {Capacity: 1 << 40, Per: tiers.Second}}},
		},
	})
	require.NoError(b, err)
	limits := &limiter{extension: ratelimit.New(ratelimit.Config{
		Store: bucket.NewMemory(bucket.MemoryConfig{}), Policy: snapshot, Observe: ratelimit.ObserveConfig{Logger: slog.New(slog.DiscardHandler)},
		Subject: func(context.Context, *ratelimit.Request) (ratelimit.Subject, error) {
			return ratelimit.Subject{Tenant: "bench"}, nil
		},
		Settlement: ratelimit.SettlementConfig{ChargeExcess: actualCost},
	})}
	require.NoError(b, limits.open(options{}, slog.New(slog.DiscardHandler)))
	return newMux(newAPI(codehost.NewStore(codehost.Config{}), limits), limits)
}

// exampleQuery is a query of the example, as the body of a request.
type exampleQuery struct{ name, body string }

// exampleQueries returns the queries below operations.
func exampleQueries(b *testing.B) []exampleQuery {
	b.Helper()
	var document strings.Builder
	for _, file := range []string{"operations/browse.graphql", "operations/issues.graphql"} {
		text, err := os.ReadFile(file)
		require.NoError(b, err)
		document.Write(text)
	}
	queries := []exampleQuery{{"Repositories", `{}`}, {"Search", `{"text": "cache", "first": 25}`}, {"Issue", `{"id": "I_1"}`}}
	for i, query := range queries {
		body, err := json.Marshal(map[string]any{
			"query": document.String(), "operationName": query.name, "variables": json.RawMessage(query.body),
		})
		require.NoError(b, err)
		queries[i].body = string(body)
	}
	return queries
}

// turn answers requests and returns the processor time that one took, in microseconds.
func turn(b *testing.B, server http.Handler, bodies []string) float64 {
	b.Helper()
	// The garbage of one is not the work of the other.
	runtime.GC()
	start := processorTime(b)
	for i := range requestsPerTurn {
		r := httptest.NewRequest(http.MethodPost, "/query", strings.NewReader(bodies[i%len(bodies)]))
		r.Header.Set("Content-Type", "application/json")
		recorder := httptest.NewRecorder()
		server.ServeHTTP(recorder, r)
		if recorder.Code != http.StatusOK || strings.Contains(recorder.Body.String(), `"errors"`) {
			b.Fatal(recorder.Body.String())
		}
	}
	return float64((processorTime(b) - start).Nanoseconds()) / float64(time.Microsecond) / requestsPerTurn
}

// processorTime is what this process has spent on all processors, in user and in kernel mode.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
