package store

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// usageTable is a table of sums, computed of one below.
type usageTable struct {
	name, below string
	// at is the column of the table below that says when, and of says in which of its own times such a time is.
	at string
	of func(int64) int64
	// begins is the first time of the table below in one of its own.
	begins        func(int64) int64
	keys, numbers []string
	// folds is the key of which [MaxUsageNames] values have rows of their own, empty if all have: those of which most was counted, by such a number.
	folds, most string
	// above is what is computed of it, nil for nothing.
	above *usageTable
}

var (
	usageKeys, usageNumbers       = []string{"grade", "unit", "field"}, []string{"charged", "given_back", "calls"}
	decisionKeys, decisionNumbers = []string{"dimension", "name"}, []string{"admitted", "refused", "would_refuse", "points"}

	usageHours     = hours("usage", usageKeys, usageNumbers, &usageDays)
	usageDays      = days("usage", usageKeys, usageNumbers, &usageMonths)
	usageMonths    = months("usage", usageKeys, usageNumbers)
	decisionHours  = named(hours("decision", decisionKeys, decisionNumbers, &decisionDays))
	decisionDays   = named(days("decision", decisionKeys, decisionNumbers, &decisionMonths))
	decisionMonths = named(months("decision", decisionKeys, decisionNumbers))
	reachedDays    = usageTable{
		name: "reached_day", below: "reached_minute", at: "minute", keys: []string{"level", "owner", "limit_name", "threshold"}, numbers: []string{"times"},
		folds: "owner", most: "times",
		of: func(minute int64) int64 { return minute / minutesOfDay }, begins: func(day int64) int64 { return day * minutesOfDay },
	}
	// usageTables begin with those that others are computed of.
	usageTables = []*usageTable{&usageHours, &decisionHours, &reachedDays, &usageDays, &decisionDays, &usageMonths, &decisionMonths}
)

func hours(what string, keys, numbers []string, above *usageTable) usageTable {
	return usageTable{
		name: what + "_hour", below: what + "_minute", at: "minute", keys: keys, numbers: numbers, above: above,
		of: func(minute int64) int64 { return minute / minutesOfHour }, begins: func(hour int64) int64 { return hour * minutesOfHour },
	}
}

func days(what string, keys, numbers []string, above *usageTable) usageTable {
	return usageTable{
		name: what + "_day", below: what + "_hour", at: "at", keys: keys, numbers: numbers, above: above,
		of: func(hour int64) int64 { return hour / hoursOfDay }, begins: func(day int64) int64 { return day * hoursOfDay },
	}
}

func months(what string, keys, numbers []string) usageTable {
	return usageTable{
		name: what + "_month", below: what + "_day", at: "at", keys: keys, numbers: numbers,
		of: MonthOfDay, begins: FirstDayOfMonth,
	}
}

// named is a table with names that clients choose.
func named(t usageTable) usageTable {
	t.folds, t.most = "name", "admitted + refused"
	return t
}

const secondsOfDay = 24 * 60 * 60

// MonthOfDay is the month of a day, both counted since January 1970 in UTC.
func MonthOfDay(day int64) int64 {
	at := time.Unix(day*secondsOfDay, 0).UTC()
	return int64(at.Year()-1970)*12 + int64(at.Month()) - 1
}

// FirstDayOfMonth is the first day of a month, both counted since January 1970 in UTC.
func FirstDayOfMonth(month int64) int64 {
	return time.Date(1970, time.Month(1+month), 1, 0, 0, 0, 0, time.UTC).Unix() / secondsOfDay
}

// usageMark says that what a tenant has at a time in a table is computed anew.
type usageMark struct {
	of     *usageTable
	tenant string
	at     int64
}

// mark has things computed anew. A mark that is there keeps its age, and is locked: whoever computes what it says does that before, without what
// this transaction has written, and then the mark is another one; or afterwards.
func (tx *UsageTx) mark(marks map[usageMark]bool) error {
	sorted := slices.SortedFunc(maps.Keys(marks), func(a, b usageMark) int {
		return cmp.Or(cmp.Compare(a.of.name, b.of.name), cmp.Compare(a.tenant, b.tenant), cmp.Compare(a.at, b.at))
	})
	for len(sorted) > 0 {
		n := tx.dialect.statement(len(sorted))
		var args []any
		for _, m := range sorted[:n] {
			args = append(args, m.of.name, []byte(m.tenant), m.at, micros(tx.tx.now))
		}
		if err := tx.tx.exec("INSERT INTO usage_dirty (series, tenant, at, since) VALUES "+tx.dialect.values(n, 4)+
			" ON CONFLICT (series, tenant, at) DO UPDATE SET since = usage_dirty.since", args...); err != nil {
			return err
		}
		sorted = sorted[n:]
	}
	return nil
}

