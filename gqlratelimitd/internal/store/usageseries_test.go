package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

// readers are questions for all that there are rows of.
func readers() map[string]store.UsageQuery {
	return map[string]store.UsageQuery{
		"all that was decided": {Tenant: "acme"},
		"operations":           {Tenant: "acme", By: store.UsageByOperation},
		"the largest two":      {Tenant: "acme", By: store.UsageByOperation, Top: []string{"Query.0", "\x00\xff"}},
		"none by itself":       {Tenant: "acme", By: store.UsageByOperation, Top: []string{}},
		"one name":             {Tenant: "acme", By: store.UsageByOperation, Names: []string{"Query.1"}},
		"no name":              {Tenant: "acme", By: store.UsageByOperation, Names: []string{}},
		"units":                {Tenant: "acme", By: store.UsageByUnit},
		"root fields":          {Tenant: "acme", By: store.UsageByField},
		"of all tenants":       {},
		"units of all tenants": {By: store.UsageByUnit},
	}
}

// spend writes counts of some tenants, names, hours and instances, and rolls them up.
func (s *scene) spend() {
	s.Helper()
	openUsage(s.T, s.db)
	count(s.T, s.db, func(tx *store.UsageTx) {
		var charged []store.UsageCount
		var decided []store.DecisionCount
		for i := range 240 {
			tenant, minute := []string{"acme", "globex", "\x00\xff"}[i%3], int64(minuteOfUsage+i*23)
			for generation := range uint64(2) {
				for _, unit := range []string{"points", "requests", "exports,\n"} {
					charged = append(charged, store.UsageCount{Tenant: tenant, Minute: minute, Grade: bucket.UsageGrade(i % 2), Unit: unit, Generation: generation, Charged: int64(i), GivenBack: 1})
				}
				charged = append(charged, store.UsageCount{Tenant: tenant, Minute: minute, Unit: "points", Field: fmt.Sprint("Query.", i%4), Generation: generation, Charged: int64(i), Calls: 2})
			}
			for boot := range 2 {
				for _, name := range []string{"Query.0", "Query.1", "\x00\xff", "=1+1"} {
					decided = append(decided, store.DecisionCount{Tenant: tenant, Minute: minute, Dimension: "operation", Name: name, Instance: "api", Boot: fmt.Sprint(boot), Admitted: 1, Refused: 2, WouldRefuse: 3, Points: int64(len(name))})
				}
				decided = append(decided, store.DecisionCount{Tenant: tenant, Minute: minute, Dimension: "tenant", Instance: "api", Boot: fmt.Sprint(boot), Admitted: 4, Refused: 8, WouldRefuse: 12, Points: 20})
			}
		}
		left, err := tx.PutUsage(charged)
		require.NoError(s, err)
		require.Zero(s, left)
		left, err = tx.PutDecisions(decided)
		require.NoError(s, err)
		require.Zero(s, left)
	})
	rollUp(s.T, s.db, s.clock.now)
}

// spans are the levels, with the range of what was spent.
var spans = map[store.UsageLevel][2]int64{
	store.UsageMinutes: {minuteOfUsage, minuteOfUsage + 7*1440}, store.UsageHours: {dayOfUsage * 24, (dayOfUsage + 7) * 24},
	store.UsageDays: {dayOfUsage, dayOfUsage + 7}, store.UsageMonths: {657, 659},
}

// all reads all rows of a question, n at a time.
func (s *scene) all(q store.UsageQuery, n int) (all []store.UsageRow) {
	s.Helper()
	for {
		page := read(s.T, s.db, func(v *store.View) ([]store.UsageRow, error) { return v.FindUsage(&q, n) })
		all = append(all, page...)
		if len(page) < n {
			return all
		}
		q.After = page[n-1].Place()
	}
}

// sum adds up all rows of a name and tenant.
func sum(rows []store.UsageRow) map[string]store.UsageRow {
	sums := map[string]store.UsageRow{}
	for _, r := range rows {
		key := fmt.Sprintf("%q %q %s", r.Tenant, r.Name, r.Grade)
		s := sums[key]
		s.Charged, s.GivenBack, s.Calls = s.Charged+r.Charged, s.GivenBack+r.GivenBack, s.Calls+r.Calls
		s.Admitted, s.Refused, s.WouldRefuse, s.Points = s.Admitted+r.Admitted, s.Refused+r.Refused, s.WouldRefuse+r.WouldRefuse, s.Points+r.Points
		sums[key] = s
	}
	return sums
}

