package main

import (
	"log/slog"

	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/observe/report"
)

// observer is told of decisions, policies and mode switches. It writes them to the log and, if there is a Redis, what this
// process reports into that, where gqlratelimitd and the command read it. Its client is its own, so that no budget waits
// behind what it writes.
func (l *limiter) observer(addresses []string, logger *slog.Logger) (event.Observer, error) {
	log := event.NewLogger(logger)
	client, err := l.connect(addresses)
	if err != nil || client == nil {
		return log, err
	}
	reporter, err := report.Start(report.Config{
		Place: report.Place{Client: client, Namespace: namespace}, Instance: thisProcess, Logger: logger,
	})
	if err != nil {
		return nil, err
	}
	l.close = append(l.close, reporter.Close)
	return event.All(reporter, log), nil
}
