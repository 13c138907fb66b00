package redisusage

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/internal/guard"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redisrun"
	"github.com/gqlgen-ratelimit/ratelimit/usage"
)

//go:embed report.lua
var reportSource string

var reportScript = redis.NewScript(reportSource)

const (
	// writeTime is how long one write takes at most: less than usage.Grace, so that what is told in a minute is there when it is read.
	writeTime = 15 * time.Second
	// chunkFields, chunkBytes and chunkMembers bound one command.
	chunkFields  = 256
	chunkBytes   = 256 << 10
	chunkMembers = 512
	// fieldBytes is what a field takes beside its name and value.
	fieldBytes = 64
)

// errPanicked says that a write has ended in a panic, which was logged.
var errPanicked = errors.New("redisusage: writing usage panicked")

// Writer tells what a recorder has once a second, until it is closed. It is made by [Start] and safe for concurrent use.
type Writer struct {
	cfg  WriterConfig
	run  string
	told *instruments
	loop *redisrun.Loop

	// writing is held by whoever writes, and guards what follows.
	writing sync.Mutex
	// number is that of the last command with reports.
	number int64
	kept   []kept
	bytes  int
	failed bool
}

// kept is what was written of reports in a minute.
type kept struct {
	minute int64
	// sizes are those of its fields, nil when the minute is over.
	sizes map[string]int
	bytes int
}

// Start begins to write, once a second, whether the Redis answers or not: what it does not take is written later, as far as the recorder has
// room. The error has everything that is wrong with the configuration.
func Start(cfg WriterConfig) (*Writer, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	told, err := newInstruments(cfg.MeterProvider, cfg.Recorder)
	if err != nil {
		return nil, err
	}
	w := &Writer{cfg: cfg, run: redisrun.New(), told: told}
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
	began, err := time.Now(), errPanicked
	guard.Run(ctx, w.cfg.Logger, "usage", func() { err = w.write(ctx) })
	w.told.wrote(ctx, time.Since(began), err)
	if failed := err != nil; failed != w.failed {
		w.failed = failed
		if failed {
			w.cfg.Logger.WarnContext(ctx, "ratelimit: the usage of this instance is not told: what it has decided waits, as long as there is room",
				slog.Any("error", err))
		} else {
			w.cfg.Logger.InfoContext(ctx, "ratelimit: the usage of this instance is told again")
		}
	}
}

// write writes what there is, in the minute that it is by the clock of the server.
func (w *Writer) write(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	now, err := w.seen(ctx)
	if err != nil {
		// What was counted waits with the recorder.
		w.cfg.Recorder.Collect(time.Now(), time.Time{})
		return err
	}
	batch := w.cfg.Recorder.Collect(time.Now(), now)
	minute := now.Unix() / secondsOfMinute
	if err := w.counted(ctx, minute, batch.Counted); err != nil {
		return err
	}
	if err := w.reports(ctx, minute, &batch); err != nil {
		return err
	}
	w.cfg.Recorder.Stored()
	return w.forget(ctx)
}

func (w *Writer) seen(ctx context.Context) (time.Time, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	now, err := w.cfg.runs().Seen(ctx, w.run, usage.ReportLife)
	if err != nil {
		return time.Time{}, fmt.Errorf("redisusage: %w", err)
	}
	return now, nil
}

// shardOf returns the set of a tenant. All instances have the same.
func shardOf(tenant string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(tenant))
	return int(h.Sum32() % shards)
}

// counted tells hours of tenants.
func (w *Writer) counted(ctx context.Context, minute int64, counted []usage.Counted) error {
	var members [shards][]any
	for i := range counted {
		of := shardOf(counted[i].Tenant)
		members[of] = append(members[of], member(&counted[i]))
	}
	if len(counted) == 0 {
		return nil
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	pipe := w.cfg.Client.Pipeline()
	for shard, all := range members {
		key := w.cfg.keys().told(minute, shard)
		for chunk := range slices.Chunk(all, chunkMembers) {
			pipe.SAdd(ctx, key, chunk...)
		}
		if len(all) > 0 {
			pipe.PExpire(ctx, key, usage.CountedLife+time.Minute)
		}
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("redisusage: %w", err)
	}
	return nil
}

// tenantMinute is what has a field of its own.
type tenantMinute struct {
	tenant string
	minute time.Time
}

// reports tells what was decided.
func (w *Writer) reports(ctx context.Context, minute int64, batch *usage.Batch) error {
	all := make(map[tenantMinute]*rows)
	of := func(tenant string, minute time.Time) *rows {
		key := tenantMinute{tenant, minute}
		if all[key] == nil {
			all[key] = &rows{}
		}
		return all[key]
	}
	for i := range batch.Decisions {
		d := &batch.Decisions[i]
		r := of(d.Tenant, d.Minute)
		r.Decisions = append(r.Decisions, decision{d.By, d.Name, d.Admitted, d.Refused, d.WouldRefuse, d.Points})
	}
	for i := range batch.Reached {
		c := &batch.Reached[i]
		r := of(c.Tenant, c.Minute)
		r.Reached = append(r.Reached, crossing{c.Level, c.Owner, c.Limit, c.Threshold, c.Times})
	}
	var chunk []any
	size := 0
	for key, r := range all {
		name, value := field(key.tenant, key.minute), r.encode()
		w.keep(minute, name, len(name)+len(value)+fieldBytes)
		chunk, size = append(chunk, name, value), size+len(name)+len(value)
		if len(chunk) >= 2*chunkFields || size >= chunkBytes {
			if err := w.send(ctx, minute, chunk); err != nil {
				return err
			}
			chunk, size = nil, 0
		}
	}
	if chunk == nil {
		return nil
	}
	return w.send(ctx, minute, chunk)
}

// send writes some fields.
func (w *Writer) send(ctx context.Context, minute int64, chunk []any) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	w.number++
	args := append([]any{usage.ReportLife.Milliseconds(), w.number, w.cfg.Instance}, chunk...)
	if err := reportScript.Run(ctx, w.cfg.Client, []string{w.cfg.keys().report(w.run, minute)}, args...).Err(); err != nil {
		return fmt.Errorf("redisusage: %w", err)
	}
	return nil
}

// keep notes that a field of a minute has a size.
func (w *Writer) keep(minute int64, name string, size int) {
	if n := len(w.kept); n == 0 || w.kept[n-1].minute != minute {
		if n > 0 {
			w.kept[n-1].sizes = nil
		}
		w.kept = append(w.kept, kept{minute: minute, sizes: make(map[string]int)})
	}
	last := &w.kept[len(w.kept)-1]
	change := size - last.sizes[name]
	last.sizes[name] = size
	last.bytes, w.bytes = last.bytes+change, w.bytes+change
}

// forget deletes the oldest minutes where there is more than is to be kept.
func (w *Writer) forget(ctx context.Context) error {
	var over []string
	for len(w.kept) > 1 {
		first := &w.kept[0]
		gone := w.kept[len(w.kept)-1].minute-first.minute > int64(usage.ReportLife/time.Minute)
		if !gone && w.bytes <= w.cfg.Bytes {
			break
		}
		if !gone {
			over = append(over, w.cfg.keys().report(w.run, first.minute))
		}
		w.bytes -= first.bytes
		w.kept = w.kept[1:]
	}
	if over == nil {
		return nil
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	w.told.forgot(ctx, len(over))
	// They are of one run, and so in one slot.
	if err := w.cfg.Client.Unlink(ctx, over...).Err(); err != nil {
		return fmt.Errorf("redisusage: %w", err)
	}
	return nil
}
