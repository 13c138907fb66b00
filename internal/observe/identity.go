package observe

import (
	"context"
	"crypto/rand"
	"log/slog"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
)

// identity says what became of the id of a refusal.
type identity struct {
	// chosen says that the observer is told, and untold how many refusals it was not told since.
	chosen bool
	untold int64
	// found says that the id stands in a span or in the log, whatever the observer does.
	found bool
}

// causesASecond bounds the lines about refusals that the server itself has caused, where nobody is told of others.
const causesASecond = 10

// identify gives a refusal its id, 26 letters and digits drawn at random, if somebody will find it: a span, the observer,
// or a line of the log, which a refusal for an error of the server always has if it is chosen. An id that leads nowhere
// is none.
func (r *Reporter) identify(ctx context.Context, d *decision.Decision, traced bool) identity {
	if d.Refusal == nil {
		return identity{}
	}
	most, cause := r.cfg.Refusals, d.Refusal.Cause
	if most < 0 && cause != nil {
		most = causesASecond
	}
	id := identity{found: traced}
	id.chosen, id.untold = r.refusals.choose(d.Subject.Tenant, time.Now(), most)
	if !id.chosen {
		r.metrics.untold.Add(ctx, 1)
	}
	if !id.chosen && !traced {
		return id
	}
	d.Refusal.ID = rand.Text()
	if id.chosen && cause != nil {
		r.cfg.Logger.ErrorContext(ctx, "ratelimit: an operation is refused because the server failed",
			slog.Any("error", cause), slog.String("outcome", string(d.Outcome)), slog.String("refusalId", d.Refusal.ID))
		id.found = id.found || r.cfg.Logger.Enabled(ctx, slog.LevelError)
	}
	id.chosen = id.chosen && r.cfg.Refusals >= 0
	return id
}
