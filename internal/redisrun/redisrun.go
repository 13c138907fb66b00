// Package redisrun names a run of an instance that writes into a Redis, and has it write once a second.
package redisrun

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

var timeScript = redis.NewScript(`return redis.call('TIME')`)

// New returns the name of another run: 16 hexadecimal digits.
func New() string {
	var run [8]byte
	// It never fails.
	_, _ = rand.Read(run[:])
	return hex.EncodeToString(run[:])
}

// Now returns the time of the server that has a key.
func Now(ctx context.Context, client redis.UniversalClient, key string) (time.Time, error) {
	parts, err := timeScript.Run(ctx, client, []string{key}).StringSlice()
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
