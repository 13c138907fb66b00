package store

// Tenant is what is known of a tenant beside the policy.
type Tenant struct {
	Name string
	// Document is what an operator has written, and Allocations what the organisation gives its own teams and users. Both are
	// JSON, and nil is nothing.
	Document, Allocations []byte
	// Record is what instances are given of both. It is nil where the record was removed.
	Record []byte
	// Oversubscribe says that allocations may come to more than the tenant has.
	Oversubscribe bool
	Written
}

const tenantColumns = "name, document, allocations, record, oversubscribe, revision, author, reason, at"

func scanTenant(row scanner, t *Tenant) error {
	var oversubscribe int64
	err := row.Scan(&t.Name, &t.Document, &t.Allocations, &t.Record, &oversubscribe, &t.Revision, &t.By, &t.Reason, instant{&t.At})
	t.Oversubscribe = oversubscribe != 0
	return err
}

// Tenant returns the record of a tenant, nil if it has none.
func (v *View) Tenant(name string) (*Tenant, error) {
	return one(v, scanTenant, "SELECT "+tenantColumns+" FROM tenant WHERE name = $1 AND record IS NOT NULL", []byte(name))
}

// LastTenant returns the last change of the record of a tenant, nil if there was none. It has no Record if that was removed.
func (v *View) LastTenant(name string) (*Tenant, error) {
	return one(v, scanTenant, "SELECT "+tenantColumns+" FROM tenant WHERE name = $1", []byte(name))
}

// Tenants returns at most n records of tenants after a name, by name.
func (v *View) Tenants(after string, n int) ([]Tenant, error) {
	return many(v, scanTenant, "SELECT "+tenantColumns+" FROM tenant WHERE name > $1 AND record IS NOT NULL ORDER BY name LIMIT $2", []byte(after), page(n))
}

// TenantChanges returns at most n records that were written or removed after a revision, in the order of that: each tenant once.
func (v *View) TenantChanges(after uint64, n int) ([]Tenant, error) {
	return many(v, scanTenant, "SELECT "+tenantColumns+" FROM tenant WHERE revision > $1 ORDER BY revision LIMIT $2", after, page(n))
}

// PutTenant writes the record of a tenant if the revision of what is there is the expected one, 0 for none, and otherwise returns a
// [*ConflictError]. It sets when and under which revision. A record of nil removes it, with its document and allocations.
func (tx *Tx) PutTenant(t *Tenant, expected uint64) error {
	there, err := tx.Tenant(t.Name)
	if err != nil {
		return err
	}
	var was *Written
	if there != nil {
		was = &there.Written
	}
	written, err := tx.write(was, expected, t.By, t.Reason)
	if err != nil {
		return err
	}
	t.Written = written
	if t.Record == nil {
		t.Document, t.Allocations, t.Oversubscribe = nil, nil, false
	}
	return tx.exec(`INSERT INTO tenant (`+tenantColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
		ON CONFLICT (name) DO UPDATE SET document = excluded.document, allocations = excluded.allocations, record = excluded.record,
		oversubscribe = excluded.oversubscribe, revision = excluded.revision, author = excluded.author, reason = excluded.reason, at = excluded.at`,
		[]byte(t.Name), t.Document, t.Allocations, t.Record, flag(t.Oversubscribe), t.Revision, t.By, t.Reason, micros(t.At))
}
