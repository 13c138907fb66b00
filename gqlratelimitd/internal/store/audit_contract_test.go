package store_test

import (
	"context"
	"testing"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit/audittest"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

// auditLog is the audit log of a database.
type auditLog struct{ db *store.DB }

func (l auditLog) Change(ctx context.Context, change func(context.Context, audit.Storage) error) error {
	return l.db.Change(ctx, func(tx *store.Tx) error { return change(ctx, tx.Audit()) })
}

func TestTheAuditLogKeepsTheContract(t *testing.T) {
	t.Parallel()
	for kind, empty := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			audittest.Run(t, func(t *testing.T) audit.Log {
				t.Helper()
				return auditLog{open(t, store.Config{URL: empty(t), Now: newClock().Now})}
			})
		})
	}
}
