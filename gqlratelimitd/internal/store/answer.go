package store

import "time"

// Answer is what was answered to a request, for a repeat of it.
type Answer struct {
	// ID is a hash of who asked and of the key of the request, and Request one of what was asked.
	ID, Request []byte
	Body        []byte
	// Expires is until when it is kept.
	Expires time.Time
}

// purged is how many of those that have expired are removed with each new one.
const purged = 10

// Answer returns an answer that is still kept at a time, nil if there is none.
func (v *View) Answer(id []byte, now time.Time) (*Answer, error) {
	return one(v, func(row scanner, a *Answer) error { return row.Scan(&a.ID, &a.Request, &a.Body, instant{&a.Expires}) },
		"SELECT id, request, body, expires FROM answer WHERE id = $1 AND expires > $2", id, micros(now))
}

// KeepAnswer keeps an answer, in the place of one of the same ID.
func (tx *Tx) KeepAnswer(a *Answer) error {
	err := tx.exec("DELETE FROM answer WHERE id IN (SELECT id FROM answer WHERE expires <= $1 ORDER BY expires LIMIT $2)", micros(tx.now), purged)
	if err != nil {
		return err
	}
	return tx.exec(`INSERT INTO answer (id, request, body, expires) VALUES ($1, $2, $3, $4)
		ON CONFLICT (id) DO UPDATE SET request = excluded.request, body = excluded.body, expires = excluded.expires`,
		a.ID, a.Request, stored(a.Body), micros(a.Expires))
}
