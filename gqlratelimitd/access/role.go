package access

import "slices"

// Role is what an actor is to the control plane. There are three, in code, and each may do what those before it may. What a role may do is not
// a matter of configuration, so that it can be read, tested and reviewed.
//
// [Actor.Tenants] confines a role to tenants. A confined operator is the operator of these tenants: it reads what is about them, divides their limits among teams
// and users, and has their tokens and webhooks. A confined admin also changes the limits of these tenants.
type Role string

// The roles.
const (
	// Viewer reads policies, the fleet, tenants and usage, and changes nothing.
	Viewer Role = "viewer"
	// Operator deals with incidents: overrides, blocks, budgets, emergency modes, and going back to an earlier policy.
	Operator Role = "operator"
	// Admin changes policies, and reads the audit log.
	Admin Role = "admin"
)

// Roles returns all roles. Each may do what those before it may.
func Roles() []Role { return []Role{Viewer, Operator, Admin} }

// Valid reports whether there is such a role.
func (r Role) Valid() bool { return slices.Contains(Roles(), r) }

// from returns the roles that may do what takes at least this one: none if it is empty.
func from(least Role) []Role {
	at := slices.Index(Roles(), least)
	if at < 0 {
		return nil
	}
	return Roles()[at:]
}