// RollUp computes anew what of hours, days or months has changed below, and was marked by a time: at most about n things, each in one of the
// tables. It returns how many it has found: none says that there are no more, but for those that somebody else computes. What it computes is
// the sum of all that is there below, never the old value and something more: so it does not matter how often it is done.
func (tx *UsageTx) RollUp(by time.Time, n int) (found int, _ error) {
	for _, t := range usageTables {
		marks, err := tx.takeMarks(t, by, n)
		if err != nil {
			return 0, err
		}
		if len(marks) == 0 {
			continue
		}
		return len(marks), tx.compute(t, marks)
	}
	return 0, nil
}

// takeMarks removes marks, the oldest ones. Nobody else computes what they say before the transaction ends.
func (tx *UsageTx) takeMarks(t *usageTable, by time.Time, n int) (map[int64][]any, error) {
	marks, err := many(&tx.tx.View, func(row scanner, m *usageMark) error {
		var tenant []byte
		err := row.Scan(&tenant, &m.at)
		m.tenant = string(tenant)
		return err
	}, "SELECT tenant, at FROM usage_dirty WHERE series = $1 AND since <= $2 ORDER BY since LIMIT $3"+tx.dialect.lock("UPDATE SKIP LOCKED"), t.name, micros(by), page(n))
	if err != nil {
		return nil, err
	}
	tenants := map[int64][]any{}
	for _, m := range marks {
		tenants[m.at] = append(tenants[m.at], []byte(m.tenant))
	}
	for at, of := range tenants {
		if err := tx.tx.exec("DELETE FROM usage_dirty WHERE series = $1 AND at = $2 AND tenant IN "+tx.dialect.arguments(3, len(of)), append([]any{t.name, at}, of...)...); err != nil {
			return nil, err
		}
	}
	return tenants, nil
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

// compute computes what tenants have at some times, and marks what is computed of it.
func (tx *UsageTx) compute(t *usageTable, tenants map[int64][]any) error {
	above := map[usageMark]bool{}
	for _, at := range slices.Sorted(maps.Keys(tenants)) {
		if err := tx.computeAt(t, at, tenants[at]); err != nil {
			return err
		}
		for _, tenant := range tenants[at] {
			if name, ok := tenant.([]byte); ok && t.above != nil {
				above[usageMark{t.above, string(name), t.above.of(at)}] = true
			}
		}
	}
	return tx.mark(above)
}

// computeAt computes what tenants have at a time.
func (tx *UsageTx) computeAt(t *usageTable, at int64, tenants []any) error {
	crowded, others, err := tx.crowded(t, at, tenants, tx.names)
	if err != nil {
		return err
	}
	if len(others) > 0 {
		if err := tx.tx.exec(tx.dialect.computeSums(t, len(others)), append([]any{at, t.begins(at), t.begins(at + 1)}, others...)...); err != nil {
			return err
		}
		found, _, err := tx.crowded(t, at, others, tx.names+1)
		if err != nil {
			return err
		}
		crowded = append(crowded, found...)
	}
	return tx.fold(t, at, crowded)
}

// computeSums is the statement that computes what so many tenants have at a time.
func (d Dialect) computeSums(t *usageTable, tenants int) string {
	var sums []string
	for _, n := range t.numbers {
		sums = append(sums, d.sum("b."+n))
	}
	below := "b." + strings.Join(t.keys, ", b.")
	return d.putSums(t, "SELECT b.tenant, CAST($1 AS "+d.of("{integer}")+"), "+below+", "+strings.Join(sums, ", ")+
		" FROM "+t.below+" b WHERE b."+t.at+" >= $2 AND b."+t.at+" < $3 AND b.tenant IN "+d.arguments(4, tenants)+" GROUP BY b.tenant, "+below)
}

// putSums is the statement that writes the sums of a query.
func (d Dialect) putSums(t *usageTable, query string) string {
	var sets, differs []string
	for _, n := range t.numbers {
		sets = append(sets, n+" = excluded."+n)
		differs = append(differs, "excluded."+n+" <> "+t.name+"."+n)
	}
	keys := strings.Join(t.keys, ", ")
	return "INSERT INTO " + t.name + " (tenant, at, " + keys + ", " + strings.Join(t.numbers, ", ") + ") " + query +
		" ON CONFLICT (tenant, at, " + keys + ") DO UPDATE SET " + strings.Join(sets, ", ") + " WHERE " + strings.Join(differs, " OR ")
}

// UsageWaiting says what of usage is to be computed anew: whether anything is, and since when the oldest of it waits.
func (v *View) UsageWaiting() (since time.Time, _ error) {
	for _, t := range usageTables {
		oldest, err := one(v, func(row scanner, at *time.Time) error { return row.Scan(instant{at}) },
			"SELECT since FROM usage_dirty WHERE series = $1 ORDER BY since LIMIT 1", t.name)
		if err != nil {
			return time.Time{}, err
		}
		if oldest != nil && (since.IsZero() || oldest.Before(since)) {
			since = *oldest
		}
	}
	return since, nil
}
