package store_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

// dayOfUsage is the first of the days of which tests have minutes.
const (
	dayOfUsage    = 20_000
	minuteOfUsage = dayOfUsage * 24 * 60
)

func count(t testing.TB, db *store.DB, f func(tx *store.UsageTx)) {
	t.Helper()
	require.NoError(t, db.Count(t.Context(), func(tx *store.UsageTx) error {
		f(tx)
		return nil
	}))
}

// keepUsage has the database keep minutes of some days.
func keepUsage(t testing.TB, db *store.DB, want store.UsageState) (is store.UsageState) {
	t.Helper()
	count(t, db, func(tx *store.UsageTx) {
		var err error
		is, err = tx.KeepUsage(want)
		require.NoError(t, err)
	})
	return is
}

// openUsage is one that keeps minutes of a few days.
func openUsage(t testing.TB, db *store.DB) {
	t.Helper()
	keepUsage(t, db, store.UsageState{MinutesFrom: dayOfUsage, MinutesUntil: dayOfUsage + 4})
}

// rollUp computes all that is marked by a time.
func rollUp(t testing.TB, db *store.DB, by time.Time) (steps int) {
	t.Helper()
	for {
		found := 0
		count(t, db, func(tx *store.UsageTx) {
			var err error
			found, err = tx.RollUp(by, 7)
			require.NoError(t, err)
		})
		if found == 0 {
			return steps
		}
		steps++
	}
}

func numbers(t testing.TB, db *store.DB, query string) map[string]int64 {
	t.Helper()
	return read(t, db, func(v *store.View) (map[string]int64, error) { return v.Numbers(query) })
}

// requireSums holds that each level has the sums of the one below.
func requireSums(t testing.TB, db *store.DB) {
	t.Helper()
	for _, level := range []struct{ what, below, above string }{
		{"tenant || grade || unit || field || minute / 60", "usage_minute", "usage_hour"},
		{"tenant || grade || unit || field || at / 24", "usage_hour", "usage_day"},
		{"tenant || dimension || name || minute / 60", "decision_minute", "decision_hour"},
		{"tenant || dimension || name || at / 24", "decision_hour", "decision_day"},
		{"tenant || level || owner || limit_name || threshold || minute / 1440", "reached_minute", "reached_day"},
	} {
		above := strings.NewReplacer("minute / 60", "at", "at / 24", "at", "minute / 1440", "at").Replace(level.what)
		for _, number := range numbersOf[strings.SplitN(level.below, "_", 2)[0]] {
			require.Equal(t, numbers(t, db, "SELECT "+texts(db, level.what)+", "+number+" FROM "+level.below),
				numbers(t, db, "SELECT "+texts(db, above)+", "+number+" FROM "+level.above), "%s of %s", number, level.above)
		}
	}
}

var numbersOf = map[string][]string{
	"usage": {"charged", "given_back", "calls"}, "decision": {"admitted", "refused", "would_refuse", "points"}, "reached": {"times"},
}

// texts has names, which are any bytes, compared as texts.
func texts(db *store.DB, columns string) string {
	var all []string
	for _, column := range strings.Split(columns, " || ") {
		if db.Dialect() == store.SQLite {
			column = "hex(" + column + ")"
		} else {
			column = "CAST(" + column + " AS text)"
		}
		all = append(all, column)
	}
	return strings.Join(all, " || ' ' || ")
}

// truthOfUsage is what many readers bring, in any order and any number of times.
type truthOfUsage struct {
	*rand.Rand
	// is, decided and reached are what was counted until now.
	is      []store.UsageCount
	decided []store.DecisionCount
	reached []store.ReachedCount
}

func newTruthOfUsage(seed uint64) *truthOfUsage {
	u := &truthOfUsage{Rand: rand.New(rand.NewPCG(seed, 1))}
	minute := func() int64 { return minuteOfUsage + u.Int64N(3)*1440 + u.Int64N(2)*60 + u.Int64N(3) }
	for range 60 {
		c := store.UsageCount{Tenant: u.tenant(), Minute: minute(), Grade: bucket.UsageGrade(u.IntN(2)), Unit: "points", Generation: u.Uint64()}
		if u.IntN(2) == 0 {
			c.Field = "Query.\xff"
		}
		u.is = append(u.is, c)
		u.decided = append(u.decided, store.DecisionCount{
			Tenant: u.tenant(), Minute: minute(), Dimension: "operation", Name: fmt.Sprint("Query.", u.IntN(2)), Instance: "api", Boot: fmt.Sprint(len(u.decided)),
		})
		u.reached = append(u.reached, store.ReachedCount{
			Tenant: u.tenant(), Minute: minute(), Level: "user", Owner: "ann\x00", Limit: "minute", Threshold: 80, Instance: "api", Boot: fmt.Sprint(len(u.reached)),
		})
	}
	return u
}

func (u *truthOfUsage) tenant() string { return []string{"acme", "globex", "\x00\xff"}[u.IntN(3)] }

// grow counts something, and returns some of what was counted until now, in any order.
func (u *truthOfUsage) grow() (counts []store.UsageCount, decided []store.DecisionCount, reached []store.ReachedCount) {
	for range 30 {
		i := u.IntN(len(u.is))
		c, d, r := &u.is[i], &u.decided[i], &u.reached[i]
		switch u.IntN(3) {
		case 0:
			c.Charged += u.Int64N(100)
			d.Admitted++
			d.Points += u.Int64N(10)
		case 1:
			c.GivenBack += u.Int64N(10)
			d.Refused++
			d.WouldRefuse += u.Int64N(2)
		default:
			c.Calls++
			r.Times++
		}
		counts, decided, reached = append(counts, *c), append(decided, *d), append(reached, *r)
	}
	u.Shuffle(len(counts), func(i, j int) {
		counts[i], counts[j], decided[i], decided[j] = counts[j], counts[i], decided[j], decided[i]
	})
	return counts, decided, reached
}

// put writes all of it.
func put(tx *store.UsageTx, counts []store.UsageCount, decided []store.DecisionCount, reached []store.ReachedCount) error {
	_, one := tx.PutUsage(counts)
	_, two := tx.PutDecisions(decided)
	_, three := tx.PutReached(reached)
	return errors.Join(one, two, three)
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

// levels are the points that each level has.
func levels(t testing.TB, db *store.DB) map[string]int64 {
	t.Helper()
	return numbers(t, db, `SELECT 'minute', charged FROM usage_minute UNION ALL SELECT 'hour', charged FROM usage_hour
		UNION ALL SELECT 'day', charged FROM usage_day UNION ALL SELECT 'month', charged FROM usage_month`)
}
