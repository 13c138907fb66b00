package audittest

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
)

// Memory is a log in memory, for tests. The zero value is an empty one. It is safe for concurrent use.
type Memory struct {
	// changing is held by the change under way.
	changing sync.Mutex
	mu       sync.Mutex
	rows     []audit.Row
}

var _ interface {
	audit.Log
	audit.Storage
} = (*Memory)(nil)

var errFork = errors.New("audittest: not what comes next: the log would fork")

// NewMemory returns a log of these rows, whatever they are: as of a database that somebody else has written.
func NewMemory(rows []audit.Row) *Memory { return &Memory{rows: slices.Clone(rows)} }

// Change makes changes one after the other, and takes back what a change that fails has written.
func (m *Memory) Change(ctx context.Context, change func(context.Context, audit.Storage) error) error {
	m.changing.Lock()
	defer m.changing.Unlock()
	m.mu.Lock()
	rows := m.rows
	m.mu.Unlock()
	err := change(ctx, m)
	if err != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.rows = rows
	}
	return err
}

// Size returns how many rows there are.
func (m *Memory) Size(context.Context) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return int64(len(m.rows)), nil
}

// Rows returns rows from a number on.
func (m *Memory) Rows(_ context.Context, from int64, n int) ([]audit.Row, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if from < 0 || from >= int64(len(m.rows)) {
		return nil, nil
	}
	rest := m.rows[from:]
	return slices.Clone(rest[:min(n, len(rest))]), nil
}

// Append appends a row.
func (m *Memory) Append(_ context.Context, sequence int64, row audit.Row) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if sequence != int64(len(m.rows)) {
		return errFork
	}
	row.Record = bytes.Clone(row.Record)
	m.rows = append(m.rows, row)
	return nil
}
