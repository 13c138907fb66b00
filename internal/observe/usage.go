package observe

import (
	"context"

	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/guard"
)

// CountsUsage reports whether the observer is told whose usage was counted.
func (r *Reporter) CountsUsage() bool { return r.usage != nil }

// UsageCounted tells the observer whose usage a store has counted. There must be one that is told.
func (r *Reporter) UsageCounted(ctx context.Context, counted event.UsageCounted) {
	guard.Run(ctx, r.cfg.Logger, "Config.Observe.Observer", func() { r.usage.CountUsage(counted) })
}
