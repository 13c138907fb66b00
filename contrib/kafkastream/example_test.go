package kafkastream_test

import (
	"context"
	"crypto/tls"
	"log"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/gqlgen-ratelimit/ratelimit/contrib/kafkastream"
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
