// Package redisrun knows which runs of instances write into a Redis, and has each of them write once a second.
package redisrun

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Most is how many runs there may be at once.
const Most = 10_000

//go:embed seen.lua
var seenSource string

var (
	seenScript = redis.NewScript(seenSource)
	timeScript = redis.NewScript(`return redis.call('TIME')`)
)

// Commands are those that runs need of a server.
func Commands() []string {
	return []string{"evalsha", "eval", "time", "pexpire", "zadd", "zscore", "zcard", "zremrangebyscore", "zrevrangebyscore"}
}

// New returns the name of another run: 16 hexadecimal digits.
func New() string {
	var run [8]byte
	// It never fails.
	_, _ = rand.Read(run[:])
	return hex.EncodeToString(run[:])
}

// Runs are those under a key. It is safe for concurrent use.
type Runs struct {
	Client redis.UniversalClient
	Key    string
}

// Seen notes that a run is there, and forgets those that were not for as long as is said. It returns the time of the server.
func (r *Runs) Seen(ctx context.Context, run string, keep time.Duration) (time.Time, error) {
	now, err := seenScript.Run(ctx, r.Client, []string{r.Key}, run, keep.Milliseconds(), Most).Int64()
	switch {
	case err != nil:
		return time.Time{}, err
	case now == 0:
		return time.Time{}, fmt.Errorf("more than %d runs of instances are kept", Most)
	default:
		return time.UnixMilli(now), nil
	}
}

// Now returns the time of the server that has the key.
func (r *Runs) Now(ctx context.Context) (time.Time, error) {
	parts, err := timeScript.Run(ctx, r.Client, []string{r.Key}).StringSlice()
	if err != nil {
		return time.Time{}, err
	}
	var numbers [2]int64
	for i := range numbers {
		if len(parts) != len(numbers) {
			return time.Time{}, fmt.Errorf("%d numbers are no time", len(parts))
		}
		if numbers[i], err = strconv.ParseInt(parts[i], 10, 64); err != nil {
			return time.Time{}, err
		}
	}
	return time.Unix(numbers[0], numbers[1]*int64(time.Microsecond)), nil
}

// Since returns the runs that were seen since a time, the latest first. The zero time means all.
func (r *Runs) Since(ctx context.Context, since time.Time) ([]string, error) {
	from := "-inf"
	if !since.IsZero() {
		from = strconv.FormatInt(since.UnixMilli(), 10)
	}
	runs, err := r.Client.ZRevRangeByScore(ctx, r.Key, &redis.ZRangeBy{Min: from, Max: "+inf", Count: Most}).Result()
	if err != nil {
		return nil, err
	}
	// What is no run of ours makes no key.
	return slices.DeleteFunc(runs, func(run string) bool { return !Valid(run) }), nil
}

// Valid reports whether a text can be the name of a run.
func Valid(run string) bool {
	_, err := hex.DecodeString(run)
	return err == nil && len(run) == 16
}

// Loop writes once a second, until it is closed. It is safe for concurrent use.
type Loop struct {
	stop  context.CancelFunc
	ended sync.WaitGroup
}

// Start begins to write.
func Start(write func(context.Context)) *Loop {
	ctx, stop := context.WithCancel(context.Background())
	l := &Loop{stop: stop}
	l.ended.Go(func() {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for over := false; !over; {
			select {
			case <-ctx.Done():
				over = true
			case <-ticker.C:
			}
			// What it writes at the end is not cut off by the end.
			write(context.WithoutCancel(ctx))
		}
	})
	return l
}

// Close writes once more, stops, and waits for that.
func (l *Loop) Close() {
	l.stop()
	l.ended.Wait()
}
