package main

import (
	"context"
	"fmt"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/collect"
	"github.com/gqlgen-ratelimit/ratelimit/usage/redisusage"
)

// usageOptions say for how long usage is kept. Zero is the default of each.
type usageOptions struct {
	// MinuteDays and HourDays are of how many whole days there are minutes and hours, and DayMonths of how many months there are days and months.
	MinuteDays int `yaml:"minuteDays"`
	HourDays   int `yaml:"hourDays"`
	DayMonths  int `yaml:"dayMonths"`
}

// keep is for how long usage is kept.
func (u *usageOptions) keep() collect.Retention {
	return collect.Retention{MinuteDays: u.MinuteDays, HourDays: u.HourDays, DayMonths: u.DayMonths}
}

// check returns what is wrong.
func (u *usageOptions) check() error {
	keep := u.keep()
	if err := keep.Complete(); err != nil {
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
		Store: d.db, Source: reader, Keep: d.options.Usage.keep(), Logger: d.log, MeterProvider: d.metrics, Now: d.options.now,
	}
	if d.options.collect != nil {
		d.options.collect(&cfg)
	}
	d.collector, err = collect.New(cfg) //nolint:contextcheck // That its counters are 0 is of no request.
	return err
}
