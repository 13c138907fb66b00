package redisdirectory

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/internal/redisplace"
	"github.com/gqlgen-ratelimit/ratelimit/policy/directory"
)

// Bounds of what is written at once, and for how long it is kept if the writer is gone.
const (
	refillBytes   = 1 << 20
	refillRecords = 256
	refillLife    = time.Minute
)

//go:embed refill.lua
var refillSource string

//go:embed refilled.lua
var refilledSource string

var (
	refillScript   = redis.NewScript(refillSource)
	refilledScript = redis.NewScript(refilledSource)
)

// Refill writes all records into a Redis in which no record was ever written, or which has lost them: unlike those of [Source.Put] they are
// there all at once, so that no reader takes a tenant whose record comes later for one that has none. It returns how many it has written: none if the
// Redis has a directory, or there is no record. Each tenant comes once. The Revision of the records is not looked at, and what they
// are given is 1.
//
// After an error nothing is there, unless it is that of the last call.
func (s *Source) Refill(ctx context.Context, records iter.Seq2[directory.Record, error]) (written int, _ error) {
	kept := s.keys[0] + ":refill:" + rand.Text()
	var args []any
	size, count := 0, 0
	flush := func() (free bool, err error) {
		ctx, cancel := redisplace.Bounded(ctx)
		defer cancel()
		free, err = refillScript.Run(ctx, s.client, []string{s.keys[0], kept}, args...).Bool()
		args, size = nil, 0
		if err != nil {
			err = fmt.Errorf("redisdirectory: %w", err)
		}
		return free, err
	}
	for record, err := range records {
		if err == nil {
			err = directory.CheckPut(record.Tenant, record.Document)
		}
		if err == nil && len(record.Document) == 0 {
			err = errors.New("redisdirectory: a record without a document")
		}
		if err != nil {
			return 0, err
		}
		if args == nil {
			args = append(args, refillLife.Milliseconds())
		}
		args = append(args, record.Tenant, record.Document)
		size += len(record.Tenant) + len(record.Document)
		if count++; size >= refillBytes || len(args) > 2*refillRecords {
			if free, err := flush(); err != nil || !free {
				return 0, err
			}
		}
	}
	if args != nil {
		if free, err := flush(); err != nil || !free {
			return 0, err
		}
	}
	if count == 0 {
		return 0, nil
	}
	return s.refilled(ctx, kept, count)
}

// refilled makes what was kept the directory.
func (s *Source) refilled(ctx context.Context, kept string, count int) (written int, _ error) {
	ctx, cancel := redisplace.Bounded(ctx)
	defer cancel()
	const done, lost = 1, 2
	reply, err := refilledScript.Run(ctx, s.client, append(s.keys[:len(s.keys):len(s.keys)], kept), rand.Text(), count).Int()
	switch {
	case err != nil:
		return 0, fmt.Errorf("redisdirectory: %w", err)
	case reply == lost:
		return 0, errors.New("redisdirectory: the Redis has lost some of the records at once, or a tenant came twice")
	case reply == done:
		return count, nil
	default:
		return 0, nil
	}
}
