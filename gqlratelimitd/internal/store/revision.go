package store

import (
	"database/sql"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/policy"
)

// ExpectPolicy returns a [*ConflictError] if the newest revision of the policy is not the expected one, 0 for none.
func (tx *Tx) ExpectPolicy(expected uint64) error {
	if tx.head.Policy == expected {
		return nil
	}
	conflict := &ConflictError{Current: tx.head.Policy}
	newest, err := tx.revision("number, hash, author, reason, published, signature, NULL", tx.head.Policy)
	if err != nil {
		return err
	}
	if newest != nil {
		conflict.By, conflict.At = newest.Author, newest.Published
	}
	return conflict
}

// Publish writes the next revision of the policy if the newest one is the expected one, 0 for none, and otherwise returns a
// [*ConflictError]. Its number is the expected one and 1. Nothing but [policy.Revision.Check] looks at it.
func (tx *Tx) Publish(r *policy.Revision, expected uint64) error {
	if err := tx.ExpectPolicy(expected); err != nil {
		return err
	}
	if err := r.Check(); err != nil {
		return err
	}
	err := tx.exec(`INSERT INTO policy_revision (number, hash, document, author, reason, published, signature)
		VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		expected+1, r.Hash[:], stored(r.Document), r.Author, r.Reason, r.Published.UnixMilli(), stored(r.Signature))
	if err != nil {
		return err
	}
	tx.head.Policy = expected + 1
	return tx.exec("UPDATE head SET policy = $1 WHERE id = 1", tx.head.Policy)
}

// Revision returns a revision of the policy, nil if there is none of the number.
func (v *View) Revision(number uint64) (*policy.Revision, error) {
	return v.revision("number, hash, author, reason, published, signature, document", number)
}

func (v *View) revision(columns string, number uint64) (*policy.Revision, error) {
	return one(v, scanRevision, "SELECT "+columns+" FROM policy_revision WHERE number = $1", number)
}

// Revisions returns at most n revisions below a number, 0 for all, the newest first and without their documents.
func (v *View) Revisions(below uint64, n int) ([]policy.Revision, error) {
	if below == 0 {
		below = policy.MaxNumber + 1
	}
	return many(v, scanRevision, `SELECT number, hash, author, reason, published, signature, NULL FROM policy_revision
		WHERE number < $1 ORDER BY number DESC LIMIT $2`, below, page(n))
}

func scanRevision(row scanner, r *policy.Revision) error {
	var hash []byte
	var published sql.NullInt64
	err := row.Scan(&r.Number, &hash, &r.Author, &r.Reason, &published, &r.Signature, &r.Document)
	copy(r.Hash[:], hash)
	r.Published = time.UnixMilli(published.Int64).UTC()
	return err
}
