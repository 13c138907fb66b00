package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/collect"
	"github.com/gqlgen-ratelimit/ratelimit/usage"
)

// What a daemon says of what it collects.
const (
	// saidAdded: so many points are new since this process has read the hour last.
	saidAdded = "added"
	// saidForgot: the store of budgets has forgotten an hour.
	saidForgot = "forgot"
)

// observedSource is what a collector reads, at a time that may be ahead. It says what somebody would add who adds what is new since they read
// last.
type observedSource struct {
	usage.Source
	ahead time.Duration
	say   func(word string, about any)
	mu    sync.Mutex
	seen  map[string]int64
}

func (s *observedSource) Now(ctx context.Context) (time.Time, error) {
	now, err := s.Source.Now(ctx)
	return now.Add(s.ahead), err
}

func (s *observedSource) ReadUsage(ctx context.Context, tenant string, hour time.Time, grade bucket.UsageGrade) (*bucket.UsageHour, error) {
	read, err := s.Source.ReadUsage(ctx, tenant, hour, grade)
	if err != nil || read == nil {
		return read, err
	}
	added := int64(0)
	s.mu.Lock()
	for i := range read.Counts {
		c := &read.Counts[i]
		if c.Unit == bucket.Points && c.Field == "" {
			key := fmt.Sprint(tenant, hour.Unix(), grade, c.Generation)
			added += c.Net() - s.seen[key]
			s.seen[key] = c.Net()
		}
	}
	s.mu.Unlock()
	s.say(saidAdded, added)
	return read, nil
}

func (s *observedSource) ForgetUsage(ctx context.Context, read *bucket.UsageHour) (bool, error) {
	done, err := s.Source.ForgetUsage(ctx, read)
	if done {
		s.say(saidForgot, read.Tenant)
	}
	return done, err
}

// collectsFast has a daemon collect all the time, from a store of budgets whose clock is ahead.
func collectsFast(ahead time.Duration, say func(word string, about any)) func(*collect.Config) {
	return func(cfg *collect.Config) {
		cfg.Source = &observedSource{Source: cfg.Source, ahead: ahead, say: say, seen: map[string]int64{}}
		cfg.Interval, cfg.Search = 30*time.Millisecond, 100*time.Millisecond
		cfg.Settled, cfg.Lease = time.Minute, 300*time.Millisecond
	}
}

// runKilledDaemon runs gqlratelimitd with its arguments until it is killed.
func runKilledDaemon(ahead, args string) error {
	by, err := time.ParseDuration(ahead)
	if err != nil {
		return err
	}
	o, err := readOptions(strings.Fields(args), os.Stderr)
	if err != nil {
		return err
	}
	o.collect = collectsFast(by, say)
	d, err := open(context.Background(), o, console{strings.NewReader(""), os.Stdout, os.Stderr})
	if err != nil {
		return err
	}
	if err := d.serve(context.Background()); err != nil {
		return err
	}
	return io.ErrUnexpectedEOF
}
