package audit

import (
	"context"
	"fmt"
)

// Reader reads a log.
type Reader interface {
	// Size returns how many rows there are.
	Size(ctx context.Context) (int64, error)
	// Rows returns at most n rows from a number on, in order. None where there are none.
	Rows(ctx context.Context, from int64, n int) ([]Row, error)
}

// Storage keeps a log. It is a transaction: it reads what it wrote and what was committed before, and from the first call on nobody
// else appends until it ends. Otherwise the log would fork.
type Storage interface {
	Reader
	// Append stores a row. The sequence is the size; any other one is an error.
	Append(ctx context.Context, sequence int64, row Row) error
}

// Append appends an entry to a log, within the transaction of the change that it is about. It sets the sequence, truncates the
// time, and returns the entry as it is stored. The error is an [*EntryError] where the entry is none, and nothing is stored then.
func Append(ctx context.Context, storage Storage, e Entry) (*Entry, error) {
	size, err := storage.Size(ctx)
	if err != nil {
		return nil, fmt.Errorf("audit: the size of the log: %w", err)
	}
	e.Sequence, e.Time = size, truncated(e.Time)
	record, err := e.Record()
	if err != nil {
		return nil, err
	}
	before, err := lastHash(ctx, storage, size)
	if err != nil {
		return nil, err
	}
	if err := storage.Append(ctx, size, Row{Record: record, Hash: ChainHash(before, record)}); err != nil {
		return nil, fmt.Errorf("audit: append row %d: %w", size, err)
	}
	return &e, nil
}

// lastHash returns the hash of the last row of a log of a size.
func lastHash(ctx context.Context, r Reader, size int64) (Hash, error) {
	if size == 0 {
		return Hash{}, nil
	}
	rows, err := r.Rows(ctx, size-1, 1)
	if err != nil {
		return Hash{}, fmt.Errorf("audit: read row %d: %w", size-1, err)
	}
	if len(rows) != 1 {
		return Hash{}, &TamperError{Row: size - 1, Problem: "is counted and is not there"}
	}
	return rows[0].Hash, nil
}

// page is how many rows are read at once: 10 MiB at most.
const page = 64

// each calls a function for each row that a log has, in order, a page at a time. Rows that are appended meanwhile are passed too.
func each(ctx context.Context, r Reader, do func(Row) error) error {
	for from := int64(0); ; {
		rows, err := r.Rows(ctx, from, page)
		if err != nil {
			return fmt.Errorf("audit: read rows from %d: %w", from, err)
		}
		for _, row := range rows {
			if err := do(row); err != nil {
				return err
			}
		}
		if len(rows) < page {
			return nil
		}
		from += int64(len(rows))
	}
}
