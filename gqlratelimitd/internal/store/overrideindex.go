package store

import (
	"fmt"
	"strings"
	"time"
)

// OverrideQuery says which overrides are listed that were set here. The zero value is all that hold.
type OverrideQuery struct {
	// Tenant is whose they are. Empty is all.
	Tenant string
	// Now is by which time they hold. Ended adds those that were removed or have expired.
	Now   time.Time
	Ended bool
	// After is after which one they are, nil for the first ones.
	After *OverrideKey
}

// ListedOverride is an override in such a list.
type ListedOverride struct {
	Override
	// Replaced says that a record holds in its place that nobody has set here.
	Replaced bool
}

// FindOverrides returns at most n overrides, of [MaxPage] and one more, in the order of their keys.
func (v *View) FindOverrides(q *OverrideQuery, n int) ([]ListedOverride, error) {
	var w where
	if q.After != nil {
		w.and("("+overrideKey+") > (?, ?, ?, ?, ?)",
			[]byte(q.After.Tenant), q.After.Owner.Level.String(), []byte(q.After.Owner.Name), []byte(q.After.Owner.Part), q.After.Limit)
	}
	if q.Tenant != "" {
		w.and("tenant = ?", []byte(q.Tenant))
	}
	if !q.Ended {
		w.and("document IS NOT NULL")
		w.and("(expires = 0 OR expires > ?)", micros(q.Now))
	}
	most := w.arg(max(0, min(n, MaxPage+1)))
	found, err := many(v, func(row scanner, o *ListedOverride) error { return scanOverride(row, &o.Override) },
		"SELECT "+overrideColumns+" FROM override_intent"+w.text.String()+" ORDER BY "+overrideKey+" LIMIT "+most, w.args...)
	if err != nil {
		return nil, err
	}
	unmanaged, err := v.CountUnmanaged()
	if err != nil || unmanaged == 0 {
		return found, err
	}
	for i := range found {
		record, err := v.UnmanagedOverride(found[i].Key())
		if err != nil {
			return nil, err
		}
		found[i].Replaced = record != nil && !found[i].Removed
	}
	return found, nil
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
