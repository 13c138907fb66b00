package redisplace

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

var timeScript = redis.NewScript(`return redis.call('TIME')`)

// NewRun returns the name of another run: 16 hexadecimal digits.
func NewRun() string {
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

// ValidRun reports whether a text can be the name of a run.
func ValidRun(run string) bool {
	_, err := hex.DecodeString(run)
	return err == nil && len(run) == 16
}
