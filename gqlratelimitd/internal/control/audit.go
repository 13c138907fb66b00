package control

import (
	"context"
	"io"
	"math"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

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

// ExportAudit writes the audit log as [audit.Verify] reads it: [access.ExportAudit]. It reads in pages: who reads slowly holds up no
// change.
func (c *Control) ExportAudit(ctx context.Context, actor access.Actor, w io.Writer) error {
	if err := access.Authorize(actor, access.ExportAudit, ""); err != nil {
		return err
	}
	return audit.Export(ctx, NewAuditLog(c.cfg.Store), w)
}

// AuditLog reads the audit log of a database. Each call is a transaction of its own.
type AuditLog struct{ db *store.DB }

// NewAuditLog returns the log of a database.
func NewAuditLog(db *store.DB) AuditLog { return AuditLog{db} }

// Size implements [audit.Reader].
func (l AuditLog) Size(ctx context.Context) (size int64, _ error) {
	err := l.db.Read(ctx, func(v *store.View) (err error) {
		size, err = v.Audit().Size(ctx)
		return err
	})
	return size, err
}

// Rows implements [audit.Reader].
func (l AuditLog) Rows(ctx context.Context, from int64, n int) (rows []audit.Row, _ error) {
	err := l.db.Read(ctx, func(v *store.View) (err error) {
		rows, err = v.Audit().Rows(ctx, from, n)
		return err
	})
	return rows, err
}
