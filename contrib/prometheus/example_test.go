package prometheus_test

import (
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	sdk "go.opentelemetry.io/otel/sdk/metric"

	"github.com/gqlgen-ratelimit/ratelimit"
)

// Metrics at /metrics: docs/reference/metrics.md.
func Example() {
	serve := func(cfg ratelimit.Config) error {
		reader, err := exporter.New(exporter.WithoutScopeInfo()) // go.opentelemetry.io/otel/exporters/prometheus
		if err != nil {
			return err
		}
		meters := sdk.NewMeterProvider(sdk.WithReader(reader)) // go.opentelemetry.io/otel/sdk/metric
		cfg.Observe.MeterProvider = meters
		http.Handle("/metrics", promhttp.Handler()) // github.com/prometheus/client_golang/prometheus/promhttp
		return nil
	}
	fmt.Println(serve(ratelimit.Config{}))
	// Output: <nil>
}
