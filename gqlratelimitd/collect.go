package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/collect"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/freeze"
	"github.com/gqlgen-ratelimit/ratelimit/usage/redisusage"
)

// usageOptions say for how long usage is kept, and which billing periods are frozen. Zero is the default of each.
type usageOptions struct {
	// MinuteDays and HourDays are of how many whole days there are minutes and hours, and DayMonths of how many months there are days and months.
	MinuteDays int `yaml:"minuteDays"`
	HourDays   int `yaml:"hourDays"`
	DayMonths  int `yaml:"dayMonths"`
	// Freeze is how long billing periods are that are frozen by themselves: monthly, daily or off, which is the default. FreezeDelay is how long after its end
	// one is frozen.
	Freeze      freeze.Every  `yaml:"freeze"`
	FreezeDelay time.Duration `yaml:"freezeDelay"`
}

// keep is for how long usage is kept.
func (u *usageOptions) keep() collect.Retention {
	return collect.Retention{MinuteDays: u.MinuteDays, HourDays: u.HourDays, DayMonths: u.DayMonths}
}

// schedule is which periods are frozen.
func (u *usageOptions) schedule() freeze.Schedule {
	return freeze.Schedule{Every: u.Freeze, Delay: u.FreezeDelay}
}

// check returns what is wrong. Without a Redis nothing is ever collected.
func (u *usageOptions) check(redis bool) error {
	keep, schedule := u.keep(), u.schedule()
	err := errors.Join(keep.Complete(), schedule.Complete())
	if schedule.On() && !redis {
		err = errors.Join(err, errors.New("freeze takes -redis: without it nothing is collected that could be frozen"))
	}
	if err != nil {
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

// openFreezer makes what freezes billing periods.
func (d *daemon) openFreezer(context.Context) (err error) {
	schedule := d.options.Usage.schedule()
	if !schedule.On() {
		return nil
	}
	d.freezer, err = freeze.New(freeze.Config{
		Store: d.db, Ledger: d.control.FreezeLedger(), Status: d.control.Freezing, Schedule: schedule, Interval: d.options.interval, Logger: d.log,
		MeterProvider: d.metrics, Now: d.options.now,
	})
	return err
}
