package delivery_test

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/webhook"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/webhook/delivery"
)

const (
	// maxWaiting is how many records of an endpoint wait in a memory, and maxDead how many dead ones it keeps.
	maxWaiting = 1000
	maxDead    = 100
)

// memory keeps records in this process. It remembers no delivered ones. The zero value is empty.
type memory struct {
	mu        sync.Mutex
	endpoints map[string]*queue
	leases    uint64
}

var _ delivery.Deliveries = (*memory)(nil)

// queue is what an endpoint has. Both lists have the earliest first.
type queue struct {
	waiting, dead []*held
}

// held is a record, under lease until a time.
type held struct {
	delivery.Record

	until time.Time
}

// Put stores a record that waits.
func (m *memory) Put(_ context.Context, r delivery.Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.endpoints == nil {
		m.endpoints = map[string]*queue{}
	}
	q := m.endpoints[r.Endpoint]
	if q == nil {
		q = &queue{}
		m.endpoints[r.Endpoint] = q
	}
	same := func(h *held) bool { return h.Delivery.ID == r.Delivery.ID }
	if slices.ContainsFunc(q.waiting, same) || slices.ContainsFunc(q.dead, same) {
		return nil
	}
	if len(q.waiting) >= maxWaiting {
		return delivery.ErrFull
	}
	r.Delivery.Body = slices.Clone(r.Delivery.Body)
	q.waiting = append(q.waiting, &held{Record: r})
	return nil
}

// Due implements [delivery.Deliveries]. Endpoints take turns.
func (m *memory) Due(_ context.Context, now time.Time, lease time.Duration, limit, perEndpoint int) ([]delivery.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var lists [][]*held
	for _, q := range m.endpoints {
		if due := q.due(now, perEndpoint); len(due) > 0 {
			lists = append(lists, due)
		}
	}
	var all []delivery.Record
	for turn := range perEndpoint {
		for _, due := range lists {
			if turn >= len(due) || len(all) >= limit {
				continue
			}
			m.leases++
			due[turn].Lease, due[turn].until = m.leases, now.Add(lease)
			all = append(all, due[turn].Record)
		}
	}
	return all, nil
}

// due returns what may be leased of an endpoint.
func (q *queue) due(now time.Time, most int) (due []*held) {
	for _, h := range q.waiting {
		switch {
		case h.until.After(now):
			most--
		case !h.Delivery.Due.After(now):
			due = append(due, h)
		}
	}
	slices.SortStableFunc(due, func(a, b *held) int { return a.Delivery.Due.Compare(b.Delivery.Due) })
	return due[:min(len(due), max(most, 0))]
}

// Done implements [delivery.Deliveries].
func (m *memory) Done(_ context.Context, r delivery.Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	q := m.endpoints[r.Endpoint]
	if q == nil {
		return delivery.ErrLease
	}
	i := slices.IndexFunc(q.waiting, func(h *held) bool { return h.Delivery.ID == r.Delivery.ID && h.Lease == r.Lease && r.Lease != 0 })
	if i < 0 {
		return delivery.ErrLease
	}
	h := q.waiting[i]
	body := h.Delivery.Body
	h.Delivery, h.Lease, h.until = r.Delivery, 0, time.Time{}
	h.Delivery.Body = body
	if h.Delivery.State == webhook.Waiting {
		return nil
	}
	q.waiting = slices.Delete(q.waiting, i, i+1)
	if h.Delivery.State == webhook.Dead {
		q.dead = append(q.dead, h)
		q.dead = q.dead[max(0, len(q.dead)-maxDead):]
	}
	return nil
}

// Dead returns up to limit dead records of an endpoint, the latest first.
func (m *memory) Dead(_ context.Context, endpoint string, limit int) ([]delivery.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	q := cmp.Or(m.endpoints[endpoint], &queue{})
	var all []delivery.Record
	for _, h := range slices.Backward(q.dead) {
		if len(all) < limit {
			all = append(all, h.Record)
		}
	}
	return all, nil
}
