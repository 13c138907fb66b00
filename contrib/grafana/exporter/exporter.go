// Package exporter serves the metrics of a program to a Prometheus. Tests link it into the example, which has no exporter itself: the example is in
// the module of the library, whose users would have the versions of the exporter in their module graph.
package exporter

import (
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	sdk "go.opentelemetry.io/otel/sdk/metric"
)

// Serve makes a provider of meters the global one, and serves what it collects at a host and port, until the program ends. The error is that of
// an address where nothing can listen.
func Serve(address string) error {
	reader, err := exporter.New(exporter.WithoutScopeInfo())
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address) //nolint:noctx // it listens until the program ends
	if err != nil {
		return err
	}
	otel.SetMeterProvider(sdk.NewMeterProvider(sdk.WithReader(reader)))
	server := &http.Server{Handler: promhttp.Handler(), ReadHeaderTimeout: time.Second}
	go func() { _ = server.Serve(listener) }()
	return nil
}
