package control_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/freeze"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/statement"
)

// byItself is a control plane that freezes each day by itself, from the first day of which there are counts on.
func (l *ledger) byItself(key *audit.Key) (*control.Control, *freeze.Freezer) {
	l.Helper()
	schedule := freeze.Schedule{Every: freeze.Daily}
	c, err := control.New(control.Config{Store: l.db, StatementKey: key, Freeze: schedule, Now: func() time.Time { return l.now }})
	require.NoError(l, err)
	f, err := freeze.New(freeze.Config{
		Store: l.db, Ledger: c.FreezeLedger(), Status: c.Freezing, Schedule: schedule, Now: func() time.Time { return l.now },
	})
	require.NoError(l, err)
	return c, f
}

// begin has freezing begin with the first day of which there are counts.
func (l *ledger) begin(f *freeze.Freezer) {
	l.Helper()
	now := l.now
	l.now = firstFrozen.Add(control.StatementGrace)
	require.NoError(l, f.Look(l.ctx()))
	l.now = now
}

// heads are all statements, the oldest first, as tenant, first day, the number and what it corrects.
func (l *ledger) heads() (all []string) {
	l.Helper()
	found, err := l.Statements(l.ctx(), auditor, "", 0, 100)
	require.NoError(l, err)
	for i := len(found) - 1; i >= 0; i-- {
		h := &found[i]
		text := h.Tenant + " " + h.From.Format(time.DateOnly)
		if h.Corrects != 0 {
			text += " corrects"
		}
		all = append(all, text)
	}
	return all
}

func TestDaysAreFrozenByThemselvesInTheirOrderAndWhatChangesIsCorrectedWithTheNext(t *testing.T) {
	t.Parallel()
	ledgers(t, func(l *ledger) {
		l.put([]store.UsageCount{
			{Tenant: "acme", Minute: minuteOf(firstFrozen), Unit: "points", Charged: 5},
			{Tenant: "acme", Minute: minuteOf(firstFrozen) + 1500, Unit: "points", Charged: 7},
			{Tenant: "globex", Minute: minuteOf(firstFrozen) + 1440, Unit: "points", Charged: 9},
			{Tenant: "\xff", Minute: minuteOf(firstFrozen), Unit: "points", Charged: 1},
		})
		c, f := l.byItself(l.key)
		l.begin(f)
		require.Empty(l, l.heads())
		l.now = firstFrozen.AddDate(0, 0, 4)
		require.NoError(l, f.Look(l.ctx()))
		want := []string{"acme 2026-11-16", "acme 2026-11-17", "globex 2026-11-17"}
		require.Equal(l, want, l.heads())
		require.NoError(l, f.Look(l.ctx()))
		require.Equal(l, want, l.heads(), "nothing is frozen twice")
		entries := l.entries()
		require.Len(l, entries, 3, "each has an entry")
		require.Equal(l, access.System(freeze.Actor).Audit(), entries[0].Actor)
		require.Equal(l, "the billing period is over", entries[0].Reason)

		// It comes after the day is frozen.
		l.put([]store.UsageCount{{Tenant: "acme", Minute: minuteOf(firstFrozen) + 1500, Unit: "points", Generation: 1 << 40, GivenBack: 3}})
		l.now = firstFrozen.AddDate(0, 0, 5).Add(-time.Second)
		require.NoError(l, f.Look(l.ctx()))
		require.Equal(l, want, l.heads(), "the next day is not due")
		l.now = firstFrozen.AddDate(0, 0, 5)
		_, again := l.byItself(l.key)
		require.NoError(l, again.Look(l.ctx()))
		want = append(want, "acme 2026-11-17 corrects")
		require.Equal(l, want, l.heads(), "also after a restart")
		corrected := l.read(4)
		require.Equal(l, []statement.Line{{Unit: "points", Grade: "exact", GivenBack: 3}}, corrected.Differences)
		_, err := statement.Check([]*statement.Statement{l.read(1), l.read(2), corrected})
		require.NoError(l, err)
		status, err := c.FreezeStatus(l.ctx(), auditor)
		require.NoError(l, err)
		require.Equal(l, freeze.Status{
			Frozen: firstFrozen.AddDate(0, 0, 3), Next: freeze.Period{From: firstFrozen.AddDate(0, 0, 3), To: firstFrozen.AddDate(0, 0, 4)}, Due: firstFrozen.AddDate(0, 0, 6),
		}, status.Status)
	})
}

// requireWaits checks that nothing is frozen, and that the reason is told by whoever looks and by whoever is asked.
func (l *ledger) requireWaits(c *control.Control, f *freeze.Freezer, reason freeze.Reason, problem string) {
	l.Helper()
	before := l.heads()
	var wait *freeze.WaitError
	require.ErrorAs(l, f.Look(l.ctx()), &wait)
	require.Equal(l, reason, wait.Reason)
	require.Contains(l, wait.Problem, problem)
	require.Equal(l, before, l.heads())
	status, err := c.FreezeStatus(l.ctx(), auditor)
	require.NoError(l, err)
	require.Equal(l, wait, status.Wait)
	require.Contains(l, freeze.Reasons(), reason, "the metric has it")
	require.Equal(l, l.now.Sub(status.Due), status.Overdue(l.now))
}

