package main

import (
	"context"
	"fmt"

	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/event/redisstream"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/announce"
)

// openAnnouncer makes what tells changes as events in a stream of a Redis, which may be away. Its client is its own: the relay waits for none of its
// batches.
func (d *daemon) openAnnouncer(context.Context) (err error) {
	url := d.options.streamURL()
	if url == "" {
		return nil
	}
	if d.stream, err = redisclient.Open(url, redisclient.Config{}); err != nil {
		return fmt.Errorf("-stream: %w", err)
	}
	sink, err := redisstream.New(redisstream.Config{Client: d.stream, Namespace: d.options.Namespace})
	if err != nil {
		return err
	}
	//nolint:contextcheck // That its counters are 0 is of no request.
	d.announcer, err = announce.New(announce.Config{
		Store: d.db, Sink: sink, Source: announce.SourceOf(d.options.Namespace), Logger: d.log, MeterProvider: d.metrics, Now: d.options.now,
	})
	return err
}
