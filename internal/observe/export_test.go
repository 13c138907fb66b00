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