func TestFreezingByItselfWaitsForTheCollectorAndSaysWhy(t *testing.T) {
	t.Parallel()
	ledgers(t, func(l *ledger) {
		first := store.UsageCount{Tenant: "acme", Minute: minuteOf(firstFrozen), Unit: "points", Charged: 5}
		l.collect(firstFrozen, firstFrozen, firstFrozen.AddDate(0, 0, 3).Add(-time.Minute), func(tx *store.UsageTx) {
			_, err := tx.PutUsage([]store.UsageCount{first})
			require.NoError(l, err)
		})
		c, f := l.byItself(l.key)
		l.begin(f)
		l.now = firstFrozen.AddDate(0, 0, 3).Add(-time.Second)
		require.NoError(l, f.Look(l.ctx()), "it is not due")
		l.now = firstFrozen.AddDate(0, 0, 3).Add(time.Hour)
		l.requireWaits(c, f, freeze.Behind, "the collector is behind")
		count := func(do func(tx *store.UsageTx) error) { l.Helper(); require.NoError(l, l.db.Count(l.ctx(), do)) }
		count(func(tx *store.UsageTx) error { return tx.PutUsagePass("told", minuteOf(l.now)) })
		l.requireWaits(c, f, freeze.Unsearched, "was not searched")
		count(func(tx *store.UsageTx) error { return tx.PutUsagePass("search", minuteOf(firstFrozen)+1439) })
		l.requireWaits(c, f, freeze.Unsearched, "was not searched")
		count(func(tx *store.UsageTx) error { return tx.PutUsagePass("search", minuteOf(firstFrozen)+1440) })
		count(func(tx *store.UsageTx) error {
			first.Generation = 9
			_, err := tx.PutUsage([]store.UsageCount{first})
			return err
		})
		l.requireWaits(c, f, freeze.Uncomputed, "not added up yet")
		require.NoError(l, l.db.Change(l.ctx(), func(tx *store.Tx) error { return nil }))
		l.put(nil)

		other, _, err := audit.NewKey("log.example.org")
		require.NoError(l, err)
		key, err := audit.ParseKey(other)
		require.NoError(l, err)
		signer, err := audit.NewSigner(l.AuditLog(), audit.SignerConfig{Key: l.key})
		require.NoError(l, err)
		l.publish(document, 0)
		_, err = signer.Sign(l.ctx(), l.now)
		require.NoError(l, err)
		wrong, stranger := l.byItself(key)
		l.requireWaits(wrong, stranger, freeze.Key, "key")
		require.NoError(l, f.Look(l.ctx()))
		require.Equal(l, []string{"acme 2026-11-16"}, l.heads())
		require.Equal(l, int64(10), l.read(1).Lines[0].Charged)
	})
}

func TestAPeriodWithAGapTakesAPersonAndItsStatementSaysSo(t *testing.T) {
	t.Parallel()
	ledgers(t, func(l *ledger) {
		l.put([]store.UsageCount{{Tenant: "acme", Minute: minuteOf(firstFrozen), Unit: "points", Charged: 5}, {Tenant: "globex", Minute: minuteOf(firstFrozen) + 1440, Unit: "points", Charged: 5}})
		c, f := l.byItself(l.key)
		l.begin(f)
		// Settlements of the first day may be lost in it, and counts of the second one.
		gap := store.UsageGap{First: minuteOf(firstFrozen) + 1440 + 60, Until: minuteOf(firstFrozen) + 1440 + 120}
		require.NoError(l, l.db.Count(l.ctx(), func(tx *store.UsageTx) error { return tx.PutUsageGap(gap) }))
		l.now = firstFrozen.AddDate(0, 0, 6)
		l.requireWaits(c, f, freeze.Gap, "nobody has collected from 2026-11-17T01:00:00Z to 2026-11-17T02:00:00Z")
		_, err := c.FreezeUsage(l.ctx(), by(operator), control.FreezeInput{From: "2026-11-18", To: "2026-11-19", N: 100})
		require.NoError(l, err)
		l.requireWaits(c, f, freeze.Gap, "nobody has collected")
		in := control.FreezeInput{From: "2026-11-16", To: "2026-11-17", N: 1}
		_, err = c.FreezeUsage(l.ctx(), by(operator), in)
		requireInvalid(l.T, err, "period", "Freeze it as incomplete")
		in.Incomplete = true
		frozen, err := c.FreezeUsage(l.ctx(), by(operator), in)
		require.NoError(l, err)
		require.NotEmpty(l, frozen.Next)
		l.requireWaits(c, f, freeze.Gap, "nobody has collected")
		in.After = frozen.Next
		_, err = c.FreezeUsage(l.ctx(), by(operator), in)
		require.NoError(l, err)
		require.Equal(l, firstFrozen.AddDate(0, 0, 1), l.read(1).Unknown, "settlements may be missing to its end")
		// It goes on behind what somebody has frozen of all tenants.
		l.requireWaits(c, f, freeze.Gap, "nobody has collected")
		_, err = c.FreezeUsage(l.ctx(), by(operator), control.FreezeInput{From: "2026-11-17", To: "2026-11-18", N: 100, Incomplete: true})
		require.NoError(l, err)
		require.NoError(l, f.Look(l.ctx()))
		require.Equal(l, []string{"acme 2026-11-16", "globex 2026-11-17"}, l.heads())
		found, err := c.Statement(l.ctx(), auditor, "globex", 2)
		require.NoError(l, err)
		require.Equal(l, time.Date(2026, 11, 17, 2, 0, 0, 0, time.UTC), found.Content.Unknown)
		status, err := c.Freezing(l.ctx())
		require.NoError(l, err)
		require.Equal(l, firstFrozen.AddDate(0, 0, 4), status.Frozen)
	})
}

