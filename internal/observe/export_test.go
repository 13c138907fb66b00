package observe

import "time"

// TenantNames are the names that metrics have for tenants.
type TenantNames = tenantNames

// NewTenantNames names so many of the busiest.
func NewTenantNames(top int) *TenantNames { return newTenantNames(nil, top) }

// Name counts an operation of the tenant.
func (t *tenantNames) Name(tenant string) string { return t.name(tenant) }

// Look lets the names follow the counters.
func (t *tenantNames) Look() { t.look(time.Now()) }

// Early finds clients that retry early.
type Early = early

// NewEarly returns an empty one.
func NewEarly() *Early { return newEarly() }

// Refused notes a refusal.
func (e *early) Refused(tenant, user string, now time.Time, retryAfter time.Duration) bool {
	return e.refused(tenant, user, now, retryAfter)
}

// Room is how many clients there is room for.
func (e *early) Room() int {
	room := 0
	for i := range e.parts {
		room += len(e.parts[i].places)
	}
	return room
}
