package delivery

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/event/webhook"
)

const (
	// MaxWaiting is how many records of an endpoint wait in a [Memory].
	MaxWaiting = 1000
	// MaxDead is how many dead records of an endpoint a [Memory] keeps.
	MaxDead = 100
	// MaxEndpoints is how many endpoints have records in a [Memory].
	MaxEndpoints = 1000
	// MaxBytes is about how much memory all records of a [Memory] take.
	MaxBytes = 64 << 20
)

// Memory keeps records in a process: up to 1000 that wait and 100 dead ones of each of 1000 endpoints, and no more bytes of an endpoint than are free beside it. It
// remembers no delivered ones. The zero value is empty.
type Memory struct {
	mu        sync.Mutex
	endpoints map[string]*queue
	leases    uint64
	bytes     int
}

var _ Deliveries = (*Memory)(nil)

// queue is what an endpoint has. Both lists have the earliest first.
type queue struct {
	waiting, dead []*held
	bytes         int
}

// held is a record, under lease until a time.
type held struct {
	Record
	until time.Time
}

// size is about how much memory it takes.
func (r *Record) size() int {
	const beside = 512
	return beside + len(r.Endpoint) + len(r.Delivery.ID) + len(r.Delivery.Body)
}

// Put implements [Deliveries].
func (m *Memory) Put(_ context.Context, r Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	q := m.endpoints[r.Endpoint]
	if q == nil {
		if len(m.endpoints) >= MaxEndpoints {
			return ErrFull
		}
		if m.endpoints == nil {
			m.endpoints = map[string]*queue{}
		}
		q = &queue{}
		m.endpoints[r.Endpoint] = q
	}
	same := func(h *held) bool { return h.Delivery.ID == r.Delivery.ID }
	if slices.ContainsFunc(q.waiting, same) || slices.ContainsFunc(q.dead, same) {
		return nil
	}
	size := r.size()
	if len(q.waiting) >= MaxWaiting || q.bytes+size > MaxBytes-m.bytes {
		m.forget(r.Endpoint, q)
		return ErrFull
	}
	m.bytes, q.bytes = m.bytes+size, q.bytes+size
	r.Delivery.Body = slices.Clone(r.Delivery.Body)
	q.waiting = append(q.waiting, &held{Record: r})
	return nil
}

// Due implements [Deliveries]. Endpoints take turns.
func (m *Memory) Due(_ context.Context, now time.Time, lease time.Duration, limit, perEndpoint int) ([]Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var lists [][]*held
	for _, q := range m.endpoints {
		if due := q.due(now, perEndpoint); len(due) > 0 {
			lists = append(lists, due)
		}
	}
	var all []Record
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

// Done implements [Deliveries].
func (m *Memory) Done(_ context.Context, r Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	q := m.endpoints[r.Endpoint]
	if q == nil {
		return ErrLease
	}
	i := slices.IndexFunc(q.waiting, func(h *held) bool { return h.Delivery.ID == r.Delivery.ID && h.Lease == r.Lease && r.Lease != 0 })
	if i < 0 {
		return ErrLease
	}
	h := q.waiting[i]
	body := h.Delivery.Body
	h.Delivery, h.Lease, h.until = r.Delivery, 0, time.Time{}
	h.Delivery.Body = body
	if h.Delivery.State == webhook.Waiting {
		return nil
	}
	q.waiting = slices.Delete(q.waiting, i, i+1)
	leaves := h
	if h.Delivery.State == webhook.Dead {
		leaves = nil
		q.dead = append(q.dead, h)
		if len(q.dead) > MaxDead {
			leaves = q.dead[0]
			q.dead = slices.Delete(q.dead, 0, 1)
		}
	}
	if leaves != nil {
		m.bytes, q.bytes = m.bytes-leaves.size(), q.bytes-leaves.size()
	}
	m.forget(r.Endpoint, q)
	return nil
}

// forget lets go of an endpoint that has nothing.
func (m *Memory) forget(endpoint string, q *queue) {
	if len(q.waiting)+len(q.dead) == 0 {
		delete(m.endpoints, endpoint)
	}
}

// Dead implements [Deliveries].
func (m *Memory) Dead(_ context.Context, endpoint string, limit int) ([]Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	q := cmp.Or(m.endpoints[endpoint], &queue{})
	var all []Record
	for _, h := range slices.Backward(q.dead) {
		if len(all) < limit {
			all = append(all, h.Record)
		}
	}
	return all, nil
}

// Replay implements [Deliveries].
func (m *Memory) Replay(_ context.Context, endpoint, id string, now time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	q := cmp.Or(m.endpoints[endpoint], &queue{})
	i := slices.IndexFunc(q.dead, func(h *held) bool { return h.Delivery.ID == id })
	switch {
	case i < 0:
		return ErrNotDead
	case len(q.waiting) >= MaxWaiting:
		return ErrFull
	}
	h := q.dead[i]
	h.Delivery = h.Delivery.Replay(now)
	q.dead = slices.Delete(q.dead, i, i+1)
	q.waiting = append(q.waiting, h)
	return nil
}
