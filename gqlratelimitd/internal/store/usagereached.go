package store

import "strings"

// ReachedQuery says which crossings of thresholds of a tenant are read.
type ReachedQuery struct {
	Tenant string
	// Level is [UsageMinutes] or [UsageDays]: nothing is kept by the hour or month.
	Level UsageLevel
	// From is the first period, and To the one after the last.
	From, To int64
	// Least is the smallest threshold.
	Least int
	// After is after which row they are, nil for the first ones.
	After *ReachedPlace
}

// ReachedPlace is a place in the order of rows: by period, owner, limit and threshold.
type ReachedPlace struct {
	At        int64
	Level     string
	Owner     string
	Limit     string
	Threshold int
}

// ReachedRow is how often a limit was used up to a threshold in a period.
type ReachedRow struct {
	At int64
	// Level is the word for whose limit it is, and Owner tells owners of one level apart.
	Level, Owner, Limit string
	Threshold           int
	Times               int64
}

// Place is where it stands.
func (r *ReachedRow) Place() *ReachedPlace {
	return &ReachedPlace{r.At, r.Level, r.Owner, r.Limit, r.Threshold}
}

// FindReached returns at most n rows, of [MaxPage] and one more.
func (v *View) FindReached(q *ReachedQuery, n int) ([]ReachedRow, error) {
	query, args := q.rows(v.dialect, max(0, min(n, MaxPage+1)))
	return many(v, func(row scanner, r *ReachedRow) error {
		var owner, limit []byte
		err := row.Scan(&r.At, &r.Level, &owner, &limit, &r.Threshold, &r.Times)
		r.Owner, r.Limit = string(owner), string(limit)
		return err
	}, query, args...)
}

// rows is the query of n of them.
func (q *ReachedQuery) rows(d Dialect, n int) (string, []any) {
	at := seriesTables[q.Level].at
	keys := at + ", level, owner, limit_name, threshold"
	var w where
	w.and("tenant = ?", []byte(q.Tenant))
	from := q.From
	if p := q.After; p != nil {
		from = max(from, p.At)
		w.and("("+keys+") > (?, ?, ?, ?, ?)", p.At, p.Level, []byte(p.Owner), []byte(p.Limit), p.Threshold)
	}
	w.and(at+" >= ?", from)
	w.and(at+" < ?", q.To)
	w.and("threshold >= ?", q.Least)
	// A daemon before this one has stored other words, too.
	w.and("level IN ('" + strings.Join(reachedLevels, "', '") + "')")
	query := "SELECT " + keys + ", " + d.sum("times") + " FROM reached" + seriesTables[q.Level].suffix + w.text.String() +
		" GROUP BY " + keys + " ORDER BY " + keys + " LIMIT " + w.arg(n)
	return query, w.args
}

// NearQuery says which limits of all tenants are found that were used up to a threshold on many days.
type NearQuery struct {
	// Level is the word for whose limits they are.
	Level string
	// From is the first day, and To the one after the last. Days is on how many of them at least.
	From, To int64
	Days     int
	// Least is the smallest threshold.
	Least int
	// After is after which row they are, nil for the first ones.
	After *NearPlace
}

// NearPlace is a place in the order of rows: those of more days first, and then by tenant, owner and limit.
type NearPlace struct {
	Days                 int
	Tenant, Owner, Limit string
}

// NearRow is a limit of an owner.
type NearRow struct {
	Tenant, Owner, Limit string
	// Days is on how many days it was used up to the threshold, Last the last one, and Times how often.
	Days  int
	Last  int64
	Times int64
	// Most is the largest threshold.
	Most int
}

// Place is where it stands.
func (r *NearRow) Place() *NearPlace { return &NearPlace{r.Days, r.Tenant, r.Owner, r.Limit} }

// FindNear returns at most n rows, of [MaxPage] and one more.
func (v *View) FindNear(q *NearQuery, n int) ([]NearRow, error) {
	query, args := q.rows(v.dialect, max(0, min(n, MaxPage+1)))
	return many(v, func(row scanner, r *NearRow) error {
		var tenant, owner, limit []byte
		err := row.Scan(&tenant, &owner, &limit, &r.Days, &r.Last, &r.Times, &r.Most)
		r.Tenant, r.Owner, r.Limit = string(tenant), string(owner), string(limit)
		return err
	}, query, args...)
}

// rows is the query of n of them.
func (q *NearQuery) rows(d Dialect, n int) (string, []any) {
	const keys = "tenant, owner, limit_name"
	var w where
	w.and("level = ?", q.Level)
	w.and("at >= ?", q.From)
	w.and("at < ?", q.To)
	w.and("threshold >= ?", q.Least)
	having := " HAVING count(DISTINCT at) >= " + w.arg(q.Days)
	if p := q.After; p != nil {
		having += " AND (count(DISTINCT at) < " + w.arg(p.Days) + " OR count(DISTINCT at) = " + w.arg(p.Days) + " AND (" + keys + ") > (" +
			w.arg([]byte(p.Tenant)) + ", " + w.arg([]byte(p.Owner)) + ", " + w.arg([]byte(p.Limit)) + "))"
	}
	query := "SELECT " + keys + ", count(DISTINCT at), max(at), " + d.sum("times") + ", max(threshold) FROM reached_day" + w.text.String() +
		" GROUP BY " + keys + having + " ORDER BY 4 DESC, " + keys + " LIMIT " + w.arg(n)
	return query, w.args
}
