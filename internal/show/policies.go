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

// policies are those of the limits of one snapshot.
type policies struct {
	of *tiers.Snapshot
	// items has strings by *bucket.Limit, and n is about how many.
	items sync.Map
	n     atomic.Int64
}

// maxPolicies is of how many limits items are remembered, those of exceptions in large policies left out.
const maxPolicies = 4096

// under returns what is remembered of the snapshot. That of an older one is forgotten.
func (p *Policies) under(snapshot *tiers.Snapshot) *policies {
	held := p.held.Load()
	if held == nil || held.of != snapshot {
		held = &policies{of: snapshot}
		p.held.Store(held)
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
	item := policyItem(l.Limit)
	if p.n.Add(1) <= maxPolicies {
		p.items.Store(l.Limit, item)
	}
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
