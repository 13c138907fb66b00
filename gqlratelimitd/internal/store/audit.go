package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
)

// AuditReader reads the audit log as of the moment of a view. It is an audit.Reader. The contexts of its methods say nothing: that of the
// view holds.
type AuditReader struct{ v *View }

// Audit returns the audit log.
func (v *View) Audit() AuditReader { return AuditReader{v} }

// AuditLog writes the audit log in a change. It is an audit.Storage. The contexts of its methods say nothing: that of the change
// holds.
type AuditLog struct {
	AuditReader
	tx *Tx
}

// Audit returns the audit log, to be written.
func (tx *Tx) Audit() AuditLog { return AuditLog{AuditReader{&tx.View}, tx} }

// Size implements audit.Reader.
func (r AuditReader) Size(context.Context) (int64, error) {
	size, err := one(r.v, scanNumber, "SELECT coalesce(max(sequence) + 1, 0) FROM audit_entry")
	if err != nil {
		return 0, err
	}
	return *size, nil
}

func scanNumber(row scanner, n *int64) error { return row.Scan(n) }

// Rows implements audit.Reader.
func (r AuditReader) Rows(_ context.Context, from int64, n int) ([]audit.Row, error) {
	return many(r.v, scanRow, "SELECT record, hash FROM audit_entry WHERE sequence >= $1 ORDER BY sequence LIMIT $2", from, page(n))
}

// scanRow scans a row. A hash of another length, which the table refuses, stays zero and fits no row.
func scanRow(row scanner, r *audit.Row) error {
	var hash []byte
	if err := row.Scan(&r.Record, &hash); err != nil {
		return err
	}
	if len(hash) == len(r.Hash) {
		copy(r.Hash[:], hash)
	}
	return nil
}

func scanBytes(row scanner, b *[]byte) error { return row.Scan(b) }

// AuditFilter says which entries are looked for. What is empty says nothing.
type AuditFilter struct{ Subject, Action, Target, Tenant string }

// Find returns at most n records of entries below a sequence, the newest first.
func (r AuditReader) Find(f AuditFilter, below int64, n int) ([][]byte, error) {
	query, args := "SELECT record FROM audit_entry WHERE sequence < $1", []any{below}
	for _, is := range []struct{ column, value string }{{"subject", f.Subject}, {"action", f.Action}, {"target", f.Target}, {"tenant", f.Tenant}} {
		if is.value != "" {
			args = append(args, is.value)
			query += fmt.Sprintf(" AND %s = $%d", is.column, len(args))
		}
	}
	args = append(args, page(n))
	return many(r.v, scanBytes, fmt.Sprintf("%s ORDER BY sequence DESC LIMIT $%d", query, len(args)), args...)
}

// Append implements audit.Storage.
func (l AuditLog) Append(ctx context.Context, sequence int64, row audit.Row) error {
	size, err := l.Size(ctx)
	if err != nil {
		return err
	}
	if sequence != size {
		return fmt.Errorf("store: row %d of an audit log of %d", sequence, size)
	}
	var e struct {
		Actor struct {
			Subject string `json:"subject"`
		} `json:"actor"`
		Action string `json:"action"`
		Target string `json:"target"`
		Tenant string `json:"tenant"`
	}
	if err := json.Unmarshal(row.Record, &e); err != nil {
		return fmt.Errorf("store: the record of an audit entry: %w", err)
	}
	return l.tx.exec("INSERT INTO audit_entry (sequence, record, hash, subject, action, target, tenant) VALUES ($1, $2, $3, $4, $5, $6, $7)",
		sequence, row.Record, row.Hash[:], e.Actor.Subject, e.Action, e.Target, e.Tenant)
}
