package store_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

// readers are questions for all that there are rows of.
func readers() map[string]store.UsageQuery {
	return map[string]store.UsageQuery{
		"units":                 {Tenant: "acme", By: store.UsageByUnit},
		"root fields":           {Tenant: "acme", By: store.UsageByField},
		"limits":                {Tenant: "acme", By: store.UsageByLimit},
		"one name":              {Tenant: "acme", By: store.UsageByField, Names: []string{"Query.1"}},
		"no name":               {Tenant: "acme", By: store.UsageByField, Names: []string{}},
		"units of all tenants":  {By: store.UsageByUnit},
		"limits of all tenants": {By: store.UsageByLimit},
	}
}

// spend writes counts of some tenants, names and hours.
func (s *scene) spend() {
	s.Helper()
	count(s.T, s.db, func(tx *store.UsageTx) {
		var charged []store.UsageCount
		var refused []store.RefusedCount
		for i := range 240 {
			tenant, hour := []string{"acme", "globex", "\x00\xff"}[i%3], int64(hourOfUsage+i)
			for generation := range uint64(2) {
				for _, unit := range []string{"points", "requests", "exports,\n"} {
					charged = append(charged, store.UsageCount{Tenant: tenant, At: hour, Grade: bucket.UsageGrade(i % 2), Unit: unit, Generation: generation, Charged: int64(i), GivenBack: 1})
				}
				charged = append(charged, store.UsageCount{Tenant: tenant, At: hour, Unit: "points", Field: fmt.Sprint("Query.", i%4), Generation: generation, Charged: int64(i), Calls: 2})
			}
			for _, name := range []string{"tenant:minute", "\x00\xff", "=1+1"} {
				refused = append(refused, store.RefusedCount{Tenant: tenant, Hour: hour, Name: name, Refused: int64(len(name))})
			}
		}
		require.NoError(s, put(tx, charged, refused))
	})
}

// span is the range of what was spent, in hours.
var span = [2]int64{hourOfUsage, hourOfUsage + 11*24}

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
		s.Refused += r.Refused
		sums[key] = s
	}
	return sums
}

func TestUsageHasTheSameSumsByAnyPeriodHoweverItsPagesAreCut(t *testing.T) {
	t.Parallel()
	both(t, func(s scene) {
		s.spend()
		for name, q := range readers() {
			var want map[string]store.UsageRow
			for _, per := range []int64{1, 24, 0} {
				q.From, q.To, q.Per = span[0], span[1], per
				rows := s.all(q, store.MaxPage)
				if want == nil {
					want = sum(rows)
				}
				require.Equal(s, want, sum(rows), "%s by %d hours", name, per)
				require.Equal(s, len(rows), read(s.T, s.db, func(v *store.View) (int, error) { return v.CountUsage(&q, 100_000) }), name)
				require.Equal(s, rows, s.all(q, 7), "%s, a few at a time", name)
				if per == 0 {
					require.Len(s, rows, len(want), name)
				}
			}
			if q.By != store.UsageByLimit {
				q.Level, q.From, q.To, q.Per = store.UsageMinutes, 60*span[0], 60*span[1], 1
				require.Equal(s, want, sum(s.all(q, store.MaxPage)), "%s by minute", name)
			}
			if name == "no name" {
				require.Empty(s, want)
				continue
			}
			require.NotEmpty(s, want, name)
		}
		q := readers()["units"]
		q.From, q.To, q.Per = span[0], span[1], 1
		counted := read(s.T, s.db, func(v *store.View) (int, error) { return v.CountUsage(&q, 2) })
		require.Equal(s, 2, counted, "it counts no further")
	})
}

func TestSumsOfUsageThatNoNumberHoldsAreTheLargest(t *testing.T) {
	t.Parallel()
	both(t, func(s scene) {
		count(s.T, s.db, func(tx *store.UsageTx) {
			var counts []store.UsageCount
			for generation := range uint64(2000) {
				counts = append(counts, store.UsageCount{Tenant: "acme", At: hourOfUsage, Unit: "points", Generation: generation, Charged: store.MaxUsage})
			}
			_, err := tx.PutUsage(store.UsageHours, counts)
			require.NoError(s, err)
		})
		rows := s.all(store.UsageQuery{Tenant: "acme", By: store.UsageByUnit, From: hourOfUsage, To: hourOfUsage + 1}, 5)
		require.Len(s, rows, 1)
		require.EqualValues(s, store.MaxUsage, rows[0].Charged)
	})
}

func TestUsageIsReadByIndexesAmongManyRows(t *testing.T) {
	t.Parallel()
	both(t, func(s scene) {
		// A PostgreSQL reads fewer as a whole. SQLite is slow with the detector of races.
		rows := 25_000
		if s.db.Dialect() == store.SQLite {
			rows = 2500
		}
		for table := range store.UsageTables {
			// A transaction ends after half a minute.
			const each = 2500
			for first := 0; first < rows; first += each {
				count(s.T, s.db, func(tx *store.UsageTx) { require.NoError(s, tx.FillUsage(table, first, each, hourOfUsage)) })
			}
		}
		for name, q := range readers() {
			for _, per := range []int64{1, 24, 0} {
				q.From, q.To, q.Per = span[0], span[0]+2, per
				q.After = &store.UsagePlace{At: q.From / max(1, per), Tenant: "t500"}
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
		// ANY looks at each tenant, one after the other.
		for _, whole := range []string{"SCAN ", "Seq Scan", "ANY("} {
			require.NotContains(t, line, whole, "%s: %s", name, plan)
		}
	}
}

// BenchmarkNinetyDaysOfAThousandTenants reads the first page of the days of all tenants, who have counted one unit in each hour.
func BenchmarkNinetyDaysOfAThousandTenants(b *testing.B) {
	for kind, open := range kinds {
		b.Run(kind, func(b *testing.B) {
			db, err := store.Open(b.Context(), store.Config{URL: open(b)})
			require.NoError(b, err)
			b.Cleanup(func() { require.NoError(b, db.Close()) })
			const hours, each = 90 * 24, 100_000
			for first := 0; first < hours*1000; first += each {
				count(b, db, func(tx *store.UsageTx) {
					require.NoError(b, tx.FillUsage("usage_hour", first, min(each, hours*1000-first), hourOfUsage))
				})
			}
			for name, q := range map[string]store.UsageQuery{
				"days of all tenants":  {From: hourOfUsage, To: hourOfUsage + hours, Per: 24},
				"sums of all tenants":  {From: hourOfUsage, To: hourOfUsage + hours},
				"days of one tenant":   {Tenant: "t7", From: hourOfUsage, To: hourOfUsage + hours, Per: 24},
				"a day of all tenants": {From: hourOfUsage + 24, To: hourOfUsage + 48},
			} {
				b.Run(name, func(b *testing.B) {
					for b.Loop() {
						require.NotEmpty(b, read(b, db, func(v *store.View) ([]store.UsageRow, error) { return v.FindUsage(&q, store.MaxPage) }))
					}
				})
			}
		})
	}
}
