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

// UsageKinds are what there are tables of.
var UsageKinds = []string{"usage", "decision", "reached"}

// FillUsage has so many rows of a kind at each level: of a thousand tenants, from a minute on, each in times that follow each other.
func (tx *UsageTx) FillUsage(kind string, first, rows int, minute int64) error {
	bytes := func(text string) string {
		if tx.dialect == PostgreSQL {
			return "convert_to(" + text + ", 'UTF8')"
		}
		return "CAST(" + text + " AS BLOB)"
	}
	none, said := bytes("''"), ", "+bytes("'api'")+", "+bytes("'1'")
	// What minutes have besides is of usage the generation, and of the others instance and boot.
	t := map[string]struct{ keys, more, numbers string }{
		"usage":    {"'exact', " + bytes("'points'") + ", " + none, ", 7", ", 1, 1, 1"},
		"decision": {"'tenant', " + none, said, ", 1, 1, 1, 1"},
		"reached":  {"'tenant', " + none + ", " + bytes("'minute'") + ", 80", said, ", 1"},
	}[kind]
	for level, at := range map[string]int64{"minute": minute, "hour": minute / 60, "day": minute / 1440, "month": MonthOfDay(minute / 1440)} {
		if kind == "reached" && (level == "hour" || level == "month") {
			continue
		}
		more := t.more
		if level != "minute" {
			more = ""
		}
		table := kind + "_" + level
		if err := tx.tx.exec(fmt.Sprintf("WITH RECURSIVE n (i) AS (SELECT %d UNION ALL SELECT i + 1 FROM n WHERE i < %d) INSERT INTO %s SELECT %s, %d + i / 1000, %s FROM n",
			first, first+rows-1, table, bytes("'t' || (i % 1000)"), at, t.keys+more+t.numbers)); err != nil {
			return err
		}
		// No daemon has SQLite look at how its rows are distributed, as a PostgreSQL does by itself.
		if tx.dialect != PostgreSQL {
			continue
		}
		if err := tx.tx.exec("ANALYZE " + table); err != nil { //nolint:misspell // It is SQL.
			return err
		}
	}
	return nil
}
