package redisfeed

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/internal/redisplace"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

//go:embed publish.lua
var publishSource string

var publishScript = redis.NewScript(publishSource)

// Publish implements policy.Publisher. After an error of the connection nobody knows whether the revision was published:
// publish it once more.
func (f *Feed) Publish(ctx context.Context, r *policy.Revision, expected uint64) error {
	if _, err := r.LoadWith(tiers.ParseConfig{MaxDocument: f.maxDocument}); err != nil {
		return err
	}
	newest, there, err := f.raise(ctx, r, strconv.FormatUint(expected, 10))
	if err == nil && !there {
		err = &policy.ConflictError{Newest: newest}
	}
	return err
}

// Restore implements policy.Restorer: it publishes a revision that was published before, unless there is a newer one.
func (f *Feed) Restore(ctx context.Context, r *policy.Revision) error {
	if err := r.Check(); err != nil {
		return err
	}
	_, _, err := f.raise(ctx, r, "")
	return err
}

// raise runs the script. It returns the head of the revision that is there instead, and whether it is the one that was given.
func (f *Feed) raise(ctx context.Context, r *policy.Revision, expected string) (newest policy.Head, there bool, _ error) {
	published := int64(0)
	if !r.Published.IsZero() {
		published = r.Published.UnixMilli()
	}
	ctx, cancel := redisplace.Bounded(ctx)
	defer cancel()
	reply, err := publishScript.Run(ctx, f.client, []string{f.revision},
		expected, r.Number, r.Hash.String(), r.Document, r.Author, r.Reason, published, r.Signature, f.hint).Slice()
	if err != nil {
		return newest, false, fmt.Errorf("redisfeed: %w", err)
	}
	if len(reply) == 1 {
		return newest, true, nil
	}
	const conflict = 3
	if len(reply) != conflict {
		return newest, false, fmt.Errorf("redisfeed: a reply of %d parts", len(reply))
	}
	number, hash := fmt.Sprint(reply[1]), fmt.Sprint(reply[2])
	newest.Number, _ = strconv.ParseUint(number, 10, 64)
	// Of a hash that is none there is nothing to say.
	_ = newest.Hash.UnmarshalText([]byte(hash))
	return newest, false, nil
}
