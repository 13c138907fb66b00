package store

import (
	"fmt"
	"strings"
)

// UsageLevel is how long the periods are of which there are rows.
type UsageLevel uint8

// The levels. All are of UTC, and counted since 1970.
const (
	UsageMinutes UsageLevel = iota
	UsageHours
	UsageDays
	UsageMonths
)

// seriesTables are the ends of the names of tables, and the columns of periods.
var seriesTables = [...]struct{ suffix, at string }{{"_minute", "minute"}, {"_hour", "at"}, {"_day", "at"}, {"_month", "at"}}

// UsageBy is what there is a row for in each period.
type UsageBy uint8

// What there are rows for. Units and fields were counted in the step that charged them, and the others by instances.
const (
	UsageByTenant UsageBy = iota
	UsageByOperation
	UsageByTeam
	UsageByUser
	UsageByLimit
	UsageByUnit
	UsageByField
)

// usageDimensions are the words of what instances count by.
var usageDimensions = [...]string{
	UsageByTenant: "tenant", UsageByOperation: "operation", UsageByTeam: "team", UsageByUser: "user", UsageByLimit: "limit",
}

// Charged reports whether it was counted in the step that charged it.
func (b UsageBy) Charged() bool { return b >= UsageByUnit }

// otherUsage is the name of what has no row of its own.
const otherUsage = "*"

// UsageQuery says which counts are read.
type UsageQuery struct {
	// Tenant is whose they are. Empty is all, which is fast for days and months by tenant and by unit alone.
	Tenant string
	Level  UsageLevel
	By     UsageBy
	// From is the first period, and To the one after the last.
	From, To int64
	// Whole makes one period of all of them, which is From.
	Whole bool
	// Names leaves only those of such a name. Nil leaves all.
	Names []string
	// Top are the names that have a row of their own. All others have one together, named *. Nil: each has its own.
	Top []string
	// After is after which row they are, nil for the first ones.
	After *UsagePlace
}

// UsagePlace is a place in the order of rows: by period, tenant, grade and name.
type UsagePlace struct {
	At                  int64
	Tenant, Grade, Name string
}

// UsageRow is what was counted in a period, of one name.
type UsageRow struct {
	At     int64
	Tenant string
	// Grade is the word for how much it is to be believed. It is empty of what instances have counted.
	Grade string
	Name  string
	// Charged, GivenBack and Calls are of units and fields, the others of what instances count. None is above [MaxUsage].
	Charged, GivenBack, Calls              int64
	Admitted, Refused, WouldRefuse, Points int64
}

// Place is where it stands.
func (r *UsageRow) Place() *UsagePlace { return &UsagePlace{r.At, r.Tenant, r.Grade, r.Name} }

// FindUsage returns at most n rows, of [MaxPage] and one more, in the order of [UsagePlace].
func (v *View) FindUsage(q *UsageQuery, n int) ([]UsageRow, error) {
	query, args := q.rows(v.dialect, max(0, min(n, MaxPage+1)))
	return many(v, q.scan, query, args...)
}

// CountUsage returns how many rows there are, of at most so many: whether there are more nobody knows.
func (v *View) CountUsage(q *UsageQuery, most int) (int, error) {
	query, args := q.rows(v.dialect, most)
	n, err := one(v, scanNumber, "SELECT count(*) FROM ("+query+") AS found", args...)
	if err != nil {
		return 0, err
	}
	return int(*n), nil
}

// TopUsage returns at most n names: of most points, then of those of which most was refused or would have been.
func (v *View) TopUsage(q *UsageQuery, n int) ([]string, error) {
	var w where
	q.filter(&w)
	name, _ := q.columns()
	first, then := "points", "refused + would_refuse"
	if q.By.Charged() {
		first, then = "charged", "calls"
	}
	query := "SELECT " + name + " FROM " + q.table() + w.text.String() + " GROUP BY 1 ORDER BY " + v.dialect.sum(first) + " DESC, " + v.dialect.sum(then) + " DESC, 1 LIMIT " + w.arg(page(n))
	return many(v, func(row scanner, name *string) error {
		var raw []byte
		err := row.Scan(&raw)
		*name = string(raw)
		return err
	}, query, w.args...)
}

