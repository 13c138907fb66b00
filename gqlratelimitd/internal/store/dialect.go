package store

import (
	"fmt"
	"strings"
)

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

// suffix is what the name of a file of the schema ends with that is for one dialect only.
func (d Dialect) suffix() string {
	if d == PostgreSQL {
		return ".postgresql.sql"
	}
	return ".sqlite.sql"
}

// of returns a file of the schema in the dialect.
func (d Dialect) of(schema string) string {
	if d == PostgreSQL {
		return strings.NewReplacer(
			"{integer}", "bigint", "{bytes}", "bytea", "{text}", "text", "{strict}", "", "{clustered}", "",
			// A UUID has 122 random bits.
			"{random}", "decode(replace(concat(gen_random_uuid(), gen_random_uuid()), '-', ''), 'hex')",
		).Replace(schema)
	}
	return strings.NewReplacer(
		"{integer}", "INTEGER", "{bytes}", "BLOB", "{text}", "TEXT", "{strict}", " STRICT", "{clustered}", " STRICT, WITHOUT ROWID",
		"{random}", "randomblob(32)",
	).Replace(schema)
}

// greatest is the larger one of two numbers.
func (d Dialect) greatest(a, b string) string {
	if d == PostgreSQL {
		return "greatest(" + a + ", " + b + ")"
	}
	return "max(" + a + ", " + b + ")"
}

// sum is a sum of numbers of which none is negative or above [MaxUsage], and which is not above it either: an overflow would stop
// whatever computes it for ever.
func (d Dialect) sum(column string) string {
	if d == PostgreSQL {
		return fmt.Sprintf("CAST(least(sum(%s), %d) AS bigint)", column, int64(MaxUsage))
	}
	// A sum of integers that overflows is an error in SQLite. A total is exact as long as it is not above the bound.
	return fmt.Sprintf("CAST(min(total(%s), %d.0) AS INTEGER)", column, int64(MaxUsage))
}

// lock has a query lock the rows that it reads, as the words say. A file of SQLite is locked as a whole.
func (d Dialect) lock(words string) string {
	if d == PostgreSQL {
		return " FOR " + words
	}
	return ""
}
