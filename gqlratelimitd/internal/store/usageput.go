package store

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// minuteTable is a table of absolute numbers that only grow.
type minuteTable struct {
	name string
	// keys begin with tenant and minute.
	keys, numbers []string
	// above are the tables that are computed of it: the next ones of the levels above.
	above *usageTable
}

var (
	usageMinutes = minuteTable{
		"usage_minute", []string{"tenant", "minute", "grade", "unit", "field", "generation"}, []string{"charged", "given_back", "calls"}, &usageHours,
	}
	decisionMinutes = minuteTable{
		"decision_minute", []string{"tenant", "minute", "dimension", "name", "instance", "boot"}, []string{"admitted", "refused", "would_refuse", "points"}, &decisionHours,
	}
	reachedMinutes = minuteTable{
		"reached_minute", []string{"tenant", "minute", "level", "owner", "limit_name", "threshold", "instance", "boot"}, []string{"times"}, &reachedDays,
	}
)

// minuteRow is a row of such a table.
type minuteRow struct {
	tenant []byte
	minute int64
	// keys are those that follow, and rest is another text for others.
	keys    []any
	rest    string
	numbers []int64
}

// row returns a row. Its keys are []byte, string and int64.
func row(tenant string, minute int64, numbers []int64, keys ...any) minuteRow {
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
	return minuteRow{[]byte(tenant), minute, keys, string(rest), numbers}
}

// PutUsage writes counts, and has computed anew what comes of those that have changed. Of two values of a number it keeps the larger one, so that it
// does not matter in which order counts are read, and how often. It returns how many it leaves out, because they are of a minute that is
// forgotten or not there yet, or because a name is too long. It takes numbers below 0 as 0, and those above [MaxUsage] as that.
func (tx *UsageTx) PutUsage(counts []UsageCount) (left int, _ error) {
	rows := make([]minuteRow, 0, len(counts))
	for i := range counts {
		c := &counts[i]
		if len(c.Tenant) > MaxUsageTenant || tooLong(c.Unit, c.Field) {
			left++
			continue
		}
		rows = append(rows, row(c.Tenant, c.Minute, []int64{c.Charged, c.GivenBack, c.Calls}, c.Grade.String(), []byte(c.Unit), []byte(c.Field), int64(c.Generation)))
	}
	outside, err := tx.put(&usageMinutes, rows)
	return left + outside, err
}

// PutDecisions does with decisions what [UsageTx.PutUsage] does.
func (tx *UsageTx) PutDecisions(counts []DecisionCount) (left int, _ error) {
	rows := make([]minuteRow, 0, len(counts))
	for i := range counts {
		c := &counts[i]
		if len(c.Tenant) > MaxUsageTenant || tooLong(c.Dimension, c.Name, c.Instance, c.Boot) {
			left++
			continue
		}
		rows = append(rows, row(c.Tenant, c.Minute, []int64{c.Admitted, c.Refused, c.WouldRefuse, c.Points}, c.Dimension, []byte(c.Name), []byte(c.Instance), []byte(c.Boot)))
	}
	outside, err := tx.put(&decisionMinutes, rows)
	return left + outside, err
}

// reachedLevels are the words for whose limits were used up. Whoever can write where instances write can have said another one, which a PostgreSQL may refuse with
// all that comes beside it.
var reachedLevels = []string{bucket.Tenant.String(), bucket.Team.String(), bucket.User.String(), bucket.Operation.String()}

// PutReached does with thresholds what [UsageTx.PutUsage] does. It leaves out what is of another level than there are.
func (tx *UsageTx) PutReached(counts []ReachedCount) (left int, _ error) {
	rows := make([]minuteRow, 0, len(counts))
	for i := range counts {
		c := &counts[i]
		if len(c.Tenant) > MaxUsageTenant || !slices.Contains(reachedLevels, c.Level) || tooLong(c.Owner, c.Limit, c.Instance, c.Boot) {
			left++
			continue
		}
		rows = append(rows, row(c.Tenant, c.Minute, []int64{c.Times}, c.Level, []byte(c.Owner), []byte(c.Limit), int64(c.Threshold), []byte(c.Instance), []byte(c.Boot)))
	}
	outside, err := tx.put(&reachedMinutes, rows)
	return left + outside, err
}

