package main

import (
	"context"
	"log/slog"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/throttle"
	"github.com/gqlgen-ratelimit/ratelimit/throttle/redisthrottle"
)

// shedding returns what sheds load while the servers have more to do than they can, nil if the flags do not ask for it. The servers
// on one Redis shed one share; without it this process sheds its own.
func shedding(opts options, client redis.UniversalClient, logger *slog.Logger) (*throttle.Throttle, error) {
	if opts.latency == 0 {
		return nil, nil
	}
	var centre throttle.Centre = throttle.NewMemory(nil)
	if client != nil {
		shared, err := redisthrottle.New(redisthrottle.Config{Client: client, Namespace: namespace})
		if err != nil {
			return nil, err
		}
		centre = shared
	}
	return throttle.New(throttle.Config{Centre: centre, Latency: opts.latency, Logger: logger})
}

// shed watches the load until endShedding.
func (l *limiter) shed(ctx context.Context) {
	if l.throttle != nil {
		// It runs once.
		go func() { _ = l.throttle.Run(ctx) }()
	}
}

// endShedding waits until nothing is shed any more.
func (l *limiter) endShedding(ctx context.Context) error {
	if l.throttle == nil {
		return nil
	}
	return l.throttle.Shutdown(ctx)
}
