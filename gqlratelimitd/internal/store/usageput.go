package store

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
	"time"
)

// countTable is a table of absolute numbers that only grow.
type countTable struct {
	name string
	// keys begin with tenant and at.
	keys, numbers []string
	// length is how long the periods are, and from is the first one that is kept.
	length time.Duration
	from   func(*UsageState) int64
}

var (
	usageKeys, usageNumbers = []string{"tenant", "at", "grade", "unit", "field", "generation"}, []string{"charged", "given_back", "calls"}

	countTables = [...]countTable{
		UsageHours:   {"usage_hour", usageKeys, usageNumbers, time.Hour, hoursFrom},
		UsageMinutes: {"usage_minute", usageKeys, usageNumbers, time.Minute, func(s *UsageState) int64 { return s.MinutesFrom }},
	}
	refusedTable = countTable{"refused_hour", []string{"tenant", "at", "name"}, []string{"refused"}, time.Hour, hoursFrom}
)

func hoursFrom(s *UsageState) int64 { return s.HoursFrom }

// maxAhead is how far in the future a period begins at most. Later ones have no place.
const maxAhead = 4 * 24 * time.Hour

// countRow is a row of such a table.
type countRow struct {
	tenant []byte
	at     int64
	// keys are those that follow, and rest is another text for others.
	keys    []any
	rest    string
	numbers []int64
}

// row returns a row. Its keys are []byte, string and int64.
func row(tenant string, at int64, numbers []int64, keys ...any) countRow {
	var rest []byte
	for _, key := range keys {
		switch key := key.(type) {
		case []byte:
			rest = append(binary.AppendUvarint(rest, uint64(len(key))), key...)
		case string:
			rest = append(binary.AppendUvarint(rest, uint64(len(key))), key...)
		case int64:
			rest = binary.AppendVarint(rest, key)
		}
	}
	return countRow{[]byte(tenant), at, keys, string(rest), numbers}
}

// PutUsage writes counts of minutes or hours. Of two values of a number it keeps the larger one, so that it does not matter in which order counts are
// read, and how often. It returns how many it leaves out, because they are of a time that is forgotten or days ahead, or because a name is too long. It
// takes numbers below 0 as 0, and those above [MaxUsage] as that.
func (tx *UsageTx) PutUsage(level UsageLevel, counts []UsageCount) (left int, _ error) {
	rows := make([]countRow, 0, len(counts))
	for i := range counts {
		c := &counts[i]
		if len(c.Tenant) > MaxUsageTenant || tooLong(c.Unit, c.Field) {
			left++
			continue
		}
		rows = append(rows, row(c.Tenant, c.At, []int64{c.Charged, c.GivenBack, c.Calls}, c.Grade.String(), []byte(c.Unit), []byte(c.Field), int64(c.Generation)))
	}
	outside, err := tx.put(&countTables[level], rows)
	return left + outside, err
}

// PutRefused does with refusals what [UsageTx.PutUsage] does.
func (tx *UsageTx) PutRefused(counts []RefusedCount) (left int, _ error) {
	rows := make([]countRow, 0, len(counts))
	for i := range counts {
		c := &counts[i]
		if len(c.Tenant) > MaxUsageTenant || tooLong(c.Name) {
			left++
			continue
		}
		rows = append(rows, row(c.Tenant, c.Hour, []int64{c.Refused}, []byte(c.Name)))
	}
	outside, err := tx.put(&refusedTable, rows)
	return left + outside, err
}

func tooLong(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return len(name) > MaxUsageName })
}

// statementRows is how many rows one statement has, of the first size that fits: few texts of statements, which a server has to read once. The
// driver of SQLite looks for each argument among all of them, so that it is given fewer at once.
var statementRows = [...][]int{SQLite: {32, 8, 1}, PostgreSQL: {128, 32, 8, 1}}

// put writes rows.
func (tx *UsageTx) put(t *countTable, rows []countRow) (outside int, _ error) {
	kept, err := tx.kept()
	if err != nil {
		return 0, err
	}
	all, from := len(rows), t.from(kept)
	until := tx.tx.now.Add(maxAhead).Unix() / int64(t.length/time.Second)
	rows = slices.DeleteFunc(rows, func(r countRow) bool { return r.at < from || r.at >= until })
	outside = all - len(rows)
	// Who writes the same rows at once waits for them in the same order. One statement has each row once.
	slices.SortFunc(rows, func(a, b countRow) int { return a.compare(&b) })
	rows = merge(rows)
	for len(rows) > 0 {
		n := tx.dialect.statement(len(rows))
		var args []any
		for i := range rows[:n] {
			r := &rows[i]
			args = append(append(args, r.tenant, r.at), r.keys...)
			for _, number := range r.numbers {
				args = append(args, number)
			}
		}
		if err := tx.tx.exec(tx.dialect.putCounts(t, n), args...); err != nil {
			return 0, err
		}
		rows = rows[n:]
	}
	return outside, nil
}

// statement is how many of so many rows the next statement has.
func (d Dialect) statement(rows int) int {
	for _, n := range statementRows[d] {
		if n <= rows {
			return n
		}
	}
	return rows
}

// compare orders rows by their keys.
func (r *countRow) compare(other *countRow) int {
	return cmp.Or(bytes.Compare(r.tenant, other.tenant), cmp.Compare(r.at, other.at), cmp.Compare(r.rest, other.rest))
}

// merge makes one of rows of one key, and brings numbers into their bounds.
func merge(rows []countRow) (merged []countRow) {
	for i := range rows {
		r := &rows[i]
		for j, n := range r.numbers {
			r.numbers[j] = max(0, min(n, MaxUsage))
		}
		if len(merged) == 0 || merged[len(merged)-1].compare(r) != 0 {
			merged = append(merged, *r)
			continue
		}
		into := merged[len(merged)-1].numbers
		for j, n := range r.numbers {
			into[j] = max(into[j], n)
		}
	}
	return merged
}

// putCounts is the statement that writes so many rows.
func (d Dialect) putCounts(t *countTable, rows int) string {
	var grows, sets []string
	for _, n := range t.numbers {
		sets = append(sets, n+" = "+d.greatest(t.name+"."+n, "excluded."+n))
		grows = append(grows, "excluded."+n+" > "+t.name+"."+n)
	}
	return "INSERT INTO " + t.name + " (" + strings.Join(t.keys, ", ") + ", " + strings.Join(t.numbers, ", ") + ") VALUES " +
		d.values(rows, len(t.keys)+len(t.numbers)) + " ON CONFLICT (" + strings.Join(t.keys, ", ") + ") DO UPDATE SET " + strings.Join(sets, ", ") +
		" WHERE " + strings.Join(grows, " OR ")
}

// values are the arguments of so many rows.
func (d Dialect) values(rows, columns int) string {
	var b strings.Builder
	for i := range rows * columns {
		switch {
		case i == 0:
			b.WriteByte('(')
		case i%columns == 0:
			b.WriteString("), (")
		default:
			b.WriteString(", ")
		}
		b.WriteString(d.argument(i + 1))
	}
	b.WriteByte(')')
	return b.String()
}

// argument is what stands for the one of a number, all of which come in their order. In SQLite one with a number would be looked for by
// its text.
func (d Dialect) argument(n int) string {
	if d == SQLite {
		return "?"
	}
	return "$" + strconv.Itoa(n)
}

// arguments is a list of n arguments in brackets, of which the first has a number.
func (d Dialect) arguments(first, n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(", ")
		b.WriteString(d.argument(first + i))
	}
	return "(" + b.String()[2:] + ")"
}
