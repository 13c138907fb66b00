package control_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/statement"
)

func TestAStatementHasTheSumsOfTheRowsAndACorrectionExactlyTheDifference(t *testing.T) {
	t.Parallel()
	ledgers(t, func(l *ledger) {
		l.draw()
		head := l.freeze()
		require.True(l, head.New)
		first := l.read(head.Number)
		truth := l.truth()
		require.NotEmpty(l, truth)
		require.Equal(l, truth, first.Lines)
		require.Equal(l, firstFrozen, first.From)
		require.Equal(l, afterFrozen, first.To)
		require.Zero(l, first.Unknown)
		entries := l.entries()
		require.Len(l, entries, 1)
		require.Equal(l, "usage.freeze", entries[0].Action)
		require.Equal(l, "acme", entries[0].Tenant)
		require.Contains(l, string(entries[0].After), first.Hash().String())

		again := l.freeze()
		require.False(l, again.New)
		require.Equal(l, head.Number, again.Number)
		require.Len(l, l.entries(), 1)

		// Of a generation of its own, in the middle, and one that is not in the period.
		late := store.UsageCount{Tenant: "acme", Minute: minuteOf(firstFrozen) + 77, Unit: "exports", Generation: 1 << 40, Charged: 12, GivenBack: 5}
		other := late
		other.Minute = minuteOf(afterFrozen)
		l.put([]store.UsageCount{late, other})
		l.now = l.now.Add(time.Minute)
		corrected := l.freeze()
		require.True(l, corrected.New)
		second := l.read(corrected.Number)
		difference := statement.Line{Unit: "exports", Grade: "exact", Charged: 12, GivenBack: 5}
		require.Equal(l, []statement.Line{difference}, second.Differences)
		require.Equal(l, statement.Reference{Number: first.Number, Hash: first.Hash()}, second.Corrects)
		l.counted.charged = append(l.counted.charged, late)
		require.Equal(l, l.truth(), second.Lines)
		require.Equal(l, first, l.read(head.Number), "what was frozen never changes")
		missing, err := statement.Check([]*statement.Statement{second, first})
		require.NoError(l, err)
		require.Empty(l, missing)
		require.False(l, l.freeze().New)
	})
}

func TestWhatIsOpenOrNotCollectedIsNotFrozen(t *testing.T) {
	t.Parallel()
	l := newLedger(t, "").draw()
	refused := func(problem string, in control.FreezeInput) {
		t.Helper()
		_, err := l.FreezeUsage(l.ctx(), by(operator), in)
		require.ErrorIs(t, err, control.ErrInvalid)
		require.ErrorContains(t, err, problem)
	}
	now := l.now
	l.now = afterFrozen.Add(control.StatementGrace - time.Second)
	refused("settlements of it come until 2026-11-21T00:00:00Z", period)
	l.now = now
	refused("it ends on 2026-12-01T00:00:00Z", control.FreezeInput{Tenant: "acme", Month: "2026-11"})
	refused("nobody has collected counts of it", control.FreezeInput{Tenant: "acme", Month: "2026-10"})
	refused("nothing was counted", control.FreezeInput{Tenant: "stranger", From: period.From, To: period.To})
	for _, in := range []control.FreezeInput{
		{Tenant: "acme"},
		{Tenant: "acme", Month: "2026-1"},
		{Tenant: "acme", Month: "2026-10", From: "2026-10-01"},
		{Tenant: "acme", From: "2026-11-19", To: "2026-11-19"},
		{Tenant: "acme", From: "2025-01-01", To: "2026-11-01"},
		{Tenant: "a\x00", From: period.From, To: period.To},
		{From: period.From, To: period.To},
		{N: 5, After: "?", From: period.From, To: period.To},
	} {
		_, err := l.FreezeUsage(l.ctx(), by(operator), in)
		require.ErrorIs(t, err, control.ErrInvalid, "%+v", in)
	}
	// Something was read and not added up yet.
	require.NoError(t, l.db.Count(l.ctx(), func(tx *store.UsageTx) error {
		_, err := tx.PutUsage([]store.UsageCount{{Tenant: "acme", Minute: minuteOf(firstFrozen), Unit: "late", Charged: 1}})
		return err
	}))
	refused("not added up yet", period)
	refused("not added up yet", control.FreezeInput{N: 5, From: period.From, To: period.To})
	require.Empty(t, l.entries())

	behind := newLedger(t, "")
	behind.collect(firstFrozen, firstFrozen, afterFrozen.Add(time.Hour), func(tx *store.UsageTx) {
		_, err := tx.PutUsage([]store.UsageCount{{Tenant: "acme", Minute: minuteOf(firstFrozen), Unit: "points", Charged: 1}})
		require.NoError(t, err)
	})
	l = behind
	refused("the collector is behind", period)
	require.NoError(t, l.db.Count(l.ctx(), func(tx *store.UsageTx) error { return tx.PutUsagePass("told", minuteOf(l.now)) }))
	refused("was not searched", period)
	require.NoError(t, l.db.Count(l.ctx(), func(tx *store.UsageTx) error { return tx.PutUsagePass("search", minuteOf(afterFrozen)) }))
	require.True(t, l.freeze().New)
}

