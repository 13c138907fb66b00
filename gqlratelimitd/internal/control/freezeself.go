package control

import (
	"context"
	"errors"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/freeze"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

// frozenPass says before which minute everything is frozen that can be. It begins where freezing by itself did.
const frozenPass = "frozen"

// FreezeLedger is where statements are made by themselves, for the [freeze.Freezer] of the daemon: by [access.System], and otherwise as [Control.FreezeUsage]
// makes them. What has changed in the period before is corrected.
func (c *Control) FreezeLedger() freeze.Ledger { return freezeLedger{c} }

type freezeLedger struct{ c *Control }

// Frozen implements [freeze.Ledger].
func (l freezeLedger) Frozen(ctx context.Context) (frozen time.Time, _ error) {
	err := l.c.cfg.Store.Read(ctx, func(v *store.View) (err error) {
		frozen, err = frozenUntil(v)
		return err
	})
	return frozen, err
}

// frozenUntil is the day before which everything is frozen that can be: what is not kept any more nobody can freeze. It is zero before the beginning.
func frozenUntil(v *store.View) (time.Time, error) {
	minute, err := v.UsagePass(frozenPass)
	if err != nil || minute == 0 {
		return time.Time{}, err
	}
	kept, err := v.UsageState()
	if err != nil {
		return time.Time{}, err
	}
	return latest(minuteAt(minute), dayAt(store.FirstDayOfMonth(kept.DaysFrom))), nil
}

// Begin implements [freeze.Ledger].
func (l freezeLedger) Begin(ctx context.Context, s freeze.Schedule, now time.Time) error {
	var began time.Time
	err := l.c.cfg.Store.Read(ctx, func(v *store.View) error {
		span, err := v.UsageSpan(usagePass)
		began, _ = spanTimes(&span)
		return err
	})
	if err != nil || began.IsZero() {
		return err
	}
	return l.c.cfg.Store.Count(ctx, func(tx *store.UsageTx) error {
		return tx.PutUsagePass(frozenPass, s.First(now, began).Unix()/60)
	})
}

// Freeze implements [freeze.Ledger].
func (l freezeLedger) Freeze(ctx context.Context, p freeze.Period, after string) (page freeze.Page, _ error) {
	r := Request{Actor: access.System(freeze.Actor), Reason: "the billing period is over"}
	frozen, err := l.c.FreezeUsage(ctx, r, FreezeInput{
		From: p.From.Format(time.DateOnly), To: p.To.Format(time.DateOnly), After: after, N: MaxFrozen, again: true,
	})
	if wait := (*freeze.WaitError)(nil); errors.As(err, &wait) {
		return page, wait
	}
	if err != nil {
		return page, err
	}
	page.Next = frozen.Next
	for i := range frozen.Statements {
		switch s := &frozen.Statements[i]; {
		case !s.New:
		case s.Corrects != 0:
			page.Corrected++
		default:
			page.Made++
		}
	}
	for _, left := range frozen.Left {
		page.Left = append(page.Left, freeze.Left(left))
	}
	return page, nil
}

// correct makes a statement in the place of the one that ends where the period begins, if something has changed since.
func (f *freezing) correct(ctx context.Context, tenant string, kept store.UsageState, answer *Frozen) error {
	if named := checkText("tenant", tenant, audit.MaxName) == nil; !named {
		// There is none, and no way to ask for it.
		return nil
	}
	before, err := f.tx.StatementUntil(tenant, f.period.first)
	if err != nil || before == nil {
		return err
	}
	earlier := *f
	earlier.period = statementPeriod{before.FirstDay, before.UntilDay}
	earlier.cover, err = earlier.period.collected(&f.tx.View, kept, tenant, true)
	if err != nil {
		if wait := (*freeze.WaitError)(nil); errors.As(err, &wait) && wait.Reason == freeze.Forgotten {
			// It holds as it is.
			err = nil
		}
		return err
	}
	head, err := earlier.tenant(ctx, tenant)
	if err == nil && !head.New {
		return nil
	}
	return answer.add(tenant, head, err)
}

// note notes that a period is frozen of all tenants, where it is the one that is next. Freezing by itself goes on behind it.
func (p statementPeriod) note(tx *store.Tx) error {
	next, err := frozenUntil(&tx.View)
	// A longer one that begins earlier has left out whoever has a statement of its days: the rest of it is theirs still.
	if err != nil || !next.Equal(dayAt(p.first)) {
		return err
	}
	return tx.PutUsagePass(frozenPass, p.until*minutesOfDay)
}

// FreezeStatus says what is frozen by itself, how far that has come, and what is in its way: [access.ReadUsage] of all tenants.
func (c *Control) FreezeStatus(ctx context.Context, actor access.Actor) (*FreezeStatus, error) {
	if err := access.Authorize(actor, access.ReadUsage, ""); err != nil {
		return nil, err
	}
	status, err := c.Freezing(ctx)
	if err != nil {
		return nil, err
	}
	return &FreezeStatus{Schedule: c.cfg.Freeze, Status: status}, nil
}

// FreezeStatus is what is frozen by itself.
type FreezeStatus struct {
	// Schedule says which periods. The rest is zero where it is off.
	Schedule freeze.Schedule
	freeze.Status
}

// Freezing says how far freezing has come, for metrics.
func (c *Control) Freezing(ctx context.Context) (status freeze.Status, _ error) {
	if !c.cfg.Freeze.On() {
		return status, nil
	}
	err := c.cfg.Store.Read(ctx, func(v *store.View) (err error) {
		status = freeze.Status{}
		if status.Frozen, err = frozenUntil(v); err != nil || status.Frozen.IsZero() {
			return err
		}
		status.Next = c.cfg.Freeze.Period(status.Frozen)
		status.Due = c.cfg.Freeze.Due(status.Next)
		if c.now().Before(status.Due) {
			return nil
		}
		status.Wait, err = c.inTheWay(ctx, v, status.Next)
		return err
	})
	return status, err
}

// inTheWay says why a period that is due cannot be frozen, nil if it can.
func (c *Control) inTheWay(ctx context.Context, v *store.View, p freeze.Period) (*freeze.WaitError, error) {
	err := c.checkKey(ctx, v.Audit())
	if err == nil {
		var kept store.UsageState
		if kept, err = v.UsageState(); err == nil {
			_, err = statementPeriod{store.DayOf(p.From), store.DayOf(p.To)}.collected(v, kept, "", false)
		}
	}
	if wait := (*freeze.WaitError)(nil); errors.As(err, &wait) {
		return wait, nil
	}
	return nil, err
}
