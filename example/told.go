package main

import (
	"log/slog"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/observe/report"
	"github.com/gqlgen-ratelimit/ratelimit/usage"
	"github.com/gqlgen-ratelimit/ratelimit/usage/redisusage"
)

// observer returns who is told of decisions, policies and mode switches: the log, and with a Redis what this process writes into it,
// which is what it reports, and refusals by the hour.
func (l *limiter) observer(addresses []string, client redis.UniversalClient, logger *slog.Logger) (event.Observer, error) {
	log := event.NewLogger(logger)
	if client == nil {
		return log, nil
	}
	reporter, err := l.report(addresses, logger)
	if err != nil {
		return nil, err
	}
	refusals, err := l.refusals(client, logger)
	if err != nil {
		return nil, err
	}
	return event.All(reporter, refusals, log), nil
}

// report returns who writes refusals, other events and the busiest tenants into the Redis, where gqlratelimitd and the command read them. Its
// client is its own, so that no budget waits behind what it writes.
func (l *limiter) report(addresses []string, logger *slog.Logger) (*report.Reporter, error) {
	client, err := l.connect(addresses)
	if err != nil {
		return nil, err
	}
	reporter, err := report.Start(report.Config{
		Place: report.Place{Client: client, Namespace: namespace}, Instance: thisProcess, Logger: logger,
	})
	if err != nil {
		return nil, err
	}
	l.close = append(l.close, reporter.Close)
	return reporter, nil
}

// refusals returns who counts refusals by the hour, for gqlratelimitd.
func (l *limiter) refusals(client redis.UniversalClient, logger *slog.Logger) (*usage.Refusals, error) {
	refusals := new(usage.Refusals)
	writer, err := redisusage.Start(redisusage.WriterConfig{
		Config: redisusage.Config{Client: client, Namespace: namespace}, Refusals: refusals, Logger: logger,
	})
	if err != nil {
		return nil, err
	}
	l.close = append(l.close, writer.Close)
	return refusals, nil
}
