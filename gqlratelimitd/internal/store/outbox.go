package store

import "time"

// Message says that something has changed, which somebody else has to be told. It does not say how: who reads it looks at what is
// there now. So of one thing there is one message at most, and an outbox that nobody reads does not grow for ever.
type Message struct {
	// Sequence is the place of the message in the outbox. It grows in the order of commits.
	Sequence uint64
	// Kind is what has changed, in a word, and Name which one of these.
	Kind, Name string
	// Revision is the one that it has since.
	Revision uint64
	At       time.Time
}

// What messages are about.
const (
	// PolicyMessage says that there is another newest revision of the policy. It has no name.
	PolicyMessage = "policy"
	// TenantMessage says that the record of a tenant was written or removed. Its name is that of the tenant.
	TenantMessage = "tenant"
	// OverridesMessage says that an override of a tenant was set or removed. Its name is that of the tenant.
	OverridesMessage = "overrides"
)

// Enqueue puts a message into the outbox, in the place of one about the same thing.
func (tx *Tx) Enqueue(kind, name string, revision uint64) error {
	tx.head.outbox++
	if err := tx.exec("UPDATE head SET outbox = $1 WHERE id = 1", tx.head.outbox); err != nil {
		return err
	}
	return tx.exec(`INSERT INTO outbox (sequence, kind, name, revision, at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (kind, name) DO UPDATE SET sequence = excluded.sequence, revision = excluded.revision, at = excluded.at`,
		tx.head.outbox, kind, []byte(name), revision, micros(tx.now))
}

// Outbox returns at most n messages after a sequence, in the order of that.
func (v *View) Outbox(after uint64, n int) ([]Message, error) {
	return many(v, func(row scanner, m *Message) error {
		return row.Scan(&m.Sequence, &m.Kind, &m.Name, &m.Revision, instant{&m.At})
	},
		"SELECT sequence, kind, name, revision, at FROM outbox WHERE sequence > $1 ORDER BY sequence LIMIT $2", after, page(n))
}

// Dequeue removes a message that has arrived. What has changed again meanwhile has another sequence, and stays.
func (tx *Tx) Dequeue(sequence uint64) error {
	return tx.exec("DELETE FROM outbox WHERE sequence = $1", sequence)
}

// Waiting returns how many messages there are, and when the oldest one was written: the zero time if there is none.
func (v *View) Waiting() (messages int64, since time.Time, _ error) {
	waiting, err := one(v, func(row scanner, n *int64) error { return row.Scan(n, instant{&since}) },
		"SELECT count(*), coalesce(min(at), 0) FROM outbox")
	if err != nil {
		return 0, since, err
	}
	return *waiting, since, nil
}
