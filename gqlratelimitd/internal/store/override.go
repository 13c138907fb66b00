package store

import "time"

// OverrideKey is what an override is about: an owner of a tenant at a level, all of its limits, or the one of a name.
type OverrideKey struct {
	Tenant, Level, Name, Part, Limit string
}

// Override is what is to hold for an owner for a time, whatever the policy says.
type Override struct {
	OverrideKey
	// Document is what is to hold, as JSON. It is nil where it was removed.
	Document []byte
	// Expires is when it ceases to hold. Zero is never.
	Expires time.Time
	Written
}

// Holds reports whether it is there at a time: neither removed nor expired.
func (o *Override) Holds(now time.Time) bool {
	return o != nil && o.Document != nil && (o.Expires.IsZero() || now.Before(o.Expires))
}

const overrideColumns = "tenant, level, name, part, limit_name, document, expires, revision, author, reason, at"

func scanOverride(row scanner, o *Override) error {
	return row.Scan(&o.Tenant, &o.Level, &o.Name, &o.Part, &o.Limit, &o.Document, instant{&o.Expires}, &o.Revision, &o.By, &o.Reason, instant{&o.At})
}

// Override returns an override, nil if it was never set. It may be one that was removed or has expired, see [Override.Holds].
func (v *View) Override(key OverrideKey) (*Override, error) {
	return one(v, scanOverride, "SELECT "+overrideColumns+` FROM override_intent
		WHERE tenant = $1 AND level = $2 AND name = $3 AND part = $4 AND limit_name = $5`,
		[]byte(key.Tenant), key.Level, []byte(key.Name), []byte(key.Part), key.Limit)
}

// Overrides returns at most n overrides of a tenant, removed and expired ones included, after a revision and in the order of that.
func (v *View) Overrides(tenant string, after uint64, n int) ([]Override, error) {
	return many(v, scanOverride, "SELECT "+overrideColumns+" FROM override_intent WHERE tenant = $1 AND revision > $2 ORDER BY revision LIMIT $3",
		[]byte(tenant), after, page(n))
}

// OverrideChanges returns at most n overrides of all tenants that were set or removed after a revision, in the order of that: each once.
func (v *View) OverrideChanges(after uint64, n int) ([]Override, error) {
	return many(v, scanOverride, "SELECT "+overrideColumns+" FROM override_intent WHERE revision > $1 ORDER BY revision LIMIT $2", after, page(n))
}

// PutOverride sets an override if the revision of what holds is the expected one, 0 for none, and otherwise returns a
// [*ConflictError]. It sets when and under which revision. A document of nil removes it.
func (tx *Tx) PutOverride(o *Override, expected uint64) error {
	there, err := tx.Override(o.OverrideKey)
	if err != nil {
		return err
	}
	var was *Written
	if there.Holds(tx.now) {
		was = &there.Written
	}
	written, err := tx.write(was, expected, o.By, o.Reason)
	if err != nil {
		return err
	}
	o.Written = written
	return tx.exec(`INSERT INTO override_intent (`+overrideColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
		ON CONFLICT (tenant, level, name, part, limit_name) DO UPDATE SET document = excluded.document, expires = excluded.expires,
		revision = excluded.revision, author = excluded.author, reason = excluded.reason, at = excluded.at`,
		[]byte(o.Tenant), o.Level, []byte(o.Name), []byte(o.Part), o.Limit, o.Document, micros(o.Expires), o.Revision, o.By, o.Reason, micros(o.At))
}
