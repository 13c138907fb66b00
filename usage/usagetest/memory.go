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
	found   map[usage.Counted]bool
	counted map[int64]map[usage.Counted]bool
	reports map[int64]map[reportKey]usage.Report
}

var (
	_ usage.Source = (*Memory)(nil)
	_ bucket.Store = (*Memory)(nil)
)

// reportKey is what a later report takes the place of.
type reportKey struct {
	instance, boot, tenant string
	minute                 int64
}

// NewMemory returns one that is empty, by a clock. Nil means time.Now.
func NewMemory(clock func() time.Time) *Memory {
	if clock == nil {
		clock = time.Now
	}
	return &Memory{
		Memory: bucket.NewMemory(bucket.MemoryConfig{Clock: clock}), clock: clock, found: make(map[usage.Counted]bool),
		counted: make(map[int64]map[usage.Counted]bool), reports: make(map[int64]map[reportKey]usage.Report),
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
		m.found[usage.Counted{Tenant: tenant, Hour: at.UTC().Truncate(time.Hour), Grade: grade}] = true
	}
}

// Tell tells a batch of a run of an instance in a minute.
func (m *Memory) Tell(told time.Time, instance, boot string, batch usage.Batch) {
	m.mu.Lock()
	defer m.mu.Unlock()
	minute := told.Unix() / 60
	if m.counted[minute] == nil {
		m.counted[minute], m.reports[minute] = make(map[usage.Counted]bool), make(map[reportKey]usage.Report)
	}
	for _, c := range batch.Counted {
		c.Hour = c.Hour.UTC()
		m.counted[minute][c] = true
	}
	said := make(map[reportKey]usage.Report)
	of := func(tenant string, at time.Time) reportKey { return reportKey{instance, boot, tenant, at.Unix() / 60} }
	for _, d := range batch.Decisions {
		r := said[of(d.Tenant, d.Minute)]
		r.Decisions = append(r.Decisions, d)
		said[of(d.Tenant, d.Minute)] = r
	}
	for _, d := range batch.Reached {
		r := said[of(d.Tenant, d.Minute)]
		r.Reached = append(r.Reached, d)
		said[of(d.Tenant, d.Minute)] = r
	}
	for key, r := range said {
		r.Instance, r.Boot = instance, boot
		m.reports[minute][key] = r
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

func sorted(all map[usage.Counted]bool) []usage.Counted {
	return slices.SortedFunc(maps.Keys(all), func(a, b usage.Counted) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), a.Hour.Compare(b.Hour), cmp.Compare(a.Grade, b.Grade))
	})
}

// Counted implements [usage.Source].
func (m *Memory) Counted(ctx context.Context, told time.Time, cursor string) (counted []usage.Counted, next string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return page(ctx, sorted(m.counted[told.Unix()/60]), cursor)
}

// Found implements [usage.Source].
func (m *Memory) Found(ctx context.Context, cursor string) (found []usage.Counted, next string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	part, next, err := page(ctx, sorted(m.found), cursor)
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

// Reports implements [usage.Source].
func (m *Memory) Reports(ctx context.Context, told time.Time, cursor string) (reports []usage.Report, next string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	of := m.reports[told.Unix()/60]
	var all []usage.Report
	for _, key := range slices.SortedFunc(maps.Keys(of), func(a, b reportKey) int {
		return cmp.Or(cmp.Compare(a.instance, b.instance), cmp.Compare(a.boot, b.boot), cmp.Compare(a.tenant, b.tenant), cmp.Compare(a.minute, b.minute))
	}) {
		all = append(all, of[key])
	}
	return page(ctx, all, cursor)
}
