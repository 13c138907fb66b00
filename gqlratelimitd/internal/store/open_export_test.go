package store

import "fmt"

// FillOver has so many overrides of acme that ended and were taken from Redis, and as many proposals that nobody can approve; so many overrides that hold, as many
// that were removed and wait for Redis, and as many proposals that are open.
func (tx *Tx) FillOver(over, open int) error {
	bytes := func(text string) string {
		if tx.dialect == PostgreSQL {
			return "convert_to(" + text + ", 'UTF8')"
		}
		return "CAST(" + text + " AS BLOB)"
	}
	const numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) "
	name, hash := bytes("'u' || i"), "randomblob(32)"
	if tx.dialect == PostgreSQL {
		hash = "sha256(" + name + ")"
	}
	intents := func(count, revision int, document, expires, applied string) string {
		return fmt.Sprintf(numbers+`INSERT INTO override_intent (tenant, level, name, part, limit_name, revision, document, expires, author, reason, at, applied)
			SELECT %s, 'user', %s, %s, '%s', %d + i, %s, %s, 'ann', 'why', 1, %s FROM n`,
			count, bytes("'acme'"), name, bytes("''"), fmt.Sprint("limit", revision), revision, document, expires, applied)
	}
	proposals := func(count, id int, document string) string {
		return fmt.Sprintf(numbers+`INSERT INTO proposal (id, action, hash, document, expected, report, proposer, reason, proposed, expires)
			SELECT %d + i, 'policy.publish', %s, %s, 1, %s, 'ann', 'why', 1, 2 FROM n`, count, id, hash, document, bytes("'{}'"))
	}
	for _, statement := range []string{
		intents(over, 0, bytes("'{}'"), "1000", "i"),
		intents(open, over, bytes("'{}'"), "0", fmt.Sprint(over, " + i")),
		intents(open, 2*over, "NULL", "0", "1"),
		proposals(over, 0, "NULL"),
		proposals(open, over, bytes("'x'")),
	} {
		if err := tx.exec(statement); err != nil {
			return err
		}
	}
	if tx.dialect != PostgreSQL {
		return nil
	}
	for _, table := range []string{"override_intent", "proposal"} {
		if err := tx.exec("ANALYZE " + table); err != nil { //nolint:misspell // It is SQL.
			return err
		}
	}
	return nil
}
