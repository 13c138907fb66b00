package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/digest"
	"github.com/gqlgen-ratelimit/ratelimit/digest/redisdigest"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/event/redisstream"
	"github.com/gqlgen-ratelimit/ratelimit/event/stream"
	"github.com/gqlgen-ratelimit/ratelimit/usage"
	"github.com/gqlgen-ratelimit/ratelimit/usage/redisusage"
)

// sendTimeout is for how long a process that ends sends events that wait. What is left then is lost: nobody waits for a stream.
const sendTimeout = 2 * time.Second

// observer returns who is told of decisions, policies and mode switches: the log, and with a Redis what this process writes into it,
// which is the digest, the usage and the streams.
func (l *limiter) observer(addresses []string, client redis.UniversalClient, logger *slog.Logger) (event.Observer, error) {
	log := event.NewLogger(logger)
	if client == nil {
		return log, nil
	}
	digests, err := l.digest(client, logger)
	if err != nil {
		return nil, err
	}
	recorder, err := l.usage(client, logger)
	if err != nil {
		return nil, err
	}
	events, err := l.stream(addresses, logger)
	if err != nil {
		return nil, err
	}
	return event.All(digests, recorder, events, log), nil
}

// digest returns who sums up decisions for gqlratelimitd and the command: a refusal is found by its id, and the busiest tenants are.
func (l *limiter) digest(client redis.UniversalClient, logger *slog.Logger) (*digest.Collector, error) {
	digests, err := digest.New(digest.Config{})
	if err != nil {
		return nil, err
	}
	writer, err := redisdigest.Start(redisdigest.WriterConfig{
		Config: redisdigest.Config{Client: client, Namespace: namespace}, Instance: thisProcess, Collector: digests, Logger: logger,
	})
	if err != nil {
		return nil, err
	}
	l.close = append(l.close, writer.Close)
	return digests, nil
}

// usage returns who counts decisions, and notes whose usage was counted, for whoever collects it from the Redis.
func (l *limiter) usage(client redis.UniversalClient, logger *slog.Logger) (*usage.Recorder, error) {
	recorder, err := usage.NewRecorder(usage.RecorderConfig{})
	if err != nil {
		return nil, err
	}
	writer, err := redisusage.Start(redisusage.WriterConfig{
		Config: redisusage.Config{Client: client, Namespace: namespace}, Instance: thisProcess, Recorder: recorder, Logger: logger,
	})
	if err != nil {
		return nil, err
	}
	l.close = append(l.close, writer.Close)
	return recorder, nil
}

// stream returns who brings refusals, thresholds and what becomes of policies to streams of the Redis, where gqlratelimitd reads what it
// tells webhooks. Its client is its own, so that no budget waits behind a batch.
func (l *limiter) stream(addresses []string, logger *slog.Logger) (*stream.Queue, error) {
	client, err := l.connect(addresses)
	if err != nil {
		return nil, err
	}
	sink, err := redisstream.New(redisstream.Config{Client: client, Namespace: namespace})
	if err != nil {
		return nil, err
	}
	events, err := stream.Start(stream.Config{Sink: sink, Namespace: namespace, Instance: thisProcess, Logger: logger})
	if err != nil {
		return nil, err
	}
	l.close = append(l.close, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), sendTimeout)
		defer cancel()
		if err := events.Close(ctx); err != nil {
			logger.Warn("streams: not everything was sent", "error", err)
		}
		return nil
	})
	return events, nil
}
