package store

import (
	"context"
	"encoding/json"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"
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

// Hashes implements audit.Reader.
func (r AuditReader) Hashes(_ context.Context, indexes []int64) ([]tlog.Hash, error) {
	hashes := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		hash, err := one(r.v, scanBytes, "SELECT hash FROM audit_hash WHERE id = $1", index)
		if err != nil {
			return nil, err
		}
		if hash == nil || len(*hash) != tlog.HashSize {
			return nil, fmt.Errorf("store: the audit log has no hash %d", index)
		}
		copy(hashes[i][:], *hash)
	}
	return hashes, nil
}

func scanBytes(row scanner, b *[]byte) error { return row.Scan(b) }

// Records implements audit.Reader.
func (r AuditReader) Records(_ context.Context, from int64, n int) ([][]byte, error) {
	return many(r.v, scanBytes, "SELECT record FROM audit_entry WHERE sequence >= $1 ORDER BY sequence LIMIT $2", from, page(n))
}

// Checkpoints implements audit.Reader.
func (r AuditReader) Checkpoints(_ context.Context, from int64, n int) ([][]byte, error) {
	return many(r.v, scanBytes, "SELECT note FROM audit_checkpoint WHERE size >= $1 ORDER BY id LIMIT $2", from, page(n))
}

// Newest implements audit.Reader.
func (r AuditReader) Newest(context.Context) ([]byte, error) {
	note, err := one(r.v, scanBytes, "SELECT note FROM audit_checkpoint ORDER BY id DESC LIMIT 1")
	if err != nil || note == nil {
		return nil, err
	}
	return *note, nil
}

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
func (l AuditLog) Append(ctx context.Context, sequence int64, record []byte, hashes []tlog.Hash) error {
	size, err := l.Size(ctx)
	if err != nil {
		return err
	}
	if sequence != size {
		return fmt.Errorf("store: entry %d of an audit log of %d", sequence, size)
	}
	var e struct {
		Actor struct {
			Subject string `json:"subject"`
		} `json:"actor"`
		Action string `json:"action"`
		Target string `json:"target"`
		Tenant string `json:"tenant"`
	}
	if err := json.Unmarshal(record, &e); err != nil {
		return fmt.Errorf("store: the record of an audit entry: %w", err)
	}
	err = l.tx.exec("INSERT INTO audit_entry (sequence, record, subject, action, target, tenant) VALUES ($1, $2, $3, $4, $5, $6)",
		sequence, record, e.Actor.Subject, e.Action, e.Target, e.Tenant)
	if err != nil {
		return err
	}
	for i, hash := range hashes {
		err := l.tx.exec("INSERT INTO audit_hash (id, hash) VALUES ($1, $2)", tlog.StoredHashIndex(0, sequence)+int64(i), hash[:])
		if err != nil {
			return err
		}
	}
	return nil
}

// AppendCheckpoint implements audit.Storage.
func (l AuditLog) AppendCheckpoint(_ context.Context, size int64, checkpoint []byte) error {
	last, err := one(l.v, scanNumber, "SELECT coalesce(max(size), 0) FROM audit_checkpoint")
	if err != nil {
		return err
	}
	if size < *last {
		return fmt.Errorf("store: a checkpoint of %d audit entries after one of %d", size, *last)
	}
	return l.tx.exec("INSERT INTO audit_checkpoint (id, size, note) SELECT coalesce(max(id), 0) + 1, $1, $2 FROM audit_checkpoint", size, checkpoint)
}
