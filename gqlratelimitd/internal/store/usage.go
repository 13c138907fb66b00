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

// UsageCount is what was counted in a minute of a unit, or of a root field, in one generation.
type UsageCount struct {
	Tenant string
	// Minute is in minutes since 1970.
	Minute int64
	Grade  bucket.UsageGrade
	// Unit is what is counted, and Field the coordinate of a root field, empty for the unit as a whole.
	Unit, Field string
	Generation  uint64
	// Charged and GivenBack are of the unit, and Calls is how often a root field was called.
	Charged, GivenBack, Calls int64
}

// DecisionCount is what an instance has decided in a minute, since it was started.
type DecisionCount struct {
	Tenant string
	Minute int64
	// Dimension is the word for what decisions are counted by, and Name that of one such thing: empty for all of the tenant.
	Dimension, Name string
	// Instance and Boot are who says it.
	Instance, Boot string

	Admitted, Refused, WouldRefuse, Points int64
}

// ReachedCount is how often an instance has seen a limit used up to a share in a minute, since it was started.
type ReachedCount struct {
	Tenant string
	Minute int64
	// Level is the word for whose limit it is, and Owner tells owners of one level apart.
	Level, Owner, Limit string
	// Threshold is the share in per cent.
	Threshold      int
	Instance, Boot string
	Times          int64
}

// UsageTx is a transaction about usage, which waits for no change of [DB.Change], and none of them for it. It holds until the function that
// was given it returns, for one goroutine.
type UsageTx struct {
	tx      *Tx
	dialect Dialect
	// names is how many names of a kind a tenant has.
	names int
	// state is nil before it is read.
	state *UsageState
}

// Count makes a transaction about usage: all that the function does is there once it returns nil, and nothing of it after any other error than
// [ErrUncertain]. Several may do so at once, also in several daemons, and about the same tenants. The function may be called several times. A file of
// SQLite has one writer, so that the function is quick.
func (db *DB) Count(ctx context.Context, count func(*UsageTx) error) error {
	return repeat(ctx, func(ctx context.Context) error {
		return db.change(ctx, false, func(tx *Tx) error { return count(&UsageTx{tx: tx, dialect: db.dialect, names: db.names}) })
	})
}

// UsageState says what there is of usage. Days and months are counted since 1970.
type UsageState struct {
	// MinutesFrom is the first day of which there are minutes, and MinutesUntil the first of which there are none yet: before it is zero, nothing can
	// be counted.
	MinutesFrom, MinutesUntil int64
	// HoursFrom is the first day of which there are hours, and DaysFrom the first month of which there are days.
	HoursFrom, DaysFrom int64
}

const usageStateSQL = "SELECT minutes_from, minutes_until, hours_from, days_from FROM usage_state WHERE id = 1"

func scanUsageState(row scanner, s *UsageState) error {
	return row.Scan(&s.MinutesFrom, &s.MinutesUntil, &s.HoursFrom, &s.DaysFrom)
}

// UsageState returns what there is of usage.
func (v *View) UsageState() (UsageState, error) {
	s, err := v.usageState("")
	if err != nil {
		return UsageState{}, err
	}
	return *s, nil
}

func (v *View) usageState(lock string) (*UsageState, error) {
	s, err := one(v, scanUsageState, usageStateSQL+lock)
	if err == nil && s == nil {
		err = errors.New("store: the row of usage_state is missing")
	}
	return s, err
}

// kept returns the state, which nobody changes before the transaction ends.
func (tx *UsageTx) kept() (*UsageState, error) {
	if tx.state != nil {
		return tx.state, nil
	}
	var err error
	tx.state, err = tx.tx.usageState(tx.dialect.lock("SHARE"))
	return tx.state, err
}

// UsagePass returns up to which minute, since 1970, a pass has come: 0 for one that was never begun.
func (v *View) UsagePass(pass string) (int64, error) {
	minute, err := one(v, scanNumber, "SELECT minute FROM usage_pass WHERE pass = $1", pass)
	if err != nil || minute == nil {
		return 0, err
	}
	return *minute, nil
}

// PutUsagePass notes that a pass has come up to a minute. It goes back by [UsageTx.SetBackUsagePass] alone.
func (tx *UsageTx) PutUsagePass(pass string, minute int64) error {
	return tx.tx.exec("INSERT INTO usage_pass (pass, minute, began) VALUES ($1, $2, $2) ON CONFLICT (pass) DO UPDATE SET minute = "+
		tx.dialect.greatest("usage_pass.minute", "excluded.minute"), pass, minute)
}

// SetBackUsagePass notes that a pass has come up to a minute at most, because the clock was wrong by which more was noted.
func (tx *UsageTx) SetBackUsagePass(pass string, minute int64) error {
	return tx.tx.exec("UPDATE usage_pass SET minute = $1, began = CASE WHEN began > $1 THEN $1 ELSE began END WHERE pass = $2 AND minute > $1", minute, pass)
}
