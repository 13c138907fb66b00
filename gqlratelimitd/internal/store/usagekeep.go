package store

import (
	"slices"
	"time"
)

// KeepUsage raises what there is of usage: it makes room for the minutes of days before MinutesUntil, and has those of days before MinutesFrom
// forgotten, and hours and days likewise. None ever goes back. What was not yet taken up by the next level is forgotten later, and a level is never
// kept for less time than the one below it. In a PostgreSQL minutes are gone with the call, in a file of SQLite after [UsageTx.RemoveUsage],
// as are hours, days and months in both. It returns what there is then.
func (tx *UsageTx) KeepUsage(want UsageState) (UsageState, error) {
	// Who counts or computes holds the row as well.
	kept, err := tx.tx.usageState(tx.dialect.lock("UPDATE"))
	if err != nil {
		return UsageState{}, err
	}
	is := *kept
	is.MinutesUntil = max(is.MinutesUntil, want.MinutesUntil)
	if is.MinutesFrom, err = tx.raise(is.MinutesFrom, want.MinutesFrom, &usageHours, &decisionHours, &reachedDays); err != nil {
		return UsageState{}, err
	}
	if is.HoursFrom, err = tx.raise(is.HoursFrom, min(want.HoursFrom, is.MinutesFrom), &usageDays, &decisionDays); err != nil {
		return UsageState{}, err
	}
	if is.DaysFrom, err = tx.raise(is.DaysFrom, min(want.DaysFrom, MonthOfDay(is.HoursFrom)), &usageMonths, &decisionMonths); err != nil {
		return UsageState{}, err
	}
	is.MinutesUntil = max(is.MinutesUntil, is.MinutesFrom)
	if is == *kept {
		return is, nil
	}
	if err := tx.tx.exec("UPDATE usage_state SET minutes_from = $1, minutes_until = $2, hours_from = $3, days_from = $4 WHERE id = 1",
		is.MinutesFrom, is.MinutesUntil, is.HoursFrom, is.DaysFrom); err != nil {
		return UsageState{}, err
	}
	tx.state = &is
	if tx.dialect == PostgreSQL {
		return is, tx.tx.exec("SELECT usage_days()")
	}
	return is, nil
}

// raise is the day or month before which all below some tables is to be forgotten: not above one in which something is to be computed.
func (tx *UsageTx) raise(is, want int64, tables ...*usageTable) (int64, error) {
	for _, t := range tables {
		oldest, err := one(&tx.tx.View, scanNumber, "SELECT coalesce(min(at), -1) FROM usage_dirty WHERE series = $1", t.name)
		if err != nil {
			return 0, err
		}
		if *oldest >= 0 {
			want = min(want, t.group(*oldest))
		}
	}
	return max(is, want), nil
}

// group is the day or month that is forgotten as a whole and has one of the times of the table.
func (t *usageTable) group(at int64) int64 {
	if t == &usageHours || t == &decisionHours {
		return at / hoursOfDay
	}
	return at
}

// usageSpan is what of a table is kept.
type usageSpan struct {
	table, column string
	// from is the first of its times that is kept.
	from func(*UsageState) int64
}

// spans are what of each table is kept.
func (d Dialect) spans() []usageSpan {
	ofMinutes := func(s *UsageState) int64 { return s.MinutesFrom * minutesOfDay }
	ofHours := func(s *UsageState) int64 { return s.HoursFrom * hoursOfDay }
	ofDays := func(s *UsageState) int64 { return FirstDayOfMonth(s.DaysFrom) }
	ofMonths := func(s *UsageState) int64 { return s.DaysFrom }
	spans := []usageSpan{
		{"usage_hour", "at", ofHours},
		{"decision_hour", "at", ofHours},
		{"usage_day", "at", ofDays},
		{"decision_day", "at", ofDays},
		{"reached_day", "at", ofDays},
		{"usage_month", "at", ofMonths},
		{"decision_month", "at", ofMonths},
	}
	if d == SQLite {
		spans = append(spans, usageSpan{"usage_minute", "minute", ofMinutes}, usageSpan{"decision_minute", "minute", ofMinutes}, usageSpan{"reached_minute", "minute", ofMinutes})
	}
	return spans
}

// UsageRemoval is how far [UsageTx.RemoveUsage] has come. The zero value has not begun.
type UsageRemoval struct {
	table  int
	tenant []byte
	// Done says that all is removed.
	Done bool
}

// RemoveUsage removes what is forgotten of at most n tenants in one table, and returns how far it has come then. It may begin anew at any time.
func (tx *UsageTx) RemoveUsage(from UsageRemoval, n int) (UsageRemoval, error) {
	kept, err := tx.kept()
	if err != nil {
		return from, err
	}
	spans := tx.dialect.spans()
	if from.table >= len(spans) {
		return UsageRemoval{Done: true}, nil
	}
	s := &spans[from.table]
	tenants, err := tx.tx.tenantsIn(s.table, from.tenant, page(n))
	if err != nil {
		return from, err
	}
	if len(tenants) == 0 {
		return UsageRemoval{table: from.table + 1, Done: from.table+1 == len(spans)}, nil
	}
	err = tx.tx.exec("DELETE FROM "+s.table+" WHERE "+s.column+" < $1 AND tenant IN "+tx.dialect.arguments(2, len(tenants)), append([]any{s.from(kept)}, tenants...)...)
	last, _ := tenants[len(tenants)-1].([]byte)
	// The one that follows has a byte more.
	return UsageRemoval{table: from.table, tenant: append(slices.Clone(last), 0)}, err
}

// tenantsIn returns tenants that a table has, from one on. It looks at one row of each.
func (v *View) tenantsIn(table string, from []byte, n int) ([]any, error) {
	return many(v, func(row scanner, tenant *any) error {
		var name []byte
		err := row.Scan(&name)
		*tenant = stored(name)
		return err
	}, `WITH RECURSIVE t (tenant) AS (
			SELECT * FROM (SELECT tenant FROM `+table+` WHERE tenant >= $1 ORDER BY tenant LIMIT 1) AS f
			UNION ALL SELECT (SELECT u.tenant FROM `+table+` u WHERE u.tenant > t.tenant ORDER BY u.tenant LIMIT 1) FROM t WHERE t.tenant IS NOT NULL
		) SELECT tenant FROM t WHERE tenant IS NOT NULL LIMIT $2`, stored(from), n)
}

// DayOf is a day, counted since 1970 in UTC.
func DayOf(at time.Time) int64 { return at.Unix() / secondsOfDay }
