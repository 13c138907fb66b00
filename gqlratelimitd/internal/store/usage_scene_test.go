package store_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

// hourOfUsage and minuteOfUsage are the first of which tests have counts.
const (
	hourOfUsage   = 20_000 * 24
	minuteOfUsage = hourOfUsage * 60
)

func count(t testing.TB, db *store.DB, f func(tx *store.UsageTx)) {
	t.Helper()
	require.NoError(t, db.Count(t.Context(), func(tx *store.UsageTx) error {
		f(tx)
		return nil
	}))
}

// keepUsage has the database keep usage from a time on.
func keepUsage(t testing.TB, db *store.DB, want store.UsageState) (is store.UsageState) {
	t.Helper()
	count(t, db, func(tx *store.UsageTx) {
		var err error
		is, err = tx.KeepUsage(want)
		require.NoError(t, err)
	})
	return is
}

func numbers(t testing.TB, db *store.DB, query string) map[string]int64 {
	t.Helper()
	return read(t, db, func(v *store.View) (map[string]int64, error) { return v.Numbers(query) })
}

// truthOfUsage is what many readers bring, in any order and any number of times.
type truthOfUsage struct {
	*rand.Rand
	// hours and refused are what was counted until now.
	hours   []store.UsageCount
	refused []store.RefusedCount
}

func newTruthOfUsage(seed uint64) *truthOfUsage {
	u := &truthOfUsage{Rand: rand.New(rand.NewPCG(seed, 1))}
	tenant := func() string { return []string{"acme", "globex", "\x00\xff"}[u.IntN(3)] }
	for i := range 60 {
		c := store.UsageCount{Tenant: tenant(), At: hourOfUsage + u.Int64N(3), Grade: bucket.UsageGrade(u.IntN(2)), Unit: "points", Generation: u.Uint64()}
		if u.IntN(2) == 0 {
			c.Field = "Query.\xff"
		}
		u.hours = append(u.hours, c)
		u.refused = append(u.refused, store.RefusedCount{Tenant: tenant(), Hour: hourOfUsage + u.Int64N(3), Name: fmt.Sprint("tenant:\x00", i)})
	}
	return u
}

// grow counts something, and returns some of what was counted until now, in any order.
func (u *truthOfUsage) grow() (counts []store.UsageCount, refused []store.RefusedCount) {
	for range 30 {
		i := u.IntN(len(u.hours))
		c, r := &u.hours[i], &u.refused[i]
		switch u.IntN(3) {
		case 0:
			c.Charged += u.Int64N(100)
		case 1:
			c.GivenBack += u.Int64N(10)
			r.Refused++
		default:
			c.Calls++
		}
		counts, refused = append(counts, *c), append(refused, *r)
	}
	u.Shuffle(len(counts), func(i, j int) {
		counts[i], counts[j], refused[i], refused[j] = counts[j], counts[i], refused[j], refused[i]
	})
	return counts, refused
}

// minutesOf are the hours of some counts as minutes.
func minutesOf(counts []store.UsageCount) (minutes []store.UsageCount) {
	for _, c := range counts {
		c.At *= 60
		minutes = append(minutes, c)
	}
	return minutes
}

// put writes all of it, of hours and of minutes.
func put(tx *store.UsageTx, counts []store.UsageCount, refused []store.RefusedCount) error {
	if _, err := tx.PutUsage(store.UsageHours, counts); err != nil {
		return err
	}
	if _, err := tx.PutUsage(store.UsageMinutes, minutesOf(counts)); err != nil {
		return err
	}
	_, err := tx.PutRefused(refused)
	return err
}

// removeUsage removes what is forgotten, one tenant at a time.
func removeUsage(t testing.TB, db *store.DB) {
	t.Helper()
	var from store.UsageRemoval
	for !from.Done {
		count(t, db, func(tx *store.UsageTx) {
			var err error
			from, err = tx.RemoveUsage(from, 1)
			require.NoError(t, err)
		})
	}
}

// levels are the numbers that each table has.
func levels(t testing.TB, db *store.DB) map[string]int64 {
	t.Helper()
	var all []string
	for of, column := range map[string]string{"usage_minute": "charged", "usage_hour": "charged", "refused_hour": "refused"} {
		all = append(all, "SELECT '"+of+"', "+column+" FROM "+of)
	}
	return numbers(t, db, strings.Join(all, " UNION ALL "))
}
