package natsstream_test

import (
	"context"
	"log"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/gqlgen-ratelimit/ratelimit/contrib/natsstream"
	"github.com/gqlgen-ratelimit/ratelimit/event/stream"
)

// Events go to a NATS. The queue is the observer of the server, and is closed after it.
func Example() {
	run := func(serve func(*stream.Queue)) error {
		conn, err := nats.Connect("tls://nats-1.internal:4222", nats.MaxReconnects(-1), nats.RetryOnFailedConnect(true), nats.UserCredentials("shop.creds"))
		if err != nil {
			return err
		}
		defer conn.Close()
		sink, err := natsstream.New(natsstream.Config{Conn: conn})
		if err != nil {
			return err
		}
		events, err := stream.Start(stream.Config{Sink: sink, Namespace: "shop"})
		if err != nil {
			return err
		}
		serve(events)

		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		return events.Close(ctx)
	}
	if err := run(func(*stream.Queue) {}); err != nil {
		log.Print(err)
	}
}
