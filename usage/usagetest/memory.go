// Package usagetest has what tests of usage need: the contract of sources, and a source in memory.
package usagetest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/usage"
)

// Memory is a store and a source in memory. It is made by [NewMemory] and safe for concurrent use.
type Memory struct {
	*bucket.Memory

	clock func() time.Time
	// mu guards what follows.
	mu      sync.Mutex
	found   map[bucket.UsageFound]bool
	refused map[usage.Refused]int64
}

var (
	_ usage.Source = (*Memory)(nil)
	_ bucket.Store = (*Memory)(nil)
)

// NewMemory returns one that is empty, by a clock. Nil means time.Now.
func NewMemory(clock func() time.Time) *Memory {
	if clock == nil {
		clock = time.Now
	}
	return &Memory{
		Memory: bucket.NewMemory(bucket.MemoryConfig{Clock: clock}), clock: clock,
		found: make(map[bucket.UsageFound]bool), refused: make(map[usage.Refused]int64),
	}
}

// Take implements [bucket.Store].
func (m *Memory) Take(ctx context.Context, take bucket.Take) (bucket.Result, error) {
	before := m.clock()
	result, err := m.Memory.Take(ctx, take)
	if take.Usage != nil {
		m.mayCount(take.Tenant, bucket.UsageExact, before)
	}
	return result, err
}

// Settle implements [bucket.Store].
func (m *Memory) Settle(ctx context.Context, settlement bucket.Settlement) (bucket.Settled, error) {
	before := m.clock()
	settled, err := m.Memory.Settle(ctx, settlement)
	m.mayCount(settlement.Tenant(), bucket.UsageLocal, before)
	return settled, err
}

// mayCount notes that something may have been counted since a time.
func (m *Memory) mayCount(tenant string, grade bucket.UsageGrade, since time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, at := range [...]time.Time{since, m.clock()} {
		m.found[bucket.UsageFound{Tenant: tenant, Hour: at.UTC().Truncate(time.Hour), Grade: grade}] = true
	}
}

// Refuse has what a run of an instance has refused.
func (m *Memory) Refuse(run string, all ...usage.Refused) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range all {
		m.refused[usage.Refused{Run: run, Tenant: r.Tenant, Limit: r.Limit, Hour: r.Hour.UTC()}] = r.N
	}
}

// Now implements [usage.Source].
func (m *Memory) Now(context.Context) (time.Time, error) { return m.clock(), nil }

// pageSize is how much one page has. It is small, so that tests read many.
const pageSize = 7

// page returns the part of all from a cursor on.
func page[T any](ctx context.Context, all []T, cursor string) (part []T, next string, err error) {
	from := 0
	if cursor != "" {
		if from, err = strconv.Atoi(cursor); err != nil || from < 0 {
			return nil, "", usage.ErrCursor
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, "", err
	}
	from = min(from, len(all))
	to := min(from+pageSize, len(all))
	if to < len(all) {
		next = strconv.Itoa(to)
	}
	return all[from:to], next, nil
}

// Found implements [usage.Source].
func (m *Memory) Found(ctx context.Context, cursor string) (found []bucket.UsageFound, next string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := slices.SortedFunc(maps.Keys(m.found), func(a, b bucket.UsageFound) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), a.Hour.Compare(b.Hour), cmp.Compare(a.Grade, b.Grade))
	})
	part, next, err := page(ctx, all, cursor)
	for _, c := range part {
		read, err := m.ReadUsage(ctx, c.Tenant, c.Hour, c.Grade)
		if err != nil {
			return nil, "", err
		}
		if read != nil {
			found = append(found, c)
		}
	}
	return found, next, err
}

// Refused implements [usage.Source].
func (m *Memory) Refused(ctx context.Context, hour time.Time, cursor string) (refused []usage.Refused, next string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	hour = hour.UTC().Truncate(time.Hour)
	var all []usage.Refused
	for row, n := range m.refused {
		if row.Hour.Equal(hour) {
			row.N = n
			all = append(all, row)
		}
	}
	slices.SortFunc(all, func(a, b usage.Refused) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Limit, b.Limit), cmp.Compare(a.Run, b.Run))
	})
	return page(ctx, all, cursor)
}