// table is where rows are.
func (q *UsageQuery) table() string {
	if q.By.Charged() {
		return "usage" + seriesTables[q.Level].suffix
	}
	return "decision" + seriesTables[q.Level].suffix
}

// columns are those of names and of numbers.
func (q *UsageQuery) columns() (name string, numbers []string) {
	switch q.By {
	case UsageByUnit:
		return "unit", []string{"charged", "given_back", "calls"}
	case UsageByField:
		return "field", []string{"charged", "given_back", "calls"}
	case UsageByTenant, UsageByOperation, UsageByTeam, UsageByUser, UsageByLimit:
	}
	return "name", []string{"admitted", "refused", "would_refuse", "points"}
}

// filter adds what all rows have in common. What is constant stands in the text, so that an index of such rows fits.
func (q *UsageQuery) filter(w *where) {
	at := seriesTables[q.Level].at
	if q.Tenant != "" {
		w.and("tenant = ?", []byte(q.Tenant))
	}
	from := q.From
	if q.After != nil && !q.Whole {
		from = max(from, q.After.At)
	}
	w.and(at+" >= ?", from)
	w.and(at+" < ?", q.To)
	name, _ := q.columns()
	switch q.By {
	case UsageByUnit:
		w.and("length(field) = 0")
	case UsageByField:
		w.and("length(field) > 0")
	case UsageByTenant, UsageByOperation, UsageByTeam, UsageByUser, UsageByLimit:
		w.and("dimension = '" + usageDimensions[q.By] + "'")
	}
	if q.Names != nil {
		w.and(name + " IN (" + w.names(q.Names) + ")")
	}
}

// names adds names as arguments, of which there is at least one that nothing has.
func (w *where) names(names []string) string {
	all := []string{"NULL"}
	for _, name := range names {
		all = append(all, w.arg([]byte(name)))
	}
	return strings.Join(all, ", ")
}

// rows is the query of n of them.
func (q *UsageQuery) rows(d Dialect, n int) (string, []any) {
	var w where
	q.filter(&w)
	name, numbers := q.columns()
	if q.Top != nil {
		name = fmt.Sprintf("CASE WHEN %s IN (%s) THEN %s ELSE %s END", name, w.names(q.Top), name, w.arg([]byte(otherUsage)))
	}
	var keys []string
	var marks []any
	add := func(column string, mark any) {
		keys, marks = append(keys, column), append(marks, mark)
	}
	after := UsagePlace{}
	if q.After != nil {
		after = *q.After
	}
	if !q.Whole {
		add(seriesTables[q.Level].at, after.At)
	}
	if q.Tenant == "" {
		add("tenant", []byte(after.Tenant))
	}
	if q.By.Charged() {
		add("grade", after.Grade)
	}
	add(name, []byte(after.Name))
	if q.After != nil {
		places := strings.TrimSuffix(strings.Repeat("?, ", len(keys)), ", ")
		w.and("("+strings.Join(keys, ", ")+") > ("+places+")", marks...)
	}
	columns, group := strings.Join(keys, ", "), ""
	for i := range keys {
		group += fmt.Sprintf(", %d", i+1)
	}
	for _, number := range numbers {
		columns += ", " + d.sum(number)
	}
	group = strings.TrimPrefix(group, ", ")
	query := "SELECT " + columns + " FROM " + q.table() + w.text.String() + " GROUP BY " + group + " ORDER BY " + group + " LIMIT " + w.arg(n)
	return query, w.args
}

// scan reads a row of such a query.
func (q *UsageQuery) scan(row scanner, r *UsageRow) error {
	tenant, name := []byte(q.Tenant), []byte(nil)
	var into []any
	if r.At = q.From; !q.Whole {
		into = append(into, &r.At)
	}
	if q.Tenant == "" {
		into = append(into, &tenant)
	}
	if q.By.Charged() {
		into = append(into, &r.Grade, &name, &r.Charged, &r.GivenBack, &r.Calls)
	} else {
		into = append(into, &name, &r.Admitted, &r.Refused, &r.WouldRefuse, &r.Points)
	}
	err := row.Scan(into...)
	r.Tenant, r.Name = string(tenant), string(name)
	return err
}