func TestAStatementSaysUpToWhenNobodyHasCollected(t *testing.T) {
	t.Parallel()
	l := newLedger(t, "")
	began := firstFrozen.Add(5 * time.Hour)
	l.collect(firstFrozen, began, l.now, func(tx *store.UsageTx) {
		_, err := tx.PutUsage([]store.UsageCount{{Tenant: "acme", Minute: minuteOf(began), Unit: "points", Charged: 1}})
		require.NoError(t, err)
		require.NoError(t, tx.PutUsagePass("search", minuteOf(l.now)))
	})
	require.Equal(t, began, l.read(l.freeze().Number).Unknown)
}

func TestTwoDaemonsThatFreezeAtOnceMakeOneStatement(t *testing.T) {
	t.Parallel()
	ledgers(t, func(l *ledger) {
		l.draw()
		const daemons = 4
		heads, failed := make([]*control.Frozen, daemons), make([]error, daemons)
		var all sync.WaitGroup
		for i := range daemons {
			c := l.Control
			if l.url != "" {
				db, err := store.Open(l.ctx(), store.Config{URL: l.url, Now: func() time.Time { return l.now }})
				require.NoError(l, err)
				l.Cleanup(func() { require.NoError(l, db.Close()) })
				c = l.daemon(db, l.key)
			}
			all.Go(func() { heads[i], failed[i] = c.FreezeUsage(l.ctx(), by(operator), period) })
		}
		all.Wait()
		made := 0
		for i := range daemons {
			require.NoError(l, failed[i])
			require.Equal(l, uint64(1), heads[i].Statements[0].Number)
			if heads[i].Statements[0].New {
				made++
			}
		}
		require.Equal(l, 1, made)
		require.Len(l, l.entries(), 1)
	})
}

func TestStatementsAreReadByThoseWhoMayReadTheUsageAndMadeByOperators(t *testing.T) {
	t.Parallel()
	l := newLedger(t, "").draw()
	for _, a := range []access.Actor{admin("acme"), publisher, auditor, actor("v", access.Viewer)} {
		_, err := l.FreezeUsage(l.ctx(), by(a), period)
		require.ErrorIs(t, err, access.ErrDenied)
	}
	number := l.freeze().Number
	for _, a := range []access.Actor{admin("acme"), publisher, operator, auditor, actor("v", access.Viewer)} {
		heads, err := l.Statements(l.ctx(), a, "acme", 0, 10)
		require.NoError(t, err)
		require.Len(t, heads, 1)
		_, err = l.Statement(l.ctx(), a, "acme", number)
		require.NoError(t, err)
	}
	for _, a := range []access.Actor{admin("globex"), actor("nobody")} {
		_, err := l.Statements(l.ctx(), a, "acme", 0, 10)
		require.ErrorIs(t, err, access.ErrDenied)
		_, err = l.Statement(l.ctx(), a, "acme", number)
		require.ErrorIs(t, err, access.ErrDenied)
	}
	// Whoever names their own tenant does not find that of another one by its number.
	_, err := l.Statement(l.ctx(), admin("globex"), "globex", number)
	require.ErrorIs(t, err, control.ErrNotFound)
	_, err = l.Statements(l.ctx(), admin("acme"), "", 0, 10)
	require.ErrorIs(t, err, access.ErrDenied)
}

func TestRetentionRemovesRowsAndNotStatements(t *testing.T) {
	t.Parallel()
	ledgers(t, func(l *ledger) {
		l.draw()
		before := l.read(l.freeze().Number)
		far := l.now.AddDate(10, 0, 0)
		require.NoError(l, l.db.Count(l.ctx(), func(tx *store.UsageTx) error {
			_, err := tx.KeepUsage(store.UsageState{MinutesFrom: dayOf(far), MinutesUntil: dayOf(far) + 1, HoursFrom: dayOf(far), DaysFrom: store.MonthOfDay(dayOf(far))})
			return err
		}))
		var from store.UsageRemoval
		for !from.Done {
			require.NoError(l, l.db.Count(l.ctx(), func(tx *store.UsageTx) (err error) {
				from, err = tx.RemoveUsage(from, 10)
				return err
			}))
		}
		require.NoError(l, l.db.Read(l.ctx(), func(v *store.View) error {
			sums, err := v.UsageOfDays("acme", 0, dayOf(far), 10)
			require.Empty(l, sums)
			return err
		}))
		require.Equal(l, before, l.read(before.Number))
		_, err := l.FreezeUsage(l.ctx(), by(operator), period)
		requireInvalid(l.T, err, "period", "what was before is forgotten")
	})
}

