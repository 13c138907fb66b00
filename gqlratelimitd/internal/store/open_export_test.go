package store

import "fmt"

// FillOver has so many overrides of acme that ended and were taken from Redis; so many that hold, and as many that were removed and wait for
// Redis.
func (tx *Tx) FillOver(over, open int) error {
	bytes := func(text string) string {
		if tx.dialect == PostgreSQL {
			return "convert_to(" + text + ", 'UTF8')"
		}
		return "CAST(" + text + " AS BLOB)"
	}
	const numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) "
	name := bytes("'u' || i")
	intents := func(count, revision int, document, expires, applied string) string {
		return fmt.Sprintf(numbers+`INSERT INTO override_intent (tenant, level, name, part, limit_name, revision, document, expires, author, reason, at, applied)
			SELECT %s, 'user', %s, %s, '%s', %d + i, %s, %s, 'ann', 'why', 1, %s FROM n`,
			count, bytes("'acme'"), name, bytes("''"), fmt.Sprint("limit", revision), revision, document, expires, applied)
	}
	for _, statement := range []string{
		intents(over, 0, bytes("'{}'"), "1000", "i"),
		intents(open, over, bytes("'{}'"), "0", fmt.Sprint(over, " + i")),
		intents(open, 2*over, "NULL", "0", "1"),
	} {
		if err := tx.exec(statement); err != nil {
			return err
		}
	}
	if tx.dialect != PostgreSQL {
		return nil
	}
	return tx.exec("ANALYZE override_intent") //nolint:misspell // It is SQL.
}
