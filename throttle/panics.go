package throttle

import (
	"context"
	"log/slog"
	"time"
)

// panicsEvery is how often panics of one source are logged. A source that panics does so in each beat.
const panicsEvery = time.Minute

// panics are those of one source. The zero value is none.
type panics struct {
	// untold is how many came since the last line of the log, and told when that was.
	untold int
	told   time.Time
}

// tell logs a panic, unless one of the same source was logged less than a minute ago: it is counted then.
func (p *panics) tell(ctx context.Context, log *slog.Logger, signal string, err error, now time.Time) {
	p.untold++
	// A clock that was set back says nothing about the last line.
	if since := now.Sub(p.told); !p.told.IsZero() && since >= 0 && since < panicsEvery {
		return
	}
	log.ErrorContext(ctx, "ratelimit: a source of the throttle panicked, and says nothing",
		slog.String("signal", signal), slog.Any("error", err), slog.Int("panics", p.untold))
	p.untold, p.told = 0, now
}
