package redisdigest

import (
	"bytes"
	"compress/flate"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/digest"
	"github.com/gqlgen-ratelimit/ratelimit/internal/guard"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redisrun"
)

//go:embed write.lua
var writeSource string

var writeScript = redis.NewScript(writeSource)

// Writer writes the digest of this instance once a second, until it is closed. It is made by [Start] and safe for concurrent use.
type Writer struct {
	cfg  WriterConfig
	run  string
	told *instruments
	loop *redisrun.Loop

	// writing is held by whoever writes, and guards what follows.
	writing sync.Mutex
	// whole says that what is in the Redis is not known, so that all refusals are written.
	whole bool
	// parts are the sizes of those that the records there have, the newest last.
	parts  []int
	bytes  int
	failed bool
	packed bytes.Buffer
	packer *flate.Writer
}

// Start begins to write, once a second, whether the Redis answers or not. The error has everything that is wrong with the
// configuration.
func Start(cfg WriterConfig) (*Writer, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	told, err := newInstruments(cfg.MeterProvider)
	if err != nil {
		return nil, err
	}
	w := &Writer{cfg: cfg, run: redisrun.New(), told: told, whole: true}
	// It only fails for a level that there is not.
	w.packer, _ = flate.NewWriter(&w.packed, flate.BestSpeed)
	w.loop = redisrun.Start(w.once)
	return w, nil
}

// Close writes once more, and stops. It waits for that, some seconds at most. It always returns nil.
func (w *Writer) Close() error {
	w.loop.Close()
	// It only fails for a provider that did not register it.
	_ = w.told.ends()
	return nil
}

// once writes what there is. A mistake in here does not end the process.
func (w *Writer) once(ctx context.Context) {
	w.writing.Lock()
	defer w.writing.Unlock()
	began := time.Now()
	var err error
	guard.Run(ctx, w.cfg.Logger, "the digest", func() {
		batch := w.cfg.Collector.Collect(began)
		w.told.groups.Store(&batch.Digest.Groups)
		err = w.send(ctx, batch)
	})
	w.told.wrote(ctx, time.Since(began), err)
	if failed := err != nil; failed != w.failed {
		w.failed = failed
		if failed {
			w.cfg.Logger.WarnContext(ctx, "ratelimit: the digest of this instance is not written, so that refusals are not found by their ids",
				slog.Any("error", err))
		} else {
			w.cfg.Logger.InfoContext(ctx, "ratelimit: the digest of this instance is written again")
		}
	}
	w.whole = w.whole || err != nil
}

// send writes a batch.
func (w *Writer) send(ctx context.Context, batch digest.Batch) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	batch.Digest.Instance, batch.Digest.ID = w.cfg.Instance, w.run
	kept := w.cfg.Collector.Kept()
	written, whole, gone := batch.New, "0", batch.Gone
	if w.whole {
		written, whole, gone = kept, "1", nil
	}
	records := w.pack(batch.Chunk)
	args := []any{batch.Digest.Encode(), life.Milliseconds(), w.cfg.Keep.Milliseconds(), records, len(w.parts), whole, len(gone)}
	for _, id := range gone {
		args = append(args, id)
	}
	for i := range written {
		written[i].Instance = w.cfg.Instance
		args = append(args, written[i].Decided.RefusalID, written[i].Encode())
	}
	key, refusals, list := w.cfg.keys().of(w.run)
	there, err := writeScript.Run(ctx, w.cfg.Client, []string{key, refusals, list}, args...).Int()
	_, seenErr := w.cfg.runs().Seen(ctx, w.run, w.cfg.Keep)
	// Somebody has flushed the Redis, or it has lost what it was told.
	w.whole = err != nil || there != len(kept)
	if err = errors.Join(err, seenErr); err != nil {
		return fmt.Errorf("redisdigest: %w", err)
	}
	return nil
}

// pack returns the records as they are kept, empty for none, and makes room for them among the parts.
func (w *Writer) pack(chunk *digest.Chunk) string {
	if chunk == nil {
		return ""
	}
	w.packed.Reset()
	w.packer.Reset(&w.packed)
	// Writing to memory does not fail.
	_, _ = w.packer.Write(chunk.Encode())
	_ = w.packer.Close()
	packed := w.packed.String()
	w.parts, w.bytes = append(w.parts, len(packed)), w.bytes+len(packed)
	for len(w.parts) > maxParts || w.bytes > w.cfg.RecordBytes && len(w.parts) > 1 {
		w.bytes -= w.parts[0]
		w.parts = append(w.parts[:0], w.parts[1:]...)
	}
	return packed
}
