package access

// Role is what an actor is to the control plane. An actor with several may do what any of them may. There are five, in
// code: what a role may do is not a matter of configuration, so that it can be read, tested and reviewed.
type Role string

// The roles.
const (
	// Viewer reads policies, the fleet, tenants and usage, and changes nothing.
	Viewer Role = "viewer"
	// TenantAdmin reads what is about their own tenants, and divides their limits among teams and users. Actor.Tenants names
	// them.
	TenantAdmin Role = "tenant-admin"
	// Operator deals with incidents: overrides, blocks, budgets, emergency modes, and going back to an earlier policy.
	Operator Role = "operator"
	// Publisher changes policies and assigns tenants.
	Publisher Role = "publisher"
	// Auditor reads everything, the audit log included, and changes nothing.
	Auditor Role = "auditor"
)

// Roles returns all roles.
func Roles() []Role { return []Role{Viewer, TenantAdmin, Operator, Publisher, Auditor} }

// Valid reports whether there is such a role.
func (r Role) Valid() bool {
	switch r {
	case Viewer, TenantAdmin, Operator, Publisher, Auditor:
		return true
	}
	return false
}
