package audit

import (
	"context"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"
)

// Reader reads a log.
type Reader interface {
	// Size returns how many entries there are.
	Size(ctx context.Context) (int64, error)
	// Hashes returns the hashes that were stored at the indexes, in their order; each is below tlog.StoredHashIndex(0, size).
	Hashes(ctx context.Context, indexes []int64) ([]tlog.Hash, error)
	// Records returns the records of at most n entries from a sequence on, in order, as exact bytes. None where there are none.
	Records(ctx context.Context, from int64, n int) ([][]byte, error)
	// Checkpoints returns at most n signed checkpoints of a size of at least from, in the order in which they were stored, as exact
	// bytes.
	Checkpoints(ctx context.Context, from int64, n int) ([][]byte, error)
	// Newest returns the checkpoint that was stored last, or nil.
	Newest(ctx context.Context) ([]byte, error)
}

// Storage keeps a log. It is a transaction: what it reads is what it wrote and what was committed before, and from the first
// call on nobody else appends until it ends. Otherwise the log would fork. Package audittest is the contract.
type Storage interface {
	Reader
	// Append stores the record of an entry and the hashes that come with it, the first of them at the index
	// tlog.StoredHashIndex(0, sequence). The sequence is the size.
	Append(ctx context.Context, sequence int64, record []byte, hashes []tlog.Hash) error
	// AppendCheckpoint stores a signed checkpoint of a size: at least that of the one before.
	AppendCheckpoint(ctx context.Context, size int64, checkpoint []byte) error
}

// Log is where a log is kept. It is safe for concurrent use.
type Log interface {
	// Change runs a transaction: what change has done is committed if it returns nil, and otherwise taken back. It may run change
	// more than once, where a database says that it is to be tried again. The storage is no use after change has returned.
	Change(ctx context.Context, change func(ctx context.Context, storage Storage) error) error
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
	hashes, err := tlog.StoredHashes(size, record, hashReader(ctx, storage))
	if err != nil {
		return nil, fmt.Errorf("audit: hash entry %d: %w", size, err)
	}
	if err := storage.Append(ctx, size, record, hashes); err != nil {
		return nil, fmt.Errorf("audit: append entry %d: %w", size, err)
	}
	return &e, nil
}

// hashReader reads hashes for package tlog.
func hashReader(ctx context.Context, r Reader) tlog.HashReader {
	return tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		if len(indexes) == 0 {
			return nil, nil
		}
		return r.Hashes(ctx, indexes)
	})
}

// Root returns the root of the tree over the first entries of a log.
func Root(ctx context.Context, r Reader, size int64) (tlog.Hash, error) {
	root, err := tlog.TreeHash(size, hashReader(ctx, r))
	if err != nil {
		return tlog.Hash{}, fmt.Errorf("audit: the root of %d entries: %w", size, err)
	}
	return root, nil
}