func TestAPeriodThatBeginsBeforeTheOneThatIsNextLeavesThatToFreezingByItself(t *testing.T) {
	t.Parallel()
	ledgers(t, func(l *ledger) {
		l.put([]store.UsageCount{
			{Tenant: "acme", Minute: minuteOf(firstFrozen), Unit: "points", Charged: 5}, {Tenant: "acme", Minute: minuteOf(firstFrozen) + 1500, Unit: "points", Charged: 7},
		})
		c, f := l.byItself(l.key)
		l.begin(f)
		l.now = firstFrozen.AddDate(0, 0, 3)
		require.NoError(l, f.Look(l.ctx()))
		require.Equal(l, []string{"acme 2026-11-16"}, l.heads())
		l.now = firstFrozen.AddDate(0, 0, 6)
		frozen, err := c.FreezeUsage(l.ctx(), by(operator), control.FreezeInput{From: "2026-11-16", To: "2026-11-19", N: 100, Incomplete: true})
		require.NoError(l, err)
		require.Empty(l, frozen.Next)
		require.Len(l, frozen.Left, 1, "no day is in two statements")
		require.NoError(l, f.Look(l.ctx()))
		require.Equal(l, []string{"acme 2026-11-16", "acme 2026-11-17"}, l.heads())
	})
}

func TestWhatIsNotKeptAnyMoreHoldsFreezingBackForNoTime(t *testing.T) {
	t.Parallel()
	l := newLedger(t, "")
	l.put([]store.UsageCount{{Tenant: "acme", Minute: minuteOf(firstFrozen), Unit: "points", Charged: 5}})
	_, f := l.byItself(l.key)
	l.begin(f)
	kept := time.Date(2027, 2, 1, 0, 0, 0, 0, time.UTC)
	l.now = time.Date(2027, 2, 4, 0, 0, 0, 0, time.UTC)
	require.NoError(t, l.db.Count(l.ctx(), func(tx *store.UsageTx) error {
		_, err := tx.KeepUsage(store.UsageState{MinutesFrom: dayOf(kept), MinutesUntil: dayOf(kept) + 9, HoursFrom: dayOf(kept), DaysFrom: store.MonthOfDay(dayOf(kept))})
		require.NoError(t, err)
		_, err = tx.PutUsage([]store.UsageCount{{Tenant: "acme", Minute: minuteOf(kept), Unit: "points", Charged: 5}})
		require.NoError(t, err)
		require.NoError(t, tx.PutUsagePass("search", minuteOf(l.now)))
		return tx.PutUsagePass("told", minuteOf(l.now))
	}))
	for found := 1; found > 0; {
		require.NoError(t, l.db.Count(l.ctx(), func(tx *store.UsageTx) (err error) {
			found, err = tx.RollUp(l.now.Add(time.Minute), store.MaxPage)
			return err
		}))
	}
	require.NoError(t, f.Look(l.ctx()))
	require.Equal(t, []string{"acme 2027-02-01"}, l.heads())
}

func TestWhoFreezesByThemselvesNeedsAKey(t *testing.T) {
	t.Parallel()
	l := newLedger(t, "")
	_, err := control.New(control.Config{Store: l.db, Freeze: freeze.Schedule{Every: freeze.Daily}})
	require.ErrorContains(t, err, "Config.Freeze takes Config.StatementKey")
	_, err = control.New(control.Config{Store: l.db, Freeze: freeze.Schedule{Every: "weekly"}})
	require.ErrorContains(t, err, "Config.Freeze: periods are \"weekly\"")
	status, err := l.FreezeStatus(l.ctx(), auditor)
	require.NoError(t, err)
	require.Equal(t, &control.FreezeStatus{Schedule: freeze.Schedule{Every: freeze.Off, Delay: freeze.MinDelay}}, status)
	_, err = l.FreezeStatus(l.ctx(), admin("acme"))
	require.ErrorIs(t, err, access.ErrDenied)
}
