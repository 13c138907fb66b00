package store

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"
)

// OverrideOrder is in which order overrides are listed.
type OverrideOrder uint8

// The orders.
const (
	// BySet has those that were set last in front.
	BySet OverrideOrder = iota
	// ByExpiry has those that end first in front, and those that never end at the end.
	ByExpiry
)

// sorts are the columns that orders sort by, and how a row has them. All of them grow from the front on.
var sorts = [...]struct {
	column string
	of     func(*ListedOverride) int64
}{
	BySet: {"-at", func(o *ListedOverride) int64 { return -micros(o.SetAt) }},
	ByExpiry: {"CASE expires WHEN 0 THEN 9223372036854775807 ELSE expires END", func(o *ListedOverride) int64 {
		if o.Expires.IsZero() {
			return math.MaxInt64
		}
		return micros(o.Expires)
	}},
}

// OverrideQuery says which overrides are listed, those that were set here and those that nobody has set here. The zero value is all that hold.
type OverrideQuery struct {
	// Tenant is whose they are. Empty is all.
	Tenant string
	// Now is by which time they hold. Ended adds those that were removed or have expired.
	Now   time.Time
	Ended bool
	// Blocked and Unmanaged leave only those that are so, or are not. Nil leaves all.
	Blocked, Unmanaged *bool
	// By leaves only those of an actor: the text of the record, or what stands in it before an issuer in brackets. Empty leaves all.
	By string
	// Until leaves only those that end by then. Zero leaves all.
	Until time.Time
	Order OverrideOrder
	// After is after which one they are, nil for the first ones.
	After *OverrideMark
}

// OverrideMark is a place in a list of overrides.
type OverrideMark struct {
	// Sort is what the order sorts by.
	Sort int64
	// Revision is that of one that was set here, and Key what one is about that was not. Those that were set here stand before others of
	// the same Sort.
	Revision uint64
	Key      *OverrideKey
}

// ListedOverride is an override in such a list.
type ListedOverride struct {
	Override
	// Unmanaged says that it is a record that nobody has set here, of which Actor and Reason are what it says itself. Found is when it was
	// seen first.
	Unmanaged bool
	Found     time.Time
	// Replaced says that it was set here, and that a record holds in its place that was not.
	Replaced bool
}

// Mark is its place.
func (o *ListedOverride) Mark(order OverrideOrder) *OverrideMark {
	m := &OverrideMark{Sort: sorts[order].of(o), Revision: o.Revision}
	if o.Unmanaged {
		key := o.Key()
		m.Key = &key
	}
	return m
}

// FindOverrides returns at most n overrides, of [MaxPage] and one more.
func (v *View) FindOverrides(q *OverrideQuery, n int) (found []ListedOverride, _ error) {
	n = max(0, min(n, MaxPage+1))
	var managed, unmanaged []ListedOverride
	var err error
	if q.Unmanaged == nil || !*q.Unmanaged {
		if managed, err = v.findManaged(q, n); err != nil {
			return nil, err
		}
	}
	if q.Unmanaged == nil || *q.Unmanaged {
		if unmanaged, err = v.findUnmanaged(q, n); err != nil {
			return nil, err
		}
	}
	sort := sorts[q.Order].of
	for len(found) < n && len(managed)+len(unmanaged) > 0 {
		from := &managed
		if len(managed) == 0 || len(unmanaged) > 0 && sort(&unmanaged[0]) < sort(&managed[0]) {
			from = &unmanaged
		}
		found = append(found, (*from)[0])
		*from = (*from)[1:]
	}
	return found, v.markReplaced(found)
}

// markReplaced says of those that were set here which ones a record has replaced that was not.
func (v *View) markReplaced(found []ListedOverride) error {
	there, err := v.CountUnmanaged()
	if err != nil || there == 0 {
		return err
	}
	known := map[string]map[OverrideKey]bool{}
	for i := range found {
		o := &found[i]
		if o.Unmanaged || o.Removed {
			continue
		}
		keys := known[o.Tenant]
		if keys == nil {
			records, err := v.Unmanaged(o.Tenant)
			if err != nil {
				return err
			}
			keys = make(map[OverrideKey]bool, len(records))
			for j := range records {
				keys[records[j].Key()] = true
			}
			known[o.Tenant] = keys
		}
		o.Replaced = keys[o.Key()]
	}
	return nil
}

