package ratelimit

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// stored measures a call of the store, and tells the logger when the store goes and when it is back.
func (e *Extension) stored(ctx context.Context, b *backend, call string, took time.Duration, err error) {
	e.telemetry.stored(ctx, b, call, took, err)
	switch {
	case err == nil:
		if b.absence.ends() {
			e.cfg.Logger.InfoContext(ctx, "ratelimit: the store is back: operations are judged again", b.logged()...)
		}
	case errors.Is(err, bucket.ErrInvalid):
		e.cfg.Logger.ErrorContext(ctx, "ratelimit: the store was called wrongly", b.logged(slog.String("error", err.Error()))...)
	case b.absence.begins(time.Now()):
		e.cfg.Logger.WarnContext(ctx, "ratelimit: the store is away: operations are decided by the fail modes of their limits",
			b.logged(slog.String("error", err.Error()))...)
	}
}

// absence says whether the logger knows that the store is away. The zero value says that it does
// not. A store that fails now and then is reported once a second at most.
type absence struct {
	told atomic.Bool
	// last is when the logger was told, in Unix nanoseconds.
	last atomic.Int64
}

func (a *absence) begins(now time.Time) bool {
	last := a.last.Load()
	if a.told.Load() || now.UnixNano()-last < int64(time.Second) || !a.last.CompareAndSwap(last, now.UnixNano()) {
		return false
	}
	return a.told.CompareAndSwap(false, true)
}

func (a *absence) ends() bool {
	return a.told.Load() && a.told.CompareAndSwap(true, false)
}
