package report

import (
	"sync"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/event/stream"
	"github.com/gqlgen-ratelimit/ratelimit/internal/pseudonym"
)

const (
	// maxPending is how many events wait for the next write.
	maxPending = 1024
	// A tenant writes tenantBurst events at once, and then one in tenantPause. So one that is refused all the time leaves the stream to others.
	tenantBurst = 64
	tenantPause = 10 * time.Second
	// maxTenants is how many tenants are remembered that have written of late. Those without room share one allowance.
	maxTenants = 4096
)

// pending are the events that wait to be written. It is safe for concurrent use.
type pending struct {
	mu      sync.Mutex
	waiting []event.Event
	// waits is how many events of a tenant wait.
	waits map[string]int
	// spent is until when the allowance of a tenant is not whole again.
	spent map[string]time.Time
	// forgotten is when tenants were last forgotten.
	forgotten time.Time
	dropped   uint64
}

func newPending() *pending {
	return &pending{waits: make(map[string]int), spent: make(map[string]time.Time)}
}

// push takes an event, and reports whether it did. A tenant has at most as much of the room as is still free.
func (p *pending) push(e event.Event, now time.Time) bool {
	tenant, ok := stream.Goes(e)
	if !ok {
		return false
	}
	tenant = pseudonym.Cut(tenant)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waits[tenant] >= maxPending-len(p.waiting) || tenant != "" && !p.allow(tenant, now) {
		p.dropped++
		return false
	}
	p.waiting = append(p.waiting, e)
	p.waits[tenant]++
	return true
}

// allow takes one event from the allowance of a tenant.
func (p *pending) allow(tenant string, now time.Time) bool {
	const most = tenantBurst * tenantPause
	until, known := p.spent[tenant]
	if !known && len(p.spent) >= maxTenants {
		p.forget(now)
		if len(p.spent) >= maxTenants {
			// No tenant has this name.
			tenant = ""
			until = p.spent[tenant]
		}
	}
	// A clock that was set back does not keep a tenant waiting for longer than a whole allowance takes.
	if until.Before(now) || until.Sub(now) > most {
		until = now
	}
	if until.Add(tenantPause).Sub(now) > most {
		return false
	}
	p.spent[tenant] = until.Add(tenantPause)
	return true
}

// forget forgets the tenants whose allowance is whole, once a second.
func (p *pending) forget(now time.Time) {
	if since := now.Sub(p.forgotten); since >= 0 && since < time.Second {
		return
	}
	p.forgotten = now
	for tenant, until := range p.spent {
		if !until.After(now) {
			delete(p.spent, tenant)
		}
	}
}

// take returns the events that wait, and leaves none.
func (p *pending) take() []event.Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := p.waiting
	p.waiting = nil
	clear(p.waits)
	return taken
}

// count is how many events were dropped.
func (p *pending) count() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dropped
}

// drop counts events that were taken and not written.
func (p *pending) drop(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropped += uint64(n)
}
