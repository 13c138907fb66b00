package store

import (
	"fmt"
	"strings"
)

// UsageBy is what there is a row for in each period.
type UsageBy uint8

// What there are rows for. Units and fields were counted in the step that charged them, and limits by instances.
const (
	UsageByUnit UsageBy = iota
	UsageByField
	UsageByLimit
)

// UsageQuery says which counts are read.
type UsageQuery struct {
	// Tenant is whose they are. Empty is all, which is fast for hours by unit and limit alone.
	Tenant string
	Level  UsageLevel
	By     UsageBy
	// From is the first period of the level, and To the one after the last.
	From, To int64
	// Per is of how many periods of the level a row has the sum: of those whose numbers have the same quotient. Zero makes one period of all of them.
	Per int64
	// Names leaves only those of such a name. Nil leaves all.
	Names []string
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
	// At is the quotient of its periods, and 0 where all are one.
	At     int64
	Tenant string
	// Grade is the word for how much it is to be believed. It is empty of what instances have counted.
	Grade string
	Name  string
	// Charged and GivenBack are of units and fields, Calls of fields, and Refused of limits. None is above [MaxUsage].
	Charged, GivenBack, Calls, Refused int64
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

// table is where rows are.
func (q *UsageQuery) table() string {
	if q.By == UsageByLimit {
		return refusedTable.name
	}
	return countTables[q.Level].name
}

// columns are those of names and of numbers.
func (q *UsageQuery) columns() (name string, numbers []string) {
	switch q.By {
	case UsageByUnit:
		return "unit", []string{"charged", "given_back"}
	case UsageByField:
		return "field", []string{"charged", "given_back", "calls"}
	case UsageByLimit:
	}
	return "name", []string{"refused"}
}

// filter adds what all rows have in common. What is constant stands in the text, so that an index of such rows fits.
func (q *UsageQuery) filter(w *where) {
	if q.Tenant != "" {
		w.and("tenant = ?", []byte(q.Tenant))
	}
	from := q.From
	if q.After != nil && q.Per > 0 {
		from = max(from, q.After.At*q.Per)
	}
	w.and("at >= ?", from)
	w.and("at < ?", q.To)
	switch q.By {
	case UsageByUnit:
		w.and("length(field) = 0")
	case UsageByField:
		w.and("length(field) > 0")
	case UsageByLimit:
	}
	if name, _ := q.columns(); q.Names != nil {
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
	var keys []string
	var marks []any
	add := func(column string, mark any) {
		keys, marks = append(keys, column), append(marks, mark)
	}
	after := UsagePlace{}
	if q.After != nil {
		after = *q.After
	}
	switch q.Per {
	case 0:
	case 1:
		add("at", after.At)
	default:
		add(fmt.Sprintf("at / %d", q.Per), after.At)
	}
	if q.Tenant == "" {
		add("tenant", []byte(after.Tenant))
	}
	if q.By != UsageByLimit {
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
	if q.Per > 0 {
		into = append(into, &r.At)
	}
	if q.Tenant == "" {
		into = append(into, &tenant)
	}
	switch q.By {
	case UsageByUnit:
		into = append(into, &r.Grade, &name, &r.Charged, &r.GivenBack)
	case UsageByField:
		into = append(into, &r.Grade, &name, &r.Charged, &r.GivenBack, &r.Calls)
	case UsageByLimit:
		into = append(into, &name, &r.Refused)
	}
	err := row.Scan(into...)
	r.Tenant, r.Name = string(tenant), string(name)
	return err
}
