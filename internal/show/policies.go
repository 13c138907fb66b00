package show

import (
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// Policies remembers items of RateLimit-Policy, which never change while a policy holds. The zero value remembers nothing yet. It
// is safe for concurrent use.
type Policies struct{ held atomic.Pointer[policies] }

// policies are those of limits of one snapshot that were asked for lately.
type policies struct {
	of *tiers.Snapshot
	// items has strings by *bucket.Limit, and n is about how many.
	items sync.Map
	n     atomic.Int64
	// before are those that were asked for until these began, nil if none were, or nobody asks any more. Limits of records go
	// whenever their tenant is forgotten, so that what is never looked up again has to go as well.
	before atomic.Pointer[policies]
}

// maxPolicies is of how many limits items are remembered at least, and twice as many at most.
const maxPolicies = 2048

// under returns what is remembered of the snapshot. That of an older one is forgotten.
func (p *Policies) under(snapshot *tiers.Snapshot) *policies {
	held := p.held.Load()
	switch {
	case held == nil || held.of != snapshot:
		held = &policies{of: snapshot}
		p.held.Store(held)
	case held.n.Load() >= maxPolicies:
		next := &policies{of: snapshot}
		next.before.Store(held)
		if p.held.CompareAndSwap(held, next) {
			held.before.Store(nil)
			held = next
		}
	}
	return held
}

// item returns the item of a limit of a tenant, such as "minute";q=1000;w=60;qu="points".
func (p *policies) item(l *bucket.LimitState) string {
	// An override record makes a limit of its own each time.
	if l.Overridden {
		return policyItem(l.Limit)
	}
	if known, found := p.items.Load(l.Limit); found {
		item, _ := known.(string)
		return item
	}
	item := ""
	if before := p.before.Load(); before != nil {
		known, _ := before.items.Load(l.Limit)
		item, _ = known.(string)
	}
	if item == "" {
		item = policyItem(l.Limit)
	}
	p.items.Store(l.Limit, item)
	p.n.Add(1)
	return item
}

// policyItem writes an item. The window of a token bucket is the time in which it fills.
func policyItem(l *bucket.Limit) string {
	b := appendLimitName(nil, bucket.Tenant, "", l.Name)
	b = append(b, ";q="...)
	b = strconv.AppendInt(b, min(l.Capacity, maxStructuredInteger), 10)
	b = append(b, ";w="...)
	b = strconv.AppendInt(b, wholeSeconds(l.Length()), 10)
	if l.Unit != bucket.Requests {
		b = append(b, `;qu="`...)
		b = appendStructured(b, string(l.Unit))
		b = append(b, '"')
	}
	return string(b)
}
