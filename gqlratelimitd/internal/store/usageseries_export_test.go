package store

import (
	"fmt"
	"strings"
)

// ExplainUsage returns how the database finds rows.
func (v *View) ExplainUsage(q *UsageQuery, n int) (string, error) {
	query, args := q.rows(v.dialect, n)
	return v.explain(query, args)
}

func (v *View) explain(query string, args []any) (string, error) {
	word := "EXPLAIN "
	if v.dialect == SQLite {
		word = "EXPLAIN QUERY PLAN "
	}
	lines, err := many(v, func(row scanner, line *string) error {
		if v.dialect == PostgreSQL {
			return row.Scan(line)
		}
		var ignored any
		return row.Scan(&ignored, &ignored, &ignored, line)
	}, word+query, args...)
	return strings.Join(lines, "\n"), err
}

// UsageTables are the tables of usage, with what a row has behind its tenant and time.
var UsageTables = map[string]string{"usage_minute": "'exact', {points}, {none}, 7, 1, 1, 1", "usage_hour": "'exact', {points}, {none}, 7, 1, 1, 1", "refused_hour": "{points}, 1"}

// FillUsage has so many rows in a table: of a thousand tenants, from a time on, each in times that follow each other.
func (tx *UsageTx) FillUsage(table string, first, rows int, at int64) error {
	bytes := func(text string) string {
		if tx.dialect == PostgreSQL {
			return "convert_to(" + text + ", 'UTF8')"
		}
		return "CAST(" + text + " AS BLOB)"
	}
	columns := strings.NewReplacer("{points}", bytes("'points'"), "{none}", bytes("''")).Replace(UsageTables[table])
	if err := tx.tx.exec(fmt.Sprintf("WITH RECURSIVE n (i) AS (SELECT %d UNION ALL SELECT i + 1 FROM n WHERE i < %d) INSERT INTO %s SELECT %s, %d + i / 1000, %s FROM n",
		first, first+rows-1, table, bytes("'t' || (i % 1000)"), at, columns)); err != nil || tx.dialect != PostgreSQL {
		// No daemon has SQLite look at how its rows are distributed, as a PostgreSQL does by itself.
		return err
	}
	return tx.tx.exec("ANALYZE " + table) //nolint:misspell // It is SQL.
}
