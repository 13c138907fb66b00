package freeze

import (
	"context"
	"time"
)

// Actor is the part of the control plane that freezes by itself, as the audit log has it.
const Actor = "freezer"

// Reason is why a period is not frozen yet, in one word.
type Reason string

// The reasons.
const (
	// Unsettled: settlements of it may still come.
	Unsettled Reason = "unsettled"
	// Uncollected: nobody has collected anything of it.
	Uncollected Reason = "uncollected"
	// Behind: the collector has not come so far.
	Behind Reason = "behind"
	// Unsearched: the store of budgets was not searched since the end of the period.
	Unsearched Reason = "unsearched"
	// Uncomputed: something is collected and not added up.
	Uncomputed Reason = "uncomputed"
	// Gap: counts of it may be lost, because nobody has collected for longer than they are kept elsewhere. A person has to say that it is frozen all the same.
	Gap Reason = "gap"
	// Forgotten: its counts are not kept any more.
	Forgotten Reason = "forgotten"
	// Key: this daemon has another key than the audit log.
	Key Reason = "key"
)

// Reasons are those for which a period that is due waits.
func Reasons() []Reason { return []Reason{Uncollected, Behind, Unsearched, Uncomputed, Gap, Key} }

// WaitError says why a period cannot be frozen, for now or for ever.
type WaitError struct {
	Reason Reason
	// Problem says it to a person.
	Problem string
}

// Error says why.
func (e *WaitError) Error() string { return e.Problem }

// Left is a tenant without a statement, and why it has none.
type Left struct{ Tenant, Problem string }

// Page is what was made of some tenants.
type Page struct {
	// Made are the statements of the period, and Corrected those of the one before, in whose place there is another one because something has changed.
	Made, Corrected int
	Left            []Left
	// Next is where the next tenants begin. Empty says that these were the last, and that the period is frozen.
	Next string
}

// Ledger is where statements are made, and which knows how far that has come.
type Ledger interface {
	// Frozen returns the day before which everything is frozen that can be. It is zero before the beginning.
	Frozen(ctx context.Context) (time.Time, error)
	// Begin notes where freezing begins that is switched on at a time. It does nothing where nothing was collected yet, or where it was noted already.
	Begin(ctx context.Context, s Schedule, now time.Time) error
	// Freeze makes statements of some tenants, and with those of the last tenants notes that the period is frozen. What has changed in the period
	// before it is corrected. It does no harm if it is done twice. The error is a [*WaitError] where the period cannot be frozen.
	Freeze(ctx context.Context, p Period, after string) (Page, error)
}

// Status is what there is to freeze, and what is in its way.
type Status struct {
	// Frozen is the day before which everything is frozen. It is zero before the beginning, and then so is all that follows.
	Frozen time.Time
	// Next is the period that is next, and Due when.
	Next Period
	Due  time.Time
	// Wait is why the next period is not frozen although it is due. Nil if nothing is in its way, or it is not due.
	Wait *WaitError
}

// Overdue is for how long the next period is due.
func (s *Status) Overdue(now time.Time) time.Duration {
	if s.Due.IsZero() {
		return 0
	}
	return max(0, now.Sub(s.Due))
}
