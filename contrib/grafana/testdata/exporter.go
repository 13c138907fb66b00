// This file is laid over the example when tests build it.
package main

import (
	"log"
	"os"

	"github.com/gqlgen-ratelimit/ratelimit/contrib/grafana/exporter"
)

func init() {
	if err := exporter.Serve(os.Getenv("METRICS_ADDRESS")); err != nil {
		log.Fatal(err)
	}
}
