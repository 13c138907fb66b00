package main

import (
	"context"
	"fmt"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/collect"
	"github.com/gqlgen-ratelimit/ratelimit/usage/redisusage"
)

// usageOptions say for how long usage is kept.
type usageOptions struct {
	// Days is of how many days there are hours. Zero is the default.
	Days int `yaml:"days"`
}

// check returns what is wrong.
func (u *usageOptions) check() error {
	if u.Days == 0 {
		return nil
	}
	if err := collect.CheckHourDays(u.Days); err != nil {
		return fmt.Errorf("usage: %w", err)
	}
	return nil
}

// countsPatience is for how long one call about counts may take: nobody waits for it.
const countsPatience = 2 * time.Second

// openCollector makes what brings usage from the Redis of the instances into the database.
func (d *daemon) openCollector(context.Context) (err error) {
	if d.redis == nil {
		return nil
	}
	if d.counts, err = bucket.NewRedis(bucket.RedisConfig{Client: d.redis, Namespace: d.options.Namespace, Timeout: countsPatience}); err != nil {
		return err
	}
	reader, err := redisusage.NewReader(redisusage.Config{Client: d.redis, Namespace: d.options.Namespace}, d.counts)
	if err != nil {
		return err
	}
	cfg := collect.Config{
		Store: d.db, Source: reader, HourDays: d.options.Usage.Days, Logger: d.log, MeterProvider: d.metrics, Now: d.options.now,
	}
	if d.options.collect != nil {
		d.options.collect(&cfg)
	}
	d.collector, err = collect.New(cfg) //nolint:contextcheck // That its counters are 0 is of no request.
	return err
}
