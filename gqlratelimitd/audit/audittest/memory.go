package audittest

import (
	"context"
	"errors"
	"slices"
	"sync"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
)

// Memory is a log in memory, for tests. The zero value is an empty one. It is safe for concurrent use.
type Memory struct {
	// changing is held by the change under way.
	changing    sync.Mutex
	mu          sync.Mutex
	records     [][]byte
	hashes      []tlog.Hash
	checkpoints []checkpoint
}

var _ interface {
	audit.Log
	audit.Storage
} = (*Memory)(nil)

// checkpoint is a signed checkpoint and its size.
type checkpoint struct {
	size int64
	note []byte
}

var (
	errFork  = errors.New("audittest: not what comes next: the log would fork")
	errIndex = errors.New("audittest: no hash at this index")
)

// Change makes changes one after the other, and takes back what a change that fails has written.
func (m *Memory) Change(ctx context.Context, change func(context.Context, audit.Storage) error) error {
	m.changing.Lock()
	defer m.changing.Unlock()
	m.mu.Lock()
	records, hashes, checkpoints := m.records, m.hashes, m.checkpoints
	m.mu.Unlock()
	err := change(ctx, m)
	if err != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.records, m.hashes, m.checkpoints = records, hashes, checkpoints
	}
	return err
}

// Size returns how many entries there are.
func (m *Memory) Size(context.Context) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return int64(len(m.records)), nil
}

// Hashes returns the hashes at the indexes.
func (m *Memory) Hashes(_ context.Context, indexes []int64) ([]tlog.Hash, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	hashes := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		if index < 0 || index >= int64(len(m.hashes)) {
			return nil, errIndex
		}
		hashes[i] = m.hashes[index]
	}
	return hashes, nil
}

// Records returns records from a sequence on.
func (m *Memory) Records(_ context.Context, from int64, n int) ([][]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if from < 0 || from >= int64(len(m.records)) {
		return nil, nil
	}
	rest := m.records[from:]
	return slices.Clone(rest[:min(n, len(rest))]), nil
}

// Checkpoints returns checkpoints from a size on.
func (m *Memory) Checkpoints(_ context.Context, from int64, n int) ([][]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var found [][]byte
	for _, c := range m.checkpoints {
		if c.size >= from && len(found) < n {
			found = append(found, c.note)
		}
	}
	return found, nil
}

// Newest returns the newest checkpoint.
func (m *Memory) Newest(context.Context) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.checkpoints) == 0 {
		return nil, nil
	}
	return m.checkpoints[len(m.checkpoints)-1].note, nil
}

// Append appends a record and its hashes.
func (m *Memory) Append(_ context.Context, sequence int64, record []byte, hashes []tlog.Hash) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if sequence != int64(len(m.records)) || int64(len(m.hashes)) != tlog.StoredHashIndex(0, sequence) {
		return errFork
	}
	m.records = append(m.records, slices.Clone(record))
	m.hashes = append(m.hashes, hashes...)
	return nil
}

// AppendCheckpoint appends a checkpoint.
func (m *Memory) AppendCheckpoint(_ context.Context, size int64, note []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.checkpoints); n > 0 && size < m.checkpoints[n-1].size {
		return errFork
	}
	m.checkpoints = append(m.checkpoints, checkpoint{size, slices.Clone(note)})
	return nil
}
