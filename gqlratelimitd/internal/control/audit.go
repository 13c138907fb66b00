package control

import (
	"context"
	"math"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

// AuditLog is the audit log that a [audit.Signer] signs. It is for the daemon itself: nobody is asked whether they may.
func (c *Control) AuditLog() audit.Log { return auditLog{c.cfg.Store} }

// auditLog is that of a store.
type auditLog struct{ db *store.DB }

// Change implements audit.Log.
func (l auditLog) Change(ctx context.Context, change func(context.Context, audit.Storage) error) error {
	return l.db.Change(ctx, func(tx *store.Tx) error { return change(ctx, tx.Audit()) })
}

// AuditFilter says which entries are looked for. What is empty says nothing.
type AuditFilter struct{ Subject, Action, Target, Tenant string }

// FindAudit returns at most n entries of the audit log below a sequence, 0 for all, the newest first: [access.ReadAudit].
func (c *Control) FindAudit(ctx context.Context, actor access.Actor, f AuditFilter, below int64, n int) (found []audit.Entry, _ error) {
	if err := access.Authorize(actor, access.ReadAudit, ""); err != nil {
		return nil, err
	}
	if below <= 0 {
		below = math.MaxInt64
	}
	err := c.cfg.Store.Read(ctx, func(v *store.View) error {
		records, err := v.Audit().Find(store.AuditFilter(f), below, n)
		for _, record := range records {
			e, err := audit.ParseRecord(record)
			if err != nil {
				return err
			}
			found = append(found, *e)
		}
		return err
	})
	return found, err
}

// ReadAudit reads the audit log, its checkpoints and proofs, as of one moment: [access.ReadAudit].
func (c *Control) ReadAudit(ctx context.Context, actor access.Actor, read func(audit.Reader) error) error {
	if err := access.Authorize(actor, access.ReadAudit, ""); err != nil {
		return err
	}
	return c.cfg.Store.Read(ctx, func(v *store.View) error { return read(v.Audit()) })
}
