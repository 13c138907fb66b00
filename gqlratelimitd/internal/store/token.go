package store

import (
	"encoding/json"
	"time"
)

// Token is who may come in with a token, of which a hash is known.
type Token struct {
	// ID names the token. It is no secret.
	ID string
	// Hash is that of the secret.
	Hash []byte
	// Subject is whom it is for, and Owner who answers for it.
	Subject, Owner string
	// Roles are what the bearer is, and Tenants those that it is confined to: none of them if it has none.
	Roles, Tenants []string
	// Bootstrap says that it is exchanged for another one.
	Bootstrap bool
	// Issued, Expires, Used and Revoked are when, Used the last time, to some minutes. Zero is never.
	Issued, Expires, Used, Revoked time.Time
}

//nolint:gosec // these are names of columns
const tokenColumns = "id, hash, subject, owner, roles, tenants, bootstrap, issued, expires, used, revoked"

func scanToken(row scanner, t *Token) error {
	var bootstrap int64
	err := row.Scan(&t.ID, &t.Hash, &t.Subject, &t.Owner, names{&t.Roles}, names{&t.Tenants}, &bootstrap,
		instant{&t.Issued}, instant{&t.Expires}, instant{&t.Used}, instant{&t.Revoked})
	t.Bootstrap = bootstrap != 0
	return err
}

// names is a column of texts.
type names struct{ of *[]string }

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
func list(texts []string) string {
	// Texts can be written.
	text, _ := json.Marshal(texts)
	return string(text)
}

// Token returns a token, also one that holds no longer, and nil if there is none.
func (v *View) Token(id string) (*Token, error) {
	return one(v, scanToken, "SELECT "+tokenColumns+" FROM token WHERE id = $1", id)
}

// Tokens returns at most n tokens after an ID, by ID, also those that hold no longer.
func (v *View) Tokens(after string, n int) ([]Token, error) {
	return many(v, scanToken, "SELECT "+tokenColumns+" FROM token WHERE id > $1 ORDER BY id LIMIT $2", after, page(n))
}

// AddToken adds a token, as it is.
func (tx *Tx) AddToken(t *Token) error {
	return tx.exec("INSERT INTO token ("+tokenColumns+") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
		t.ID, t.Hash, t.Subject, t.Owner, list(t.Roles), list(t.Tenants), flag(t.Bootstrap),
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

// RevokeToken ends a token for ever. One that was revoked already stays as it is.
func (tx *Tx) RevokeToken(id string) error {
	return tx.exec("UPDATE token SET revoked = $1 WHERE id = $2 AND revoked = 0", micros(tx.now), id)
}
