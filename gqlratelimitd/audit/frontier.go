package audit

import (
	"context"
	"fmt"
	"math/bits"

	"golang.org/x/mod/sumdb/tlog"
)

// frontier is what a tree has to be remembered by so that it can grow: the roots of its complete subtrees, from the largest, one for
// each bit of the size.
type frontier struct {
	size  int64
	roots []tlog.Hash
}

// add adds a record.
func (f *frontier) add(record []byte) {
	hash := tlog.RecordHash(record)
	for range bits.TrailingZeros64(^uint64(f.size)) {
		last := len(f.roots) - 1
		hash = tlog.NodeHash(f.roots[last], hash)
		f.roots = f.roots[:last]
	}
	f.roots = append(f.roots, hash)
	f.size++
}

// root returns the root of the tree. It is the zero hash where there is no record, as a checkpoint of an empty log has it.
func (f *frontier) root() tlog.Hash {
	if len(f.roots) == 0 {
		return tlog.Hash{}
	}
	hash := f.roots[len(f.roots)-1]
	for i := len(f.roots) - 2; i >= 0; i-- {
		hash = tlog.NodeHash(f.roots[i], hash)
	}
	return hash
}

// frontierOf reads the frontier of the first size entries of a log.
func frontierOf(ctx context.Context, r Reader, size int64) (*frontier, error) {
	f := &frontier{size: size}
	if size == 0 {
		return f, nil
	}
	indexes := make([]int64, 0, bits.OnesCount64(uint64(size)))
	begin := int64(0)
	for level := bits.Len64(uint64(size)) - 1; level >= 0; level-- {
		if size>>level&1 == 1 {
			indexes = append(indexes, tlog.StoredHashIndex(level, begin>>level))
			begin += 1 << level
		}
	}
	roots, err := r.Hashes(ctx, indexes)
	if err != nil {
		return nil, fmt.Errorf("audit: read %d hashes: %w", len(indexes), err)
	}
	f.roots = roots
	return f, nil
}
