package audit

import (
	"context"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"
)

// ProveEntry returns the proof that an entry is one of the first size entries of the log: about log2(size) hashes, which
// [CheckEntry] checks against a checkpoint of that size.
func ProveEntry(ctx context.Context, r Reader, sequence, size int64) ([]tlog.Hash, error) {
	if err := within(ctx, r, size); err != nil {
		return nil, err
	}
	proof, err := tlog.ProveRecord(size, sequence, hashReader(ctx, r))
	if err != nil {
		return nil, fmt.Errorf("audit: prove entry %d of %d: %w", sequence, size, err)
	}
	return proof, nil
}

// ProveGrowth returns the proof that a log of newer entries begins with the older ones: about 2 log2(newer) hashes, which
// [CheckGrowth] checks against checkpoints of both sizes.
func ProveGrowth(ctx context.Context, r Reader, older, newer int64) ([]tlog.Hash, error) {
	if err := within(ctx, r, newer); err != nil || older == 0 {
		return nil, err
	}
	proof, err := tlog.ProveTree(newer, older, hashReader(ctx, r))
	if err != nil {
		return nil, fmt.Errorf("audit: prove that %d entries begin with %d: %w", newer, older, err)
	}
	return proof, nil
}

// within returns an error if the log has fewer entries.
func within(ctx context.Context, r Reader, size int64) error {
	have, err := r.Size(ctx)
	if err != nil {
		return fmt.Errorf("audit: the size of the log: %w", err)
	}
	if size < 0 || size > have {
		return fmt.Errorf("audit: a proof about %d entries, where the log has %d", size, have)
	}
	return nil
}

// CheckEntry returns nil if the record is the entry with this sequence in the log of a checkpoint, and otherwise a [*TamperError].
// It needs no log. Open the checkpoint with [OpenCheckpoint] first.
func CheckEntry(c *Checkpoint, sequence int64, record []byte, proof []tlog.Hash) error {
	if err := tlog.CheckRecord(proof, c.Size, c.Root, sequence, tlog.RecordHash(record)); err != nil {
		return &TamperError{From: sequence, To: sequence + 1, Problem: "the record is not proven to be this entry of the log"}
	}
	return nil
}

// CheckGrowth returns nil if the log of the newer checkpoint begins with that of the older one, and otherwise a [*TamperError].
// It needs no log. Open the checkpoints with [OpenCheckpoint] first.
func CheckGrowth(older, newer *Checkpoint, proof []tlog.Hash) error {
	broken := &TamperError{From: 0, To: older.Size, Problem: "the newer checkpoint is not proven to be of the same log, added to and nothing else"}
	switch {
	case older.Name != newer.Name || older.Size > newer.Size:
		return broken
	case older.Size == 0:
		return nil
	}
	if err := tlog.CheckTree(proof, newer.Size, newer.Root, older.Size, older.Root); err != nil {
		return broken
	}
	return nil
}

// TamperError says that a log is not what it was: what is to be looked at lies among the entries from From on, before To.
type TamperError struct {
	From, To int64
	Problem  string
}

// Error says where and what.
func (e *TamperError) Error() string {
	if e.To == e.From+1 {
		return fmt.Sprintf("audit: entry %d: %s", e.From, e.Problem)
	}
	return fmt.Sprintf("audit: entries %d to %d: %s", e.From, e.To-1, e.Problem)
}
