package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/99designs/gqlgen/graphql/handler"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/edge"
	"github.com/gqlgen-ratelimit/ratelimit/validation"
)

// frontDoor shows what the front door takes where it is, and that it takes nothing where it is not: a server, the same with
// the limiter, and both behind the door, in turns within one process.
func frontDoor(ctx context.Context, e effort) (*findings, error) {
	e.turn = e.call
	before := loadAverage()
	kept, err := doorTable(ctx, e, "A document that is in the cache", func(int) string { return requestText })
	if err != nil {
		return nil, err
	}
	fresh, err := doorTable(ctx, e, "A document that nobody has sent before", func(n int) string {
		return "query N" + strconv.Itoa(n) + strings.TrimPrefix(requestText, "query")
	})
	if err != nil {
		return nil, err
	}
	kept.note = fmt.Sprintf("%d rounds, in which each has its turn. Load of the machine: %s before, %s after.", e.rounds, before, loadAverage())
	return &findings{tables: []*table{kept, fresh}}, nil
}

// doorTable compares servers that are asked for the nth time for a document.
func doorTable(ctx context.Context, e effort, title string, document func(n int) string) (*table, error) {
	var contenders []contender
	for _, row := range []struct {
		name          string
		limited, door bool
	}{{"the server", false, false}, {"with the limiter", true, false}, {"the same behind the door", true, true}} {
		server, err := doorServer(row.limited, row.door)
		if err != nil {
			return nil, err
		}
		n, tells := 0, tellsNothing
		if row.limited {
			tells = tellsOne
		}
		contenders = append(contenders, alone(e, row.name, func() error {
			n++
			body := []byte(`{"query":"` + document(n) + `","variables":{"first":10}}`)
			return serve(ctx, server, body, tells)()
		}))
	}
	outcomes, err := contest(ctx, e, contenders)
	if err != nil {
		return nil, err
	}
	t := &table{title: title, header: []string{"", "processor, median", "quartiles", "more than the row above, median", "quartiles", "allocations"}}
	for i := range outcomes {
		o, more, quarters := &outcomes[i], "–", "–"
		if i > 0 {
			above := &outcomes[i-1]
			low, high := quartiles(o.differences(above, processor))
			more, quarters = micros(o.difference(above, processor))+" µs", micros(low)+" to "+micros(high)+" µs"
		}
		low, high := quartiles(o.values(processor))
		t.add(o.name, duration(o.median(processor)), micros(low)+" to "+micros(high)+" µs", more, quarters, digits(o.median(allocations)))
	}
	return t, nil
}

// doorServer returns a server of the kind. No limit refuses what a benchmark asks for.
func doorServer(limited, behind bool) (http.Handler, error) {
	server := plainServer()
	server.SetValidationRulesFn(validation.Rules)
	if !limited {
		return server, nil
	}
	limiter, err := roomyLimiter()
	if err != nil {
		return nil, err
	}
	if !behind {
		server.Use(limiter)
		return ratelimit.Handler(server), nil
	}
	return behindDoor(server, limiter)
}

// behindDoor puts the door before the limiter, with limits of each kind.
func behindDoor(server *handler.Server, limiter *ratelimit.Extension) (http.Handler, error) {
	const plenty = 1_000_000_000
	limits := []bucket.Limit{
		{Name: "minute", Unit: bucket.Requests, Capacity: plenty, Period: time.Minute},
		{Name: "bytes", Unit: edge.Bytes, Capacity: plenty << 10, Period: time.Minute},
	}
	documents := edge.NewDocuments(64 << 20)
	door, err := edge.New(edge.Config{
		Address:   edge.AddressConfig{Limits: limits},
		Key:       edge.KeyConfig{Header: "X-Tenant", Limits: limits},
		Documents: edge.DocumentConfig{Cache: documents, Limiter: limiter},
		Server:    &http.Server{MaxHeaderBytes: 16 << 10, ReadHeaderTimeout: time.Second},
		Observe:   edge.ObserveConfig{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))},
	})
	if err != nil {
		return nil, err
	}
	server.SetQueryCache(documents)
	server.Use(door)
	server.Use(limiter)
	return door.Handler(ratelimit.Handler(server)), nil
}

// loadAverage is how many processes of the machine ran or waited to run in the last minute.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "not known"
	}
	first, _, _ := bytes.Cut(text, []byte(" "))
	return string(first)
}

// quartiles returns those of values.
func quartiles(values []float64) (low, high float64) {
	slices.Sort(values)
	return quantile(values, 0.25), quantile(values, 0.75)
}
