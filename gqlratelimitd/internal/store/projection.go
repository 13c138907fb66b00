package store

import "time"

// Intent is an override with what has become of it in the store of budgets.
type Intent struct {
	Override
	// Applied is the revision of it that the store was given last, 0 before the first.
	Applied uint64
}

// more is a row with columns that who reads the others does not know.
type more struct {
	scanner
	dest []any
}

// Scan implements scanner.
func (m more) Scan(dest ...any) error { return m.scanner.Scan(append(dest, m.dest...)...) }

func scanIntent(row scanner, i *Intent) error {
	return scanOverride(more{row, []any{&i.Applied}}, &i.Override)
}

// OpenIntents returns the overrides of a tenant that held at a time or are to hold, and those of which Redis was not given the newest revision, removed ones
// included, in the order of their revisions. What was over by then, and was taken from Redis, is not read, however much of it there was.
func (v *View) OpenIntents(tenant string, at time.Time) ([]Intent, error) {
	return many(v, scanIntent, openIntentsSQL, []byte(tenant), micros(at))
}

const openIntentsSQL = "SELECT " + overrideColumns + `, applied FROM override_intent
		WHERE tenant = $1 AND document IS NOT NULL AND (CASE expires WHEN 0 THEN 9223372036854775807 ELSE expires END) > $2
	UNION SELECT ` + overrideColumns + `, applied FROM override_intent WHERE tenant = $1 AND applied < revision
	ORDER BY revision`

// Intent returns an override with what has become of it, nil if it was never set. It may be one that was removed or has expired.
func (v *View) Intent(key OverrideKey) (*Intent, error) {
	return one(v, scanIntent, "SELECT "+overrideColumns+`, applied FROM override_intent
		WHERE tenant = $1 AND level = $2 AND name = $3 AND part = $4 AND limit_name = $5`,
		[]byte(key.Tenant), key.Owner.Level.String(), []byte(key.Owner.Name), []byte(key.Owner.Part), key.Limit)
}

// HasOverrides reports whether a tenant ever had an override that was set here.
func (v *View) HasOverrides(tenant string) (bool, error) {
	found, err := one(v, scanNumber, "SELECT 1 FROM override_intent WHERE tenant = $1 LIMIT 1", []byte(tenant))
	return found != nil, err
}

// OverrideTenants returns at most n tenants after a name, by name, that ever had an override, here or one that nobody has set here.
func (v *View) OverrideTenants(after string, n int) ([]string, error) {
	return many(v, func(row scanner, tenant *string) error { return row.Scan(tenant) },
		overrideTenantsSQL, []byte(after), page(n))
}

// overrideTenantsSQL has a limit for each table beside the one of both: PostgreSQL makes a union as a whole.
const overrideTenantsSQL = `SELECT tenant FROM (SELECT DISTINCT tenant FROM override_intent WHERE tenant > $1 ORDER BY tenant LIMIT $2) managed
	UNION SELECT tenant FROM (SELECT DISTINCT tenant FROM override_unmanaged WHERE tenant > $1 ORDER BY tenant LIMIT $2) unmanaged
	ORDER BY tenant LIMIT $2`

// ApplyOverride notes that the store of budgets was given a revision of an override, and reports whether that is the newest one.
func (tx *Tx) ApplyOverride(key OverrideKey, revision uint64) (newest bool, _ error) {
	there, err := tx.Override(key)
	if err != nil || there == nil || there.Revision != revision {
		return false, err
	}
	return true, tx.exec(`UPDATE override_intent SET applied = $1
		WHERE tenant = $2 AND level = $3 AND name = $4 AND part = $5 AND limit_name = $6`,
		revision, []byte(key.Tenant), key.Owner.Level.String(), []byte(key.Owner.Name), []byte(key.Owner.Part), key.Limit)
}

// overrideKey are the columns of what an override is about, and unmanagedColumns those of a record that nobody has set here.
const (
	overrideKey      = "tenant, level, name, part, limit_name"
	unmanagedColumns = overrideKey + ", document, expires, 0, author, reason, at"
)

// Unmanaged returns all override records of a tenant in the store of budgets that nobody has set here, in the order of their keys. Actor and Reason are what
// they say themselves, and none has a revision. A store of budgets holds 128 of a tenant.
func (v *View) Unmanaged(tenant string) ([]Override, error) {
	return many(v, scanOverride, "SELECT "+unmanagedColumns+" FROM override_unmanaged WHERE tenant = $1 ORDER BY "+overrideKey+" LIMIT $2",
		[]byte(tenant), MaxPage)
}

// UnmanagedOverride returns the record about a key that nobody has set here, nil if there is none.
func (v *View) UnmanagedOverride(key OverrideKey) (*Override, error) {
	return one(v, scanOverride, "SELECT "+unmanagedColumns+` FROM override_unmanaged
		WHERE tenant = $1 AND level = $2 AND name = $3 AND part = $4 AND limit_name = $5`, unmanagedArgs(&key)...)
}

// CountUnmanaged returns how many there are.
func (v *View) CountUnmanaged() (int64, error) {
	n, err := one(v, scanNumber, "SELECT count(*) FROM override_unmanaged")
	if err != nil {
		return 0, err
	}
	return *n, nil
}

func unmanagedArgs(key *OverrideKey) []any {
	return []any{[]byte(key.Tenant), key.Owner.Level.String(), []byte(key.Owner.Name), []byte(key.Owner.Part), []byte(key.Limit)}
}

// PutUnmanaged notes such a record.
func (tx *Tx) PutUnmanaged(o *Override) error {
	key := o.Key()
	return tx.exec("INSERT INTO override_unmanaged ("+overrideKey+`, document, expires, author, reason, at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
		ON CONFLICT (`+overrideKey+`) DO UPDATE SET document = excluded.document, expires = excluded.expires,
		author = excluded.author, reason = excluded.reason, at = excluded.at`,
		append(unmanagedArgs(&key), o.document(), micros(o.Expires), []byte(o.Actor), []byte(o.Reason), micros(o.SetAt))...)
}

// RemoveUnmanaged forgets a record that is there no longer.
func (tx *Tx) RemoveUnmanaged(key OverrideKey) error {
	return tx.exec("DELETE FROM override_unmanaged WHERE tenant = $1 AND level = $2 AND name = $3 AND part = $4 AND limit_name = $5",
		unmanagedArgs(&key)...)
}
