package backend

import (
	"context"
	"errors"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/event"
)

// counted tells whose usage a take has counted, or may have: of one whose reply was lost nobody knows in which minute.
func (b *Store) counted(ctx context.Context, take *bucket.Take, result *bucket.Result, began time.Time, err error) {
	if !b.tellsUsage {
		return
	}
	tell := event.UsageCounted{Store: b.name, Tenant: take.Tenant}
	switch at, counted := result.Receipt.Counted(); {
	case err == nil && counted:
		tell.At = at
	case errors.Is(err, bucket.ErrAmbiguous):
		tell.At = time.Now()
		if hour := tell.At.Truncate(time.Hour); began.Before(hour) {
			b.watcher.UsageCounted(ctx, event.UsageCounted{Store: b.name, Tenant: take.Tenant, At: began})
		}
	default:
		return
	}
	b.watcher.UsageCounted(ctx, tell)
}

// corrected tells whose usage a settlement has corrected, or may have.
func (b *Store) corrected(ctx context.Context, s *bucket.Settlement, settled *bucket.Settled, err error) {
	at, counted := s.Receipt.Counted()
	if b.tellsUsage && counted && (settled.Applied || errors.Is(err, bucket.ErrAmbiguous)) {
		b.watcher.UsageCounted(ctx, event.UsageCounted{Store: b.name, Tenant: s.Tenant(), At: at})
	}
}

// countedLocally tells whose usage was counted with the settlement of what a local share had admitted.
func (b *Store) countedLocally(tenant string, at time.Time) {
	b.watcher.UsageCounted(context.Background(), event.UsageCounted{Store: b.name, Tenant: tenant, At: at, Local: true})
}
