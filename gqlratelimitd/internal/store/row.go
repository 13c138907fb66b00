package store

import (
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// exec writes. The error of a statement without rows is none.
func (tx *Tx) exec(query string, args ...any) error {
	if _, err := tx.tx.ExecContext(tx.ctx, query, args...); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// affect writes, and returns how many rows it has written.
func (tx *Tx) affect(query string, args ...any) (int64, error) {
	result, err := tx.tx.ExecContext(tx.ctx, query, args...)
	if err != nil {
		return 0, fmt.Errorf("store: %w", err)
	}
	n, err := result.RowsAffected()
	if err != nil {
		return 0, fmt.Errorf("store: %w", err)
	}
	return n, nil
}

// scanner is a row.
type scanner interface{ Scan(dest ...any) error }

// one reads at most one row, and returns nil if there is none.
func one[T any](v *View, read func(scanner, *T) error, query string, args ...any) (*T, error) {
	var found T
	err := read(v.tx.QueryRowContext(v.ctx, query, args...), &found)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return &found, nil
}

// many reads the rows.
func many[T any](v *View, read func(scanner, *T) error, query string, args ...any) (found []T, _ error) {
	rows, err := v.tx.QueryContext(v.ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var next T
		if err := read(rows, &next); err != nil {
			return nil, fmt.Errorf("store: %w", err)
		}
		found = append(found, next)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return found, nil
}

// MaxPage is how many rows are read at once: what asks for more is given so many.
const MaxPage = 1000

// page bounds how many rows somebody asks for.
func page(n int) int { return max(0, min(n, MaxPage)) }

// micros is a time as it is stored.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// instant is a column of such a time.
type instant struct{ at *time.Time }

// Scan implements sql.Scanner.
func (i instant) Scan(from any) error {
	us, ok := from.(int64)
	if !ok {
		return fmt.Errorf("a time of type %T", from)
	}
	if us != 0 {
		*i.at = time.UnixMicro(us).UTC()
	}
	return nil
}

// flag is a truth as it is stored.
func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// stored is bytes that are not NULL: drivers make NULL of nil.
func stored(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
