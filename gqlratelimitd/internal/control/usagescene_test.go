package control_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

// minuteOf and dayOf are those of a time, since 1970.
func minuteOf(t time.Time) int64 { return t.Unix() / 60 }
func dayOf(t time.Time) int64    { return store.DayOf(t) }

// collect has the database keep what is counted from a day on, and has it all computed: collected was everything from began up to the minute of a
// time.
func (s *scene) collect(first, began, collected time.Time, put func(tx *store.UsageTx)) {
	s.Helper()
	require.NoError(s, s.db.Count(s.ctx(), func(tx *store.UsageTx) error {
		_, err := tx.KeepUsage(store.UsageState{MinutesFrom: dayOf(first), MinutesUntil: dayOf(collected) + 2})
		require.NoError(s, err)
		put(tx)
		require.NoError(s, tx.PutUsagePass("told", minuteOf(began)))
		require.NoError(s, tx.PutUsagePass("told", minuteOf(collected)-1))
		return nil
	}))
	for found := 1; found > 0; {
		require.NoError(s, s.db.Count(s.ctx(), func(tx *store.UsageTx) (err error) {
			found, err = tx.RollUp(s.now, store.MaxPage)
			return err
		}))
	}
}

// usageTruth is what was counted, beside the database.
type usageTruth struct {
	charged []store.UsageCount
	decided []store.DecisionCount
}

// drawUsage draws counts of some tenants in a time, with what happens at its ends and at changes of clocks.
func drawUsage(seed uint64, from, to time.Time, n int) *usageTruth {
	random := rand.New(rand.NewPCG(seed, 7))
	u := &usageTruth{}
	first, minutes := minuteOf(from), minuteOf(to)-minuteOf(from)
	for i := range n {
		minute := first + random.Int64N(minutes)
		switch random.IntN(4) {
		case 0:
			// The last minute of an hour, and the first one.
			minute = min(minute-minute%60+59+random.Int64N(2), first+minutes-1)
		case 1:
			// Around midnight in UTC, and the hours after it.
			minute = min(minute-minute%1440+random.Int64N(240), first+minutes-1)
		}
		minute = max(minute, first)
		tenant := []string{"acme", "globex"}[random.IntN(2)]
		u.charged = append(u.charged, store.UsageCount{
			Tenant: tenant, Minute: minute, Grade: bucket.UsageGrade(random.IntN(2)), Unit: []string{"points", "requests"}[random.IntN(2)],
			Generation: uint64(i), Charged: random.Int64N(1000), GivenBack: random.Int64N(10),
		})
		u.decided = append(u.decided, store.DecisionCount{
			Tenant: tenant, Minute: minute, Dimension: "user", Name: fmt.Sprint("u", random.IntN(5)), Instance: "api", Boot: fmt.Sprint(i),
			Admitted: random.Int64N(9), Refused: random.Int64N(9), Points: random.Int64N(100),
		})
	}
	return u
}

func (u *usageTruth) put(s *scene) func(tx *store.UsageTx) {
	return func(tx *store.UsageTx) {
		left, err := tx.PutUsage(u.charged)
		require.NoError(s, err)
		require.Zero(s, left)
		left, err = tx.PutDecisions(u.decided)
		require.NoError(s, err)
		require.Zero(s, left)
	}
}

// by is what acme has in each period, as the words that a function makes of its minutes, by name and grade.
func (u *usageTruth) by(charged bool, period func(time.Time) string) map[string]control.UsageRow {
	sums := map[string]control.UsageRow{}
	add := func(minute int64, name, grade string, r control.UsageRow) {
		key := fmt.Sprintln(period(time.Unix(minute*60, 0)), name, grade)
		is := sums[key]
		is.Charged, is.GivenBack = is.Charged+r.Charged, is.GivenBack+r.GivenBack
		is.Admitted, is.Refused, is.Points = is.Admitted+r.Admitted, is.Refused+r.Refused, is.Points+r.Points
		sums[key] = is
	}
	for _, c := range u.charged {
		if c.Tenant == "acme" && charged {
			add(c.Minute, c.Unit, c.Grade.String(), control.UsageRow{Charged: c.Charged, GivenBack: c.GivenBack})
		}
	}
	for _, d := range u.decided {
		if d.Tenant == "acme" && !charged {
			add(d.Minute, d.Name, "instance", control.UsageRow{Admitted: d.Admitted, Refused: d.Refused, Points: d.Points})
		}
	}
	return sums
}

// told is what the control plane says, in the same words. Rows of zeros are left out: they have no name.
func (s *scene) told(in control.UsageSeriesInput, period func(time.Time) string) map[string]control.UsageRow {
	s.Helper()
	sums := map[string]control.UsageRow{}
	for _, r := range s.rows(in) {
		require.Equal(s, control.KnownAll, r.Known)
		if r.Name == "" {
			continue
		}
		key := fmt.Sprintln(period(r.Begin), r.Name, r.Grade)
		is := sums[key]
		is.Charged, is.GivenBack = is.Charged+r.Charged, is.GivenBack+r.GivenBack
		is.Admitted, is.Refused, is.Points = is.Admitted+r.Admitted, is.Refused+r.Refused, is.Points+r.Points
		sums[key] = is
	}
	return sums
}

// rows are those of an export.
func (s *scene) rows(in control.UsageSeriesInput) (rows []control.UsageRow) {
	s.Helper()
	require.NoError(s, s.ExportUsage(s.ctx(), auditor, in, func(page *control.UsageSeries) error {
		rows = append(rows, page.Rows...)
		return nil
	}))
	return rows
}
