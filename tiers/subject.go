package tiers

// Subject is who pays for an operation. The zero value is nobody: Tenant is required unless Exempt
// is set.
type Subject struct {
	// Tenant is the top owner: the organisation, customer or account whose budgets are charged. It may
	// hold any bytes.
	Tenant string
	// Team is the group within the tenant that asks. It is empty if there is none.
	Team string
	// User is the person or client within the tenant that asks. It is empty if unknown.
	User string
	// Tier is the tier that the subject carries, as a token may do. Empty, or a name that the policy
	// does not know, means the tier that the policy assigns to the tenant, else its default.
	Tier string
	// Claims are what else is known of the subject, such as the entries of a verified token, for custom limits. Nil is nothing.
	Claims *Claims
	// Anonymous says that the subject is not authenticated, but known by its address, for example.
	// Its idempotency keys are not honoured.
	Anonymous bool
	// Exempt says that the subject is neither priced against a budget nor charged.
	Exempt bool
}

// Claims are what is known of a subject, by name. They must not change while they are in use.
type Claims map[string]string
