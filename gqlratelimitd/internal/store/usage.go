package store

import (
	"context"
	"errors"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// Bounds of what is counted. Who can write into the Redis can have said more.
const (
	// MaxUsage is the largest number of a minute, and the largest sum: all integers up to it are exact as numbers of JSON.
	MaxUsage = 1<<53 - 1
	// MaxUsageTenant is how many bytes the name of a tenant has at most of whom something is counted, and MaxUsageName any other name.
	MaxUsageTenant = 512
	MaxUsageName   = 256
)

// UsageLevel is how long the periods are of which there are counts. They are those of UTC, and counted since 1970.
type UsageLevel uint8

// The levels.
const (
	UsageHours UsageLevel = iota
	UsageMinutes
)

// UsageCount is what was counted in a minute or an hour of a unit, or of a root field, in one generation.
type UsageCount struct {
	Tenant string
	// At is the minute or the hour, since 1970.
	At    int64
	Grade bucket.UsageGrade
	// Unit is what is counted, and Field the coordinate of a root field, empty for the unit as a whole.
	Unit, Field string
	Generation  uint64
	// Charged and GivenBack are of the unit, and Calls is how often a root field was called.
	Charged, GivenBack, Calls int64
}

// RefusedCount is how many operations all instances together have refused in an hour.
type RefusedCount struct {
	Tenant string
	// Hour is in hours since 1970.
	Hour int64
	// Name is that of the limit.
	Name    string
	Refused int64
}

// UsageTx is a transaction about usage, which waits for no change of [DB.Change], and none of them for it. It holds until the function that
// was given it returns, for one goroutine.
type UsageTx struct {
	tx      *Tx
	dialect Dialect
	// state is nil before it is read.
	state *UsageState
}

// Count makes a transaction about usage: all that the function does is there once it returns nil, and nothing of it after any other error than
// [ErrUncertain]. Several may do so at once, also in several daemons, and about the same tenants. The function may be called several times. A file of
// SQLite has one writer, so that the function is quick.
func (db *DB) Count(ctx context.Context, count func(*UsageTx) error) error {
	return repeat(ctx, func(ctx context.Context) error {
		return db.change(ctx, false, func(tx *Tx) error { return count(&UsageTx{tx: tx, dialect: db.dialect}) })
	})
}

// UsageState says of which time there are counts.
type UsageState struct {
	// MinutesFrom is the first minute, and HoursFrom the first hour, since 1970. What was before is forgotten.
	MinutesFrom, HoursFrom int64
}

// UsageState returns of which time there are counts.
func (v *View) UsageState() (UsageState, error) {
	s, err := one(v, func(row scanner, s *UsageState) error { return row.Scan(&s.MinutesFrom, &s.HoursFrom) },
		"SELECT minutes_from, hours_from FROM usage_state WHERE id = 1")
	if err == nil && s == nil {
		err = errors.New("store: the row of usage_state is missing")
	}
	if err != nil {
		return UsageState{}, err
	}
	return *s, nil
}

// kept returns the state. What another transaction forgets meanwhile is removed by the next removal.
func (tx *UsageTx) kept() (*UsageState, error) {
	if tx.state == nil {
		state, err := tx.tx.UsageState()
		if err != nil {
			return nil, err
		}
		tx.state = &state
	}
	return tx.state, nil
}

// UsagePass says of which time counts were collected, in minutes since 1970. Both are 0 where nothing was ever collected.
type UsagePass struct {
	// Began is the first minute that anybody has collected, and Collected the first one that nobody has yet.
	Began, Collected int64
}

// UsagePass returns of which time counts were collected.
func (v *View) UsagePass() (UsagePass, error) {
	p, err := one(v, func(row scanner, p *UsagePass) error { return row.Scan(&p.Began, &p.Collected) }, "SELECT began, collected FROM usage_pass WHERE id = 1")
	if err != nil || p == nil {
		return UsagePass{}, err
	}
	return *p, nil
}

// PutUsagePass notes that everything is here that was counted from Began on and before Collected. The time only grows: it begins with the earlier
// beginning, and goes back by [UsageTx.SetBackUsagePass] alone.
func (tx *UsageTx) PutUsagePass(p UsagePass) error {
	return tx.tx.exec("INSERT INTO usage_pass (id, began, collected) VALUES (1, $1, $2) ON CONFLICT (id) DO UPDATE SET began = CASE WHEN usage_pass.began < excluded.began "+
		"THEN usage_pass.began ELSE excluded.began END, collected = "+tx.dialect.greatest("usage_pass.collected", "excluded.collected"), p.Began, p.Collected)
}

// SetBackUsagePass notes that counts were collected up to a minute at most, because the clock was wrong by which more was noted.
func (tx *UsageTx) SetBackUsagePass(minute int64) error {
	return tx.tx.exec("UPDATE usage_pass SET collected = $1, began = CASE WHEN began > $1 THEN $1 ELSE began END WHERE id = 1 AND collected > $1", minute)
}

// UsageGap is a time that nobody has collected, in minutes since 1970: from First on, and before Until.
type UsageGap struct{ First, Until int64 }

// PutUsageGap notes a gap. One that begins where another one does is the longer of both.
func (tx *UsageTx) PutUsageGap(g UsageGap) error {
	return tx.tx.exec("INSERT INTO usage_gap (first_minute, until_minute) VALUES ($1, $2) ON CONFLICT (first_minute) DO UPDATE SET until_minute = "+
		tx.dialect.greatest("usage_gap.until_minute", "excluded.until_minute"), g.First, g.Until)
}

// UsageGaps returns the gaps that have a minute from one on and before another, the first ones first.
func (v *View) UsageGaps(first, until int64) ([]UsageGap, error) {
	return many(v, func(row scanner, g *UsageGap) error { return row.Scan(&g.First, &g.Until) },
		"SELECT first_minute, until_minute FROM usage_gap WHERE first_minute < $2 AND until_minute > $1 ORDER BY first_minute LIMIT $3", first, until, MaxPage)
}
