package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
)

//nolint:gosec // these are names of columns
const tokenColumns = "id, hash, subject, owner, parent, root, apart, roles, tenants, bootstrap, issued, expires, used, revoked"

func scanToken(row scanner, t *access.Token) error {
	var apart, bootstrap int64
	var hash []byte
	err := row.Scan(&t.ID, &hash, &t.Subject, &t.Owner, &t.Parent, &t.Root, &apart, names{&t.Roles}, names{&t.Tenants}, &bootstrap,
		instant{&t.Issued}, instant{&t.Expires}, instant{&t.Used}, instant{&t.Revoked})
	t.Apart, t.Bootstrap = apart != 0, bootstrap != 0
	// A hash of another length stays zero, and lets nobody in.
	if len(hash) == len(t.Hash) {
		copy(t.Hash[:], hash)
	}
	return err
}

// names is a column of texts, as a pointer to a list of them.
type names struct{ of any }

// Scan implements sql.Scanner.
func (n names) Scan(from any) error {
	switch text := from.(type) {
	case string:
		return json.Unmarshal([]byte(text), n.of)
	case []byte:
		return json.Unmarshal(text, n.of)
	default:
		return json.Unmarshal(nil, n.of)
	}
}

// list is texts as they are stored.
func list[T ~string](texts []T) string {
	// Texts can be written.
	text, _ := json.Marshal(texts)
	return string(text)
}

// TokenKey is the key with which the tokens of the database are made: the same for all daemons.
func (db *DB) TokenKey() access.TokenKey { return db.tokenKey }

// readTokenKey reads it.
func (db *DB) readTokenKey(ctx context.Context, tx *sql.Tx) error {
	var key []byte
	if err := tx.QueryRowContext(ctx, "SELECT token_key FROM head WHERE id = 1").Scan(&key); err != nil {
		return fmt.Errorf("the key of tokens: %w", err)
	}
	copy(db.tokenKey[:], key)
	return nil
}

// Token returns a token, also one that holds no longer, and nil if there is none.
func (v *View) Token(id string) (*access.Token, error) {
	return one(v, scanToken, "SELECT "+tokenColumns+" FROM token WHERE id = $1", id)
}

// Children returns at most n tokens after an ID that were issued with a token, by ID, also those that hold no longer.
func (v *View) Children(parent, after string, n int) ([]access.Token, error) {
	return many(v, scanToken, "SELECT "+tokenColumns+" FROM token WHERE parent = $1 AND id > $2 ORDER BY id LIMIT $3", parent, after, page(n))
}

// Tokens returns at most n tokens after an ID, by ID, also those that hold no longer.
func (v *View) Tokens(after string, n int) ([]access.Token, error) {
	return many(v, scanToken, "SELECT "+tokenColumns+" FROM token WHERE id > $1 ORDER BY id LIMIT $2", after, page(n))
}

// endedSQL is when a token ends, and has an index.
const endedSQL = "CASE WHEN revoked BETWEEN 1 AND expires THEN revoked ELSE expires END"

// AddToken adds a token, as it is. It removes some of those that have ended [access.EndedTokenLife] before; all that came from one of these have, too.
func (tx *Tx) AddToken(t *access.Token) error {
	err := tx.exec("DELETE FROM token WHERE id IN (SELECT id FROM token WHERE "+endedSQL+" <= $1 ORDER BY "+endedSQL+" LIMIT $2)",
		micros(tx.now.Add(-access.EndedTokenLife)), purged)
	if err != nil {
		return err
	}
	return tx.exec("INSERT INTO token ("+tokenColumns+") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
		t.ID, t.Hash[:], t.Subject, t.Owner, t.Parent, t.Root, flag(t.Apart), list(t.Roles), list(t.Tenants), flag(t.Bootstrap),
		micros(t.Issued), micros(t.Expires), micros(t.Used), micros(t.Revoked))
}

// UseToken notes that a token was used at a time, unless it was used later.
func (tx *Tx) UseToken(id string, at time.Time) error {
	return tx.exec("UPDATE token SET used = $1 WHERE id = $2 AND used < $1", micros(at), id)
}

// RevokeBootstrap ends all bootstrap tokens that were not used.
func (tx *Tx) RevokeBootstrap() error {
	return tx.exec("UPDATE token SET revoked = $1 WHERE bootstrap = 1 AND used = 0 AND revoked = 0", micros(tx.now))
}

// HasTokens reports whether any token was ever issued but bootstrap tokens.
func (v *View) HasTokens() (bool, error) {
	n, err := one(v, scanNumber, "SELECT count(*) FROM (SELECT id FROM token WHERE bootstrap = 0 LIMIT 1) found")
	return err == nil && *n > 0, err
}

// RevokeToken ends a token for ever, with all that were issued with it or with one of those, and returns how many it has ended. One that was revoked
// already stays as it is.
func (tx *Tx) RevokeToken(id string) (int64, error) {
	return tx.affect(`WITH RECURSIVE ended(id) AS (
			SELECT id FROM token WHERE id = $2
			UNION SELECT token.id FROM token JOIN ended ON token.parent = ended.id
		) UPDATE token SET revoked = $1 WHERE revoked = 0 AND id IN (SELECT id FROM ended)`, micros(tx.now), id)
}

// LiveTokens counts the tokens that hold which an owner has issued, with tokens of that root; those without a parent if it is empty.
func (tx *Tx) LiveTokens(owner, root string) (int64, error) {
	n, err := one(&tx.View, scanNumber, `SELECT count(*) FROM token LEFT JOIN token parent ON parent.id = token.parent
		WHERE token.owner = $1 AND token.revoked = 0 AND token.expires > $2 AND coalesce(parent.root, '') = $3`, owner, micros(tx.now), root)
	if err != nil {
		return 0, err
	}
	return *n, nil
}
