package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/event/redisstream"
	"github.com/gqlgen-ratelimit/ratelimit/event/stream"
	"github.com/gqlgen-ratelimit/ratelimit/internal/freeze"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// refusingPolicy refuses whoever has asked once.
const refusingPolicy = `
version: 1
default: bench
tiers:
  bench:
    limits:
      day: {unit: requests, capacity: 1, per: day}
`

// The rows of refusals that are told.
const (
	rowUntold = iota
	rowTold
	rowStored
	rowFrozen
)

var errAdmitted = errors.New("the server has admitted what it was to refuse")

// events compares a server that refuses everything with one that tells each refusal, to an observer that does nothing, to a Redis stream, and to one
// that is frozen.
func events(ctx context.Context, e effort) (_ *findings, err error) {
	working, err := startRedis() //nolint:contextcheck // a start has a deadline of its own
	if err != nil {
		return nil, err
	}
	defer working.close()
	frozen, err := startRedis() //nolint:contextcheck // a start has a deadline of its own
	if err != nil {
		return nil, err
	}
	defer frozen.close()
	if err := freeze.Process(frozen.Process()); err != nil {
		return nil, err
	}
	var contenders []contender
	for _, row := range [...]struct {
		name, address string
		observer      event.Observer
		told          int
	}{
		rowUntold: {"a refusal that is told to nobody", "", nil, ratelimit.None},
		rowTold:   {"told to an observer that does nothing", "", event.Func(func(context.Context, event.Event) {}), 1e9},
		rowStored: {"**to a Redis stream**", working.Addr, nil, 1e9},
		rowFrozen: {"**to a Redis stream that is frozen**", frozen.Addr, nil, 1e9},
	} {
		observer := row.observer
		if row.address != "" {
			queue, end, err := queueTo(row.address) //nolint:contextcheck // a queue has a goroutine of its own, which Close ends
			if err != nil {
				return nil, err
			}
			defer end(ctx)
			observer = queue
		}
		server, err := refusingServer(observer, row.told)
		if err != nil {
			return nil, err
		}
		contenders = append(contenders, collecting(e, row.name, refuse(ctx, server)))
	}
	outcomes, err := contest(ctx, e, contenders)
	if err != nil {
		return nil, err
	}
	t := &table{
		title: "Refusals that are told",
		note: "One caller, memory store, one limit: each request is refused. Processor time has that of the queue, which writes JSON and sends batches; " +
			"on the clock a caller sees what is not done beside. What the queue has no room for it drops.",
		header: []string{"", "on the clock", "added", "× told to nobody", "processor", "added", "× told to nobody", "allocations"},
	}
	none := &outcomes[rowUntold]
	for i := range outcomes {
		o := &outcomes[i]
		t.add(o.name, duration(o.median(elapsed)), micros(o.difference(none, elapsed))+" µs", digits(o.ratio(none, elapsed)),
			duration(o.median(processor)), micros(o.difference(none, processor))+" µs", digits(o.ratio(none, processor)), digits(o.median(allocations)))
	}
	return &findings{tables: []*table{t}, aims: []aim{
		atMost("a refusal on the clock, broker frozen ÷ not frozen", 1.05, outcomes[rowFrozen].ratio(&outcomes[rowStored], elapsed), times),
	}}, nil
}

// queueTo returns a queue of events to the Redis at an address, and what ends it.
func queueTo(address string) (*stream.Queue, func(context.Context), error) {
	client, err := redisclient.Open(address, redisclient.Config{})
	if err != nil {
		return nil, nil, err
	}
	sink, err := redisstream.New(redisstream.Config{Client: client})
	if err != nil {
		return nil, nil, errors.Join(err, client.Close())
	}
	queue, err := stream.Start(stream.Config{Sink: sink, Timeout: time.Second, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, nil, errors.Join(err, client.Close())
	}
	return queue, func(ctx context.Context) {
		// What is left has nobody to go to.
		ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		_ = queue.Close(ctx)
		_ = client.Close()
	}, nil
}

// refusingServer returns a server that refuses everything but the first request.
func refusingServer(observer event.Observer, told int) (http.Handler, error) {
	policy, err := tiers.Load([]byte(refusingPolicy), 1)
	if err != nil {
		return nil, err
	}
	server := plainServer()
	server.Use(ratelimit.New(ratelimit.Config{
		Store: bucket.NewMemory(bucket.MemoryConfig{}), Policy: policy,
		Subject: ratelimit.ByHeader("X-Tenant", func(_ context.Context, value string) (ratelimit.Subject, bool) {
			return ratelimit.Subject{Tenant: value}, true
		}),
		Observe: ratelimit.ObserveConfig{
			Logger: slog.New(slog.DiscardHandler), Observer: observer, Refusals: told, TenantRefusals: ratelimit.None, RepeatedRefusals: ratelimit.None,
		},
	}))
	return ratelimit.Handler(server), nil
}

// refuse returns a function that sends one request, which is refused.
func refuse(ctx context.Context, server http.Handler) func() error {
	// The first one has what there is.
	first := answer(ctx, server, requestBody, "bench")
	return func() error {
		recorder := answer(ctx, server, requestBody, "bench")
		if recorder.Code != http.StatusTooManyRequests || !bytes.Contains(recorder.Body.Bytes(), []byte(`"RATE_LIMITED"`)) || first.Code != http.StatusOK {
			return fmt.Errorf("%w: %d", errAdmitted, recorder.Code)
		}
		return nil
	}
}
