package redisusage

import (
	"cmp"
	"context"
	"errors"
	"log/slog"

	"github.com/gqlgen-ratelimit/ratelimit/internal/guard"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redisrun"
	"github.com/gqlgen-ratelimit/ratelimit/usage"
)

// WriterConfig says what a [Writer] writes. The zero value is the default in each field but Client and Refusals.
type WriterConfig struct {
	Config

	// Refusals are those of the instance. They are required, and of this writer alone.
	Refusals *usage.Refusals
	// Logger is told, once, that the Redis does not take them, and once that it does again. Nil means slog.Default().
	Logger *slog.Logger
}

// Writer brings the refusals of an instance into a Redis once a second, until it is closed. It is made by [Start] and safe for concurrent use.
type Writer struct {
	cfg  WriterConfig
	run  string
	loop *redisrun.Loop
	// failed belongs to the goroutine of the loop.
	failed bool
}

// errPanicked says that a write has ended in a panic, which was logged.
var errPanicked = errors.New("redisusage: writing refusals panicked")

// Start begins to write, once a second, whether the Redis answers or not: what it does not take is written later. The error has everything that is
// wrong with the configuration.
func Start(cfg WriterConfig) (*Writer, error) {
	cfg.Config, cfg.Logger = cfg.withDefaults(), cmp.Or(cfg.Logger, slog.Default())
	err := cfg.validate()
	if cfg.Refusals == nil {
		err = errors.Join(err, errors.New("redisusage: WriterConfig.Refusals is nil: set a new(usage.Refusals)"))
	}
	if err != nil {
		return nil, err
	}
	w := &Writer{cfg: cfg, run: redisrun.New()}
	w.loop = redisrun.Start(w.write)
	return w, nil
}

// Close writes once more, and stops. It waits for that, some seconds at most. It always returns nil.
func (w *Writer) Close() error {
	w.loop.Close()
	return nil
}

// write writes what there is. A mistake in here does not end the process.
func (w *Writer) write(ctx context.Context) {
	err := errPanicked
	guard.Run(ctx, w.cfg.Logger, "usage", func() {
		if err = WriteRefusals(ctx, w.cfg.Config, w.run, w.cfg.Refusals.Snapshot()); err == nil {
			w.cfg.Refusals.Stored()
		}
	})
	if failed := err != nil; failed != w.failed {
		w.failed = failed
		if failed {
			w.cfg.Logger.WarnContext(ctx, "ratelimit: refusals of this instance are not stored: they wait in memory, for an hour at least", slog.Any("error", err))
		} else {
			w.cfg.Logger.InfoContext(ctx, "ratelimit: refusals of this instance are stored again")
		}
	}
}
