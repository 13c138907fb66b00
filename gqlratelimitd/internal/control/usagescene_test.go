package control_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/usage"
)

// minuteOf and hourOf are those of a time, since 1970.
func minuteOf(t time.Time) int64 { return t.Unix() / 60 }
func hourOf(t time.Time) int64   { return t.Unix() / 3600 }

// collect has the database keep minutes from a time on, and hours from 40 days before: collected was everything from began up to the minute of a time.
func (s *scene) collect(first, began, collected time.Time, put func(tx *store.UsageTx)) {
	s.Helper()
	require.NoError(s, s.db.Count(s.ctx(), func(tx *store.UsageTx) error {
		_, err := tx.KeepUsage(store.UsageState{MinutesFrom: minuteOf(first), HoursFrom: hourOf(first.AddDate(0, 0, -40))})
		require.NoError(s, err)
		put(tx)
		return tx.PutUsagePass(store.UsagePass{Began: minuteOf(began), Collected: minuteOf(collected)})
	}))
}

// usageTruth is what was counted, beside the database. Its counts are of minutes.
type usageTruth struct {
	charged []store.UsageCount
	refused []store.RefusedCount
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
			Tenant: tenant, At: minute, Grade: bucket.UsageGrade(random.IntN(2)), Unit: []string{"points", "requests"}[random.IntN(2)],
			Generation: uint64(i), Charged: random.Int64N(1000), GivenBack: random.Int64N(10),
		})
		u.refused = append(u.refused, store.RefusedCount{Tenant: tenant, Hour: minute / 60, Name: fmt.Sprint("limit-", i), Refused: random.Int64N(9)})
	}
	return u
}

func (u *usageTruth) put(s *scene) func(tx *store.UsageTx) {
	return func(tx *store.UsageTx) {
		hours := make([]store.UsageCount, len(u.charged))
		for i, c := range u.charged {
			c.At /= 60
			hours[i] = c
		}
		for level, counts := range map[store.UsageLevel][]store.UsageCount{store.UsageMinutes: u.charged, store.UsageHours: hours} {
			left, err := tx.PutUsage(level, counts)
			require.NoError(s, err)
			require.Zero(s, left)
		}
		left, err := tx.PutRefused(u.refused)
		require.NoError(s, err)
		require.Zero(s, left)
	}
}

// usageSum is what a name has in a period.
type usageSum struct{ charged, givenBack, refused int64 }

// by is what acme has in each period, as the words that a function makes of its minutes, by name and grade.
func (u *usageTruth) by(by usage.By, period func(time.Time) string) map[string]usageSum {
	sums := map[string]usageSum{}
	for _, c := range u.charged {
		if c.Tenant == "acme" && by.Charged() {
			key := fmt.Sprintln(period(time.Unix(c.At*60, 0)), c.Unit, c.Grade)
			is := sums[key]
			sums[key] = usageSum{charged: is.charged + c.Charged, givenBack: is.givenBack + c.GivenBack}
		}
	}
	for _, r := range u.refused {
		if r.Tenant == "acme" && !by.Charged() {
			key := fmt.Sprintln(period(time.Unix(r.Hour*3600, 0)), r.Name, usage.Instance)
			sums[key] = usageSum{refused: sums[key].refused + r.Refused}
		}
	}
	return sums
}

// told is what the control plane says, in the same words. Rows of zeros are left out: they have no name.
func (s *scene) told(in control.UsageSeriesInput, period func(time.Time) string) map[string]usageSum {
	s.Helper()
	sums := map[string]usageSum{}
	for _, r := range s.rows(in) {
		require.Equal(s, usage.KnownAll, r.Known)
		if r.Name == "" {
			continue
		}
		key := fmt.Sprintln(period(r.Begin), r.Name, r.Grade)
		is := sums[key]
		if r.Refused != nil {
			is.refused += *r.Refused
		} else {
			is.charged, is.givenBack = is.charged+*r.Charged, is.givenBack+*r.GivenBack
		}
		sums[key] = is
	}
	return sums
}

// rows are those of an export.
func (s *scene) rows(in control.UsageSeriesInput) (rows []usage.Row) {
	s.Helper()
	require.NoError(s, s.ExportUsage(s.ctx(), viewer, in, func(page *usage.Series) error {
		rows = append(rows, page.Rows...)
		return nil
	}))
	return rows
}