func (v *View) findManaged(q *OverrideQuery, n int) ([]ListedOverride, error) {
	query, args := q.managed(n)
	return many(v, func(row scanner, o *ListedOverride) error {
		return scanOverride(row, &o.Override)
	}, query, args...)
}

// managed returns what those that were set here are asked for by.
func (q *OverrideQuery) managed(n int) (query string, args []any) {
	sort := sorts[q.Order].column
	var w where
	if m := q.After; m != nil && m.Key == nil {
		w.and("("+sort+", revision) > (?, ?)", m.Sort, int64(m.Revision))
	} else if m != nil {
		w.and(sort+" > ?", m.Sort)
	}
	q.filter(&w)
	if q.By != "" {
		prefix := q.By + " ("
		w.and("(author = ? OR substr(author, 1, ?) = ?)", q.By, utf8.RuneCountInString(prefix), prefix)
	}
	most := w.arg(n)
	return "SELECT " + overrideColumns + " FROM override_intent" + w.text.String() + " ORDER BY " + sort + ", revision LIMIT " + most, w.args
}

func (v *View) findUnmanaged(q *OverrideQuery, n int) ([]ListedOverride, error) {
	sort := sorts[q.Order].column
	var w where
	if m := q.After; m != nil {
		key := m.Key
		if key == nil {
			// Before all of that sort.
			w.and(sort+" >= ?", m.Sort)
		} else {
			w.and("("+sort+", "+unmanagedKey+") > (?, ?, ?, ?, ?, ?)", append([]any{m.Sort}, unmanagedArgs(key)...)...)
		}
	}
	q.filter(&w)
	if q.By != "" {
		prefix := q.By + " ("
		w.and("(author = ? OR substr(author, 1, ?) = ?)", []byte(q.By), len(prefix), []byte(prefix))
	}
	most := w.arg(n)
	return many(v, func(row scanner, o *ListedOverride) error {
		o.Unmanaged = true
		return scanOverride(more{row, []any{instant{&o.Found}}}, &o.Override)
	},
		"SELECT "+unmanagedColumns+" FROM override_unmanaged"+w.text.String()+" ORDER BY "+sort+", "+unmanagedKey+" LIMIT "+most, w.args...)
}

// filter adds what both tables are asked for in the same words.
func (q *OverrideQuery) filter(w *where) {
	if q.Tenant != "" {
		w.and("tenant = ?", []byte(q.Tenant))
	}
	if !q.Ended {
		w.and("document IS NOT NULL")
		w.and("(expires = 0 OR expires > ?)", micros(q.Now))
		if q.Order == ByExpiry {
			// The index begins with all that have ever expired.
			w.and(sorts[q.Order].column+" > ?", micros(q.Now))
		}
	}
	if q.Blocked != nil {
		w.and("blocked = ?", flag(*q.Blocked))
	}
	if !q.Until.IsZero() {
		w.and("expires > 0")
		w.and("expires <= ?", micros(q.Until))
		if q.Order == ByExpiry {
			// The index ends with all that end later.
			w.and(sorts[q.Order].column+" <= ?", micros(q.Until))
		}
	}
}

// where is the condition of a query.
type where struct {
	text strings.Builder
	args []any
}

// and adds a condition, in which each ? is an argument.
func (w *where) and(condition string, args ...any) {
	if w.text.Len() == 0 {
		w.text.WriteString(" WHERE ")
	} else {
		w.text.WriteString(" AND ")
	}
	for _, arg := range args {
		condition = strings.Replace(condition, "?", w.arg(arg), 1)
	}
	w.text.WriteString(condition)
}

// arg adds an argument, and returns what stands for it.
func (w *where) arg(v any) string {
	w.args = append(w.args, v)
	return fmt.Sprintf("$%d", len(w.args))
}