func TestAllTenantsAreFrozenPageByPageAndThoseWithoutANameAreSaid(t *testing.T) {
	t.Parallel()
	l := newLedger(t, "").draw()
	l.put([]store.UsageCount{
		{Tenant: "\xff\x00", Minute: minuteOf(firstFrozen), Unit: "points", Charged: 1},
		{Tenant: "before", Minute: minuteOf(firstFrozen) - 1, Unit: "points", Charged: 1},
	})
	in := control.FreezeInput{From: period.From, To: period.To, N: 1}
	var tenants []string
	var left []control.Unfrozen
	for pages := 1; ; pages++ {
		frozen, err := l.FreezeUsage(l.ctx(), by(operator), in)
		require.NoError(t, err)
		require.LessOrEqual(t, len(frozen.Statements), 1)
		for _, head := range frozen.Statements {
			tenants = append(tenants, head.Tenant)
		}
		left = append(left, frozen.Left...)
		if in.After = frozen.Next; in.After == "" {
			require.Equal(t, 4, pages)
			break
		}
	}
	require.Equal(t, []string{"acme", "globex"}, tenants)
	require.Len(t, left, 1)
	require.Equal(t, `\xff\x00`, left[0].Tenant)
	heads, err := l.Statements(l.ctx(), auditor, "", 0, 10)
	require.NoError(t, err)
	require.Len(t, heads, 2)
	require.Equal(t, "globex", heads[0].Tenant, "the newest first")
}

func TestNoDayIsInTwoPeriodsAndNoOtherKeySigns(t *testing.T) {
	t.Parallel()
	l := newLedger(t, "").draw()
	l.freeze()
	_, err := l.FreezeUsage(l.ctx(), by(operator), control.FreezeInput{Tenant: "acme", From: "2026-11-18", To: "2026-11-20"})
	requireInvalid(t, err, "period", "no day is in two periods")
	next, err := l.FreezeUsage(l.ctx(), by(operator), control.FreezeInput{Tenant: "acme", From: "2026-11-19", To: "2026-11-20"})
	require.NoError(t, err)
	second := l.read(next.Statements[0].Number)
	require.Equal(t, l.read(1).Hash(), second.Previous.Hash)
	require.Zero(t, second.Corrects)

	signer, err := audit.NewSigner(l.AuditLog(), audit.SignerConfig{Key: l.key})
	require.NoError(t, err)
	_, err = signer.Sign(l.ctx(), l.now)
	require.NoError(t, err)
	private, _, err := audit.NewKey("log.example.org")
	require.NoError(t, err)
	key, err := audit.ParseKey(private)
	require.NoError(t, err)
	_, err = l.daemon(l.db, key).FreezeUsage(l.ctx(), by(operator), period)
	require.True(t, errors.Is(err, audit.ErrOtherKey) && errors.Is(err, control.ErrInvalid), err)
	_, err = l.daemon(l.db, nil).FreezeUsage(l.ctx(), by(operator), period)
	requireInvalid(t, err, "key", "nobody can sign")
}

func TestAPeriodMayEndWhereOneBeginsThatIsFrozen(t *testing.T) {
	t.Parallel()
	l := newLedger(t, "").draw()
	_, err := l.FreezeUsage(l.ctx(), by(operator), control.FreezeInput{Tenant: "acme", From: "2026-11-19", To: "2026-11-20"})
	require.NoError(t, err)
	require.True(t, l.freeze().New)
}

func TestMoreRootFieldsThanAStatementHasRoomForAreAddedUp(t *testing.T) {
	t.Parallel()
	l := newLedger(t, "")
	var counts []store.UsageCount
	total := int64(0)
	for i := range 1000 {
		counts = append(counts, store.UsageCount{
			Tenant: "acme", Minute: minuteOf(firstFrozen), Grade: bucket.UsageExact, Unit: "points", Field: fmt.Sprintf("Query.\xff%d", i), Charged: int64(i), Calls: 1,
		})
		total += int64(i)
	}
	l.put(append(counts, store.UsageCount{Tenant: "acme", Minute: minuteOf(firstFrozen), Unit: "points", Charged: total}))
	s := l.read(l.freeze().Number)
	require.Len(t, s.Lines, 402)
	fields, calls := int64(0), int64(0)
	for _, line := range s.Lines {
		if line.Field != "" {
			fields += line.Charged
			calls += line.Calls
		}
	}
	require.Equal(t, total, fields)
	require.Equal(t, int64(1000), calls)
}
