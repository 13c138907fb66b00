package directory

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"slices"
	"sync"
)

// Memory is a [Source] and a [Writer] in the memory of this process, for tests and for servers that have the records
// themselves. It is made by [NewMemory], and safe for concurrent use. It keeps the name of each tenant that was ever written.
type Memory struct {
	mu      sync.Mutex
	mark    Mark
	records map[string]Record
	changes map[string]uint64
}

var (
	_ Source = (*Memory)(nil)
	_ Writer = (*Memory)(nil)
)

// NewMemory returns a source without records.
func NewMemory() *Memory {
	return &Memory{mark: Mark{Origin: rand.Text()}, records: make(map[string]Record), changes: make(map[string]uint64)}
}

// Tenant implements [Source].
func (m *Memory) Tenant(ctx context.Context, tenant string) (*Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.ready(ctx); err != nil {
		return nil, err
	}
	r, found := m.records[tenant]
	if !found {
		return nil, nil
	}
	r.Document = bytes.Clone(r.Document)
	return &r, nil
}

// Changes implements [Source].
func (m *Memory) Changes(ctx context.Context, since Mark) (Page, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.ready(ctx); err != nil {
		return Page{}, err
	}
	if since.Origin != m.mark.Origin || since.Revision > m.mark.Revision {
		return Page{Through: m.mark, Gap: true}, nil
	}
	page := Page{Through: m.mark}
	for tenant, revision := range m.changes {
		if revision > since.Revision {
			page.Changes = append(page.Changes, Change{tenant, revision})
		}
	}
	slices.SortFunc(page.Changes, func(a, b Change) int { return cmp.Compare(a.Revision, b.Revision) })
	if page.More = len(page.Changes) > MaxPage; page.More {
		page.Changes = page.Changes[:MaxPage]
		page.Through.Revision = page.Changes[MaxPage-1].Revision
	}
	return page, nil
}

func (m *Memory) ready(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if m.mark.Revision == 0 {
		return ErrEmpty
	}
	return nil
}

// Put implements [Writer].
func (m *Memory) Put(ctx context.Context, tenant string, document []byte, expected uint64) (revision uint64, err error) {
	if err := CheckPut(tenant, document); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	was := m.records[tenant]
	if m.mark.Revision > 0 && bytes.Equal(was.Document, document) {
		return was.Revision, nil
	}
	if was.Revision != expected {
		return 0, &ConflictError{There: was.Revision}
	}
	m.mark.Revision++
	m.changes[tenant] = m.mark.Revision
	if len(document) == 0 {
		delete(m.records, tenant)
	} else {
		m.records[tenant] = Record{Tenant: tenant, Revision: m.mark.Revision, Document: bytes.Clone(document)}
	}
	return m.mark.Revision, nil
}
