package main

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/digest"
	"github.com/gqlgen-ratelimit/ratelimit/digest/redisdigest"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/preview"
	"github.com/gqlgen-ratelimit/ratelimit/internal/previewreport"
)

// recordedFor is how far back a preview looks.
const recordedFor = 24 * time.Hour

// recordedSkew is how far in the future something was recorded at most, because clocks differ, and over how long one record reaches.
const recordedSkew = time.Minute

// recorded replays what instances have recorded in their digests. It implements control.Previewer.
type recorded struct {
	reader *redisdigest.Reader
	key    []byte
}

// newRecorded returns one that reads the Redis of the instances. It does not connect.
func newRecorded(o *options, client redis.UniversalClient) (*recorded, error) {
	reader, err := redisdigest.NewReader(redisdigest.Config{Client: client, Namespace: o.Namespace})
	if err != nil {
		return nil, err
	}
	r := &recorded{reader: reader}
	if o.DigestKey == "" {
		return r, nil
	}
	text, err := os.ReadFile(o.DigestKey)
	if err != nil {
		return nil, err
	}
	// An editor adds the end of the line.
	r.key = bytes.TrimRight(text, "\r\n")
	const least, most = 16, 64
	if len(r.key) < least || len(r.key) > most {
		return nil, fmt.Errorf("-digest-key %s has %d bytes: want %d to %d, those of Config.Key of package digest in the instances", o.DigestKey, len(r.key), least, most)
	}
	return r, nil
}

// Preview implements control.Previewer.
func (r *recorded) Preview(ctx context.Context, cfg preview.Config) (*previewreport.Report, error) {
	cfg.Key = r.key
	now := time.Now()
	return preview.Run(ctx, upTo(now, r.reader.Chunks(ctx, now.Add(-recordedFor))), cfg)
}

// upTo makes unreadable what was recorded by a clock that is wrong: beside what others have recorded it would look like days of traffic.
func upTo(now time.Time, chunks iter.Seq2[digest.Chunk, error]) iter.Seq2[digest.Chunk, error] {
	return func(yield func(digest.Chunk, error) bool) {
		for chunk, err := range chunks {
			if err == nil && (chunk.To.Sub(now) > recordedSkew || chunk.To.Sub(chunk.From) > recordedSkew) {
				chunk, err = digest.Chunk{}, digest.ErrUnreadable
			}
			if !yield(chunk, err) {
				return
			}
		}
	}
}
