package kafkastream_test

import (
	"context"
	"crypto/tls"
	"log"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/gqlgen-ratelimit/ratelimit/contrib/kafkastream"
	"github.com/gqlgen-ratelimit/ratelimit/event/redisstream"
	"github.com/gqlgen-ratelimit/ratelimit/event/stream"
)

// Events go to a Kafka behind TLS. The queue is the observer of the server, and is closed after it, and the sink after the queue.
func Example() {
	run := func(serve func(*stream.Queue)) error {
		sink, err := kafkastream.New(kafkastream.Config{
			Brokers: []string{"kafka-1.internal:9093", "kafka-2.internal:9093"},
			Options: []kgo.Opt{kgo.ClientID("shop"), kgo.DialTLSConfig(&tls.Config{MinVersion: tls.VersionTLS12})},
		})
		if err != nil {
			return err
		}
		defer func() { _ = sink.Close() }()
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
	// Output:
}

// What the control plane announces in a Redis is brought on to a Kafka, until the program ends.
func Example_bridge() {
	bridge := func(ctx context.Context, client redis.UniversalClient) error {
		sink, err := kafkastream.New(kafkastream.Config{Brokers: []string{"kafka-1.internal:9093"}})
		if err != nil {
			return err
		}
		defer func() { _ = sink.Close() }()
		return redisstream.Forward(ctx, redisstream.ForwardConfig{Client: client, Topic: "ratelimit.policy.updates", Sink: sink})
	}
	client := redis.NewClient(&redis.Options{Addr: "redis.internal:6379"})
	defer func() { _ = client.Close() }()
	ctx, end := context.WithCancel(context.Background())
	end()
	if err := bridge(ctx, client); err != nil {
		log.Print(err)
	}
	// Output:
}
