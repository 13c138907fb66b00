package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

// decidedBy are decisions of a tenant by a user, in a minute.
func decidedBy(minute int64, user string, admitted int64) store.DecisionCount {
	return store.DecisionCount{Tenant: "acme", Minute: minute, Dimension: "user", Name: user, Instance: "api", Admitted: admitted}
}

// fewNames is how many names of a kind a tenant has in these tests: a thousand take minutes under the race detector.
const fewNames = 40

// byName are the numbers of users in a table, and how many users have a row.
func byName(t testing.TB, db *store.DB, table string) (of map[string]int64, sum int64, rows int) {
	t.Helper()
	of = numbers(t, db, "SELECT "+texts(db, "name")+", admitted FROM "+table+" WHERE dimension = 'user'")
	for _, n := range of {
		sum += n
	}
	return of, sum, len(of)
}

func TestAClientThatTakesOtherNamesInEachMinuteMakesNoRowForEachOfThem(t *testing.T) {
	t.Parallel()
	both(t, func(s scene) {
		t, db, c := s.T, s.db, s.clock
		openUsage(t, db)
		db.SetUsageNames(fewNames)
		sum := int64(0)
		// Names of each hour are others, so that a day and a month would have all of them.
		for hour := range int64(3) {
			for minute := range int64(8) {
				var counts []store.DecisionCount
				for n := range 8 {
					counts = append(counts, decidedBy(minuteOfUsage+60*hour+minute, fmt.Sprintf("%d-%d-%d", hour, minute, n), 1))
					sum++
				}
				counts = append(counts, decidedBy(minuteOfUsage+60*hour+minute, "ann", 5))
				sum += 5
				count(t, db, func(tx *store.UsageTx) { require.NoError(t, put(tx, nil, counts, nil)) })
				c.now = c.now.Add(time.Second)
				rollUp(t, db, c.now)
			}
		}
		for _, table := range []string{"decision_hour", "decision_day", "decision_month"} {
			of, all, rows := byName(t, db, table)
			require.Equal(t, sum, all, "%s has everything, once", table)
			require.LessOrEqual(t, rows, 3*(fewNames+1), table)
			require.EqualValues(t, 3*8*5, of[name(db, "ann")], "%s has who asks most under its name", table)
		}
		_, _, rows := byName(t, db, "decision_month")
		require.Equal(t, fewNames+1, rows)
	})
}

// name is a name as texts has it.
func name(db *store.DB, text string) string {
	if db.Dialect() == store.SQLite {
		return fmt.Sprintf("%X", text)
	}
	return fmt.Sprintf("\\x%x", text)
}

func TestWhoIsAmongTheOthersIsThereNoSecondTime(t *testing.T) {
	t.Parallel()
	both(t, func(s scene) {
		t, db, c := s.T, s.db, s.clock
		openUsage(t, db)
		db.SetUsageNames(fewNames)
		add := func(minute int64, users []string, admitted int64) {
			var counts []store.DecisionCount
			for _, user := range users {
				counts = append(counts, decidedBy(minute, user, admitted))
			}
			count(t, db, func(tx *store.UsageTx) { require.NoError(t, put(tx, nil, counts, nil)) })
			c.now = c.now.Add(time.Second)
			rollUp(t, db, c.now)
		}
		users := func(prefix string) (all []string) {
			for n := range fewNames {
				all = append(all, fmt.Sprintf("%s%04d", prefix, n))
			}
			return all
		}
		// As many as find room, then as many who ask more, in the same hour and in another one; what is really called so is counted with the others.
		add(minuteOfUsage, users("a"), 1)
		_, all, rows := byName(t, db, "decision_month")
		require.Equal(t, []int64{fewNames, fewNames}, []int64{all, int64(rows)})
		add(minuteOfUsage+1, append(users("b"), "*"), 2)
		add(minuteOfUsage+60, users("c"), 3)
		const sum = fewNames*(1+2+3) + 2
		for _, table := range []string{"decision_hour", "decision_day", "decision_month"} {
			_, all, _ := byName(t, db, table)
			require.EqualValues(t, sum, all, table)
		}
		of, _, rows := byName(t, db, "decision_day")
		require.Equal(t, fewNames+1, rows)
		require.EqualValues(t, fewNames*(1+2)+2, of[name(db, "*")])
		require.Contains(t, of, name(db, "c0039"))
	})
}

func TestAUserWithManyNamesMakesNoOwnerOfEachOfThemOnADay(t *testing.T) {
	t.Parallel()
	both(t, func(s scene) {
		t, db, c := s.T, s.db, s.clock
		openUsage(t, db)
		db.SetUsageNames(fewNames)
		const names = fewNames + 12
		var reached []store.ReachedCount
		for n := range names {
			reached = append(reached, store.ReachedCount{
				Tenant: "acme", Minute: minuteOfUsage + int64(n/3), Level: "user", Owner: fmt.Sprint("u", n), Limit: "minute", Threshold: 80, Instance: "api", Times: 1,
			})
		}
		reached = append(reached, store.ReachedCount{Tenant: "acme", Minute: minuteOfUsage, Level: "tenant", Limit: "minute", Threshold: 80, Instance: "api", Times: 4})
		count(t, db, func(tx *store.UsageTx) { require.NoError(t, put(tx, nil, nil, reached)) })
		rollUp(t, db, c.now)
		require.Equal(t, map[string]int64{"user": names, "tenant": 4}, numbers(t, db, "SELECT level, times FROM reached_day"))
		require.Equal(t, map[string]int64{"n": fewNames + 2}, numbers(t, db, "SELECT 'n', count(*) FROM reached_day"))
	})
}
