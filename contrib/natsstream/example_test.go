package natsstream_test

import (
	"context"
	"log"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/contrib/natsstream"
	"github.com/gqlgen-ratelimit/ratelimit/event/redisstream"
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

// What the control plane announces in a Redis is brought on to a NATS, until the program ends.
func Example_bridge() {
	bridge := func(ctx context.Context, client redis.UniversalClient, conn *nats.Conn) error {
		sink, err := natsstream.New(natsstream.Config{Conn: conn})
		if err != nil {
			return err
		}
		return redisstream.Forward(ctx, redisstream.ForwardConfig{Client: client, Topic: "ratelimit.policy.updates", Sink: sink})
	}
	conn, err := nats.Connect("tls://nats-1.internal:4222", nats.MaxReconnects(-1))
	if err != nil {
		log.Print(err)
		return
	}
	defer conn.Close()
	client := redis.NewClient(&redis.Options{Addr: "redis.internal:6379"})
	defer func() { _ = client.Close() }()
	if err := bridge(context.Background(), client, conn); err != nil {
		log.Print(err)
	}
}