func TestUsageHasTheSameSumsAtEachLevelHoweverItsPagesAreCut(t *testing.T) {
	t.Parallel()
	both(t, func(s scene) {
		s.spend()
		for name, q := range readers() {
			var want map[string]store.UsageRow
			for level := store.UsageMinutes; level <= store.UsageMonths; level++ {
				q.Level, q.From, q.To = level, spans[level][0], spans[level][1]
				rows := s.all(q, store.MaxPage)
				if want == nil {
					want = sum(rows)
				}
				require.Equal(s, want, sum(rows), "%s by level %d", name, level)
				require.Equal(s, len(rows), read(s.T, s.db, func(v *store.View) (int, error) { return v.CountUsage(&q, 100_000) }), name)
				if level != store.UsageHours {
					continue
				}
				require.Equal(s, rows, s.all(q, 7), "%s, a few at a time", name)
				whole := q
				whole.Whole = true
				require.Equal(s, want, sum(s.all(whole, 2)), "%s, as one period", name)
				require.Len(s, s.all(whole, 2), len(want), name)
			}
			if name == "no name" {
				require.Empty(s, want)
				continue
			}
			require.NotEmpty(s, want, name)
		}
		q := readers()["the largest two"]
		q.Level, q.From, q.To = store.UsageDays, spans[store.UsageDays][0], spans[store.UsageDays][1]
		names := []string{}
		for name := range sum(s.all(q, 3)) {
			names = append(names, name)
		}
		slices.Sort(names)
		require.Equal(s, []string{`"acme" "*" `, `"acme" "Query.0" `, `"acme" "\x00\xff" `}, names)
		top := read(s.T, s.db, func(v *store.View) ([]string, error) {
			return v.TopUsage(&store.UsageQuery{Tenant: "acme", By: store.UsageByOperation, Level: store.UsageDays, From: q.From, To: q.To}, 3)
		})
		require.Equal(s, []string{"Query.0", "Query.1", "=1+1"}, top, "by points, and then by name")
		counted := read(s.T, s.db, func(v *store.View) (int, error) { return v.CountUsage(&q, 2) })
		require.Equal(s, 2, counted, "it counts no further")
	})
}

func TestSumsOfUsageThatNoNumberHoldsAreTheLargest(t *testing.T) {
	t.Parallel()
	both(t, func(s scene) {
		openUsage(s.T, s.db)
		count(s.T, s.db, func(tx *store.UsageTx) {
			var counts []store.UsageCount
			for generation := range uint64(2000) {
				counts = append(counts, store.UsageCount{Tenant: "acme", Minute: minuteOfUsage, Unit: "points", Generation: generation, Charged: store.MaxUsage})
			}
			_, err := tx.PutUsage(counts)
			require.NoError(s, err)
		})
		rows := s.all(store.UsageQuery{Tenant: "acme", By: store.UsageByUnit, From: minuteOfUsage, To: minuteOfUsage + 1}, 5)
		require.Len(s, rows, 1)
		require.EqualValues(s, store.MaxUsage, rows[0].Charged)
	})
}

func TestUsageIsReadByIndexesAmongManyRowsOfItsLevels(t *testing.T) {
	t.Parallel()
	both(t, func(s scene) {
		openUsage(s.T, s.db)
		// A PostgreSQL reads fewer as a whole. SQLite is slow with the detector of races.
		rows := 25_000
		if s.db.Dialect() == store.SQLite {
			rows = 2500
		}
		for _, kind := range store.UsageKinds {
			// A transaction ends after half a minute.
			const each = 2500
			for first := 0; first < rows; first += each {
				count(s.T, s.db, func(tx *store.UsageTx) { require.NoError(s, tx.FillUsage(kind, first, each, minuteOfUsage)) })
			}
		}
		for name, q := range readers() {
			for level := store.UsageMinutes; level <= store.UsageMonths; level++ {
				if q.Tenant == "" && level < store.UsageDays {
					continue
				}
				q.Level, q.From, q.To = level, spans[level][0], spans[level][1]
				q.After = &store.UsagePlace{At: q.From, Tenant: "t500"}
				if q.Tenant != "" {
					q.Tenant = "t7"
				}
				requireIndexed(s.T, name, read(s.T, s.db, func(v *store.View) (string, error) { return v.ExplainUsage(&q, 100) }))
			}
		}
	})
}

// requireIndexed holds that a plan reads no table as a whole.
func requireIndexed(t testing.TB, name, plan string) {
	t.Helper()
	require.NotEmpty(t, plan)
	for line := range strings.Lines(plan) {
		if strings.Contains(line, "cost=0.00..0.00 ") {
			// A partition without rows.
			continue
		}
		// ANY looks at each tenant, one after the other.
		for _, whole := range []string{"SCAN ", "Seq Scan", "ANY("} {
			require.NotContains(t, line, whole, "%s: %s", name, plan)
		}
	}
}
