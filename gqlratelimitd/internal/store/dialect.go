package store

import "strings"

// Dialect is the SQL that a database understands.
type Dialect uint8

// The dialects.
const (
	SQLite Dialect = iota
	PostgreSQL
)

// String returns the name of the product.
func (d Dialect) String() string {
	if d == PostgreSQL {
		return "PostgreSQL"
	}
	return "SQLite"
}

// suffix is what the name of a migration ends with that is for one dialect only.
func (d Dialect) suffix() string {
	if d == PostgreSQL {
		return ".postgresql.sql"
	}
	return ".sqlite.sql"
}

// of returns a migration in the dialect.
func (d Dialect) of(migration string) string {
	if d == PostgreSQL {
		return strings.NewReplacer("{integer}", "bigint", "{bytes}", "bytea", "{text}", "text", "{strict}", "").Replace(migration)
	}
	return strings.NewReplacer("{integer}", "INTEGER", "{bytes}", "BLOB", "{text}", "TEXT", "{strict}", " STRICT").Replace(migration)
}
