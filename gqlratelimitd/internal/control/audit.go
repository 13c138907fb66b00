package control

import (
	"context"
	"io"
	"math"

	"golang.org/x/mod/sumdb/tlog"

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

// ExportAudit writes the audit log up to its newest checkpoint, as [audit.Verify] reads it: [access.ExportAudit]. There is
// [audit.ErrUnsigned] before the first checkpoint. It reads in pages: who reads slowly holds up no change.
func (c *Control) ExportAudit(ctx context.Context, actor access.Actor, w io.Writer) error {
	if err := access.Authorize(actor, access.ExportAudit, ""); err != nil {
		return err
	}
	return audit.Export(ctx, NewAuditLog(c.cfg.Store), w)
}

// AuditLog is the audit log of a database, for the signer of its checkpoints and for an export. Each call is a transaction.
type AuditLog struct{ db *store.DB }

// NewAuditLog returns the log of a database.
func NewAuditLog(db *store.DB) AuditLog { return AuditLog{db} }

// Change implements [audit.Log].
func (l AuditLog) Change(ctx context.Context, change func(context.Context, audit.Storage) error) error {
	return l.db.Change(ctx, func(tx *store.Tx) error { return change(ctx, tx.Audit()) })
}

// read makes one call of a reader.
func read[T any](ctx context.Context, l AuditLog, call func(audit.Reader) (T, error)) (found T, _ error) {
	err := l.db.Read(ctx, func(v *store.View) (err error) {
		found, err = call(v.Audit())
		return err
	})
	return found, err
}

// Size implements [audit.Reader].
func (l AuditLog) Size(ctx context.Context) (int64, error) {
	return read(ctx, l, func(r audit.Reader) (int64, error) { return r.Size(ctx) })
}

// Hashes implements [audit.Reader].
func (l AuditLog) Hashes(ctx context.Context, indexes []int64) ([]tlog.Hash, error) {
	return read(ctx, l, func(r audit.Reader) ([]tlog.Hash, error) { return r.Hashes(ctx, indexes) })
}

// Records implements [audit.Reader].
func (l AuditLog) Records(ctx context.Context, from int64, n int) ([][]byte, error) {
	return read(ctx, l, func(r audit.Reader) ([][]byte, error) { return r.Records(ctx, from, n) })
}

// Checkpoints implements [audit.Reader].
func (l AuditLog) Checkpoints(ctx context.Context, from int64, n int) ([][]byte, error) {
	return read(ctx, l, func(r audit.Reader) ([][]byte, error) { return r.Checkpoints(ctx, from, n) })
}

// Newest implements [audit.Reader].
func (l AuditLog) Newest(ctx context.Context) ([]byte, error) {
	return read(ctx, l, func(r audit.Reader) ([]byte, error) { return r.Newest(ctx) })
}