func tooLong(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return len(name) > MaxUsageName })
}

// statementRows is how many rows one statement has, of the first size that fits: few texts of statements, which a server has to read once. The
// driver of SQLite looks for each argument among all of them, so that it is given fewer at once.
var statementRows = [...][]int{SQLite: {32, 8, 1}, PostgreSQL: {128, 32, 8, 1}}

// minutesOfDay and the like are how many there are of the smaller in the larger.
const (
	minutesOfHour = 60
	minutesOfDay  = 24 * 60
	hoursOfDay    = 24
)

// put writes rows, and marks what comes of those that have changed.
func (tx *UsageTx) put(t *minuteTable, rows []minuteRow) (outside int, _ error) {
	kept, err := tx.kept()
	if err != nil {
		return 0, err
	}
	all := len(rows)
	rows = slices.DeleteFunc(rows, func(r minuteRow) bool {
		return r.minute < kept.MinutesFrom*minutesOfDay || r.minute >= kept.MinutesUntil*minutesOfDay
	})
	outside = all - len(rows)
	// Who writes the same rows at once waits for them in the same order. One statement has each row once.
	slices.SortFunc(rows, func(a, b minuteRow) int { return a.compare(&b) })
	rows = merge(rows)
	changed := map[usageMark]bool{}
	for len(rows) > 0 {
		n := tx.dialect.statement(len(rows))
		if err := tx.putSome(t, rows[:n], changed); err != nil {
			return 0, err
		}
		rows = rows[n:]
	}
	return outside, tx.mark(changed)
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
func (r *minuteRow) compare(other *minuteRow) int {
	return cmp.Or(bytes.Compare(r.tenant, other.tenant), cmp.Compare(r.minute, other.minute), cmp.Compare(r.rest, other.rest))
}

// merge makes one of rows of one key, and brings numbers into their bounds.
func merge(rows []minuteRow) (merged []minuteRow) {
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

// putSome writes rows in one statement.
func (tx *UsageTx) putSome(t *minuteTable, rows []minuteRow, changed map[usageMark]bool) error {
	args := make([]any, 0, len(rows)*(len(t.keys)+len(t.numbers)))
	for i := range rows {
		r := &rows[i]
		args = append(append(args, r.tenant, r.minute), r.keys...)
		for _, n := range r.numbers {
			args = append(args, n)
		}
	}
	written, err := tx.tx.tx.QueryContext(tx.tx.ctx, tx.dialect.putMinutes(t, len(rows)), args...)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	defer func() { _ = written.Close() }()
	for written.Next() {
		var tenant []byte
		var minute int64
		if err := written.Scan(&tenant, &minute); err != nil {
			return fmt.Errorf("store: %w", err)
		}
		changed[usageMark{t.above, string(tenant), t.above.of(minute)}] = true
	}
	if err := written.Err(); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// putMinutes is the statement that writes so many rows, and returns those that have changed.
func (d Dialect) putMinutes(t *minuteTable, rows int) string {
	var grows, sets []string
	for _, n := range t.numbers {
		sets = append(sets, n+" = "+d.greatest(t.name+"."+n, "excluded."+n))
		grows = append(grows, "excluded."+n+" > "+t.name+"."+n)
	}
	return "INSERT INTO " + t.name + " (" + strings.Join(t.keys, ", ") + ", " + strings.Join(t.numbers, ", ") + ") VALUES " +
		d.values(rows, len(t.keys)+len(t.numbers)) + " ON CONFLICT (" + strings.Join(t.keys, ", ") + ") DO UPDATE SET " + strings.Join(sets, ", ") +
		" WHERE " + strings.Join(grows, " OR ") + " RETURNING tenant, minute"
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
