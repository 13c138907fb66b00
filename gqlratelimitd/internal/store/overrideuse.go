package store

import (
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// UseEvery is how often it is noted at most that an override holds, and that it matters.
const UseEvery = time.Minute

// OverrideUse says when something was last decided under an override.
type OverrideUse struct {
	// Revision is that of one that was set here. 0 is a record that nobody has set here: of Tenant, about a Level and a Limit, set at SetAt
	// by the clock of the store of budgets.
	Revision      uint64
	Tenant, Limit string
	Level         bucket.Level
	SetAt         time.Time
	// Held is when something was decided under it, and Mattered when that was another decision than without it: zero if that is not known.
	Held, Mattered time.Time
}

// where says which rows it is about.
func (u *OverrideUse) where() (table string, w *where) {
	w = &where{}
	if u.Revision > 0 {
		w.and("revision = ?", u.Revision)
		return "override_intent", w
	}
	w.and("tenant = ?", []byte(u.Tenant))
	w.and("level = ?", u.Level.String())
	w.and("limit_name = ?", []byte(u.Limit))
	w.and("at = ?", micros(u.SetAt))
	return "override_unmanaged", w
}

// NewUses returns those that are worth noting: of overrides that are there, [UseEvery] after what was noted last.
func (v *View) NewUses(uses []OverrideUse) (fresh []OverrideUse, _ error) {
	for i := range uses {
		u := &uses[i]
		table, w := u.where()
		w.and("(held <= ? OR mattered <= ?)", micros(u.Held.Add(-UseEvery)), micros(u.Mattered)-UseEvery.Microseconds())
		n, err := one(v, scanNumber, "SELECT count(*) FROM "+table+w.text.String(), w.args...)
		if err != nil {
			return nil, err
		}
		if *n > 0 {
			fresh = append(fresh, *u)
		}
	}
	return fresh, nil
}

// NoteUse notes one. What was noted before never becomes older.
func (tx *Tx) NoteUse(u *OverrideUse) error {
	table, w := u.where()
	held, mattered := w.arg(micros(u.Held)), w.arg(micros(u.Mattered))
	return tx.exec("UPDATE "+table+" SET held = CASE WHEN held < "+held+" THEN "+held+" ELSE held END, mattered = CASE WHEN mattered < "+mattered+
		" THEN "+mattered+" ELSE mattered END"+w.text.String(), w.args...)
}
