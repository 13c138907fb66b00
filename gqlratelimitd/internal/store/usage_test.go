package store_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

func TestWhatIsCountedIsThereOnceHoweverOftenAndInWhateverOrderItIsRead(t *testing.T) {
	t.Parallel()
	both(t, func(s scene) {
		t, db, c := s.T, s.db, s.clock
		openUsage(t, db)
		u := newTruthOfUsage(uint64(s.db.Dialect()))
		broken := errors.New("it was killed")
		type batch struct {
			counts  []store.UsageCount
			decided []store.DecisionCount
			reached []store.ReachedCount
		}
		var old []batch
		naive := int64(0)
		for range 40 {
			b := batch{}
			b.counts, b.decided, b.reached = u.grow()
			old = append(old, b)
			if u.IntN(3) == 0 {
				b = old[u.IntN(len(old))]
			}
			// A transaction that ends with an error leaves nothing.
			ends := u.IntN(4) == 0
			err := db.Count(t.Context(), func(tx *store.UsageTx) error {
				if err := put(tx, b.counts, b.decided, b.reached); err != nil || !ends {
					return err
				}
				return broken
			})
			require.Equal(t, ends, errors.Is(err, broken), err)
			for i := range b.counts {
				naive += b.counts[i].Charged
			}
			if u.IntN(5) == 0 {
				err := db.Count(t.Context(), func(tx *store.UsageTx) error {
					if _, err := tx.RollUp(c.now, 5); err != nil || ends {
						return errors.Join(err, broken)
					}
					return nil
				})
				require.Equal(t, ends, errors.Is(err, broken), err)
			}
		}
		// Somebody reads everything a last time.
		count(t, db, func(tx *store.UsageTx) { require.NoError(t, put(tx, u.is, u.decided, u.reached)) })
		truth := map[string]int64{}
		newest := map[string]int64{}
		for i := range u.is {
			truth["charged"] += u.is[i].Charged
			truth["given back"] += u.is[i].GivenBack
			truth["calls"] += u.is[i].Calls
			truth["refused"] += u.decided[i].Refused
			truth["times"] += u.reached[i].Times
			// Who has one row for all generations keeps the larger one.
			key := fmt.Sprint(u.is[i].Tenant, u.is[i].Minute, u.is[i].Grade, u.is[i].Field)
			newest[key] = max(newest[key], u.is[i].Charged)
		}
		one := int64(0)
		for _, n := range newest {
			one += n
		}
		require.Equal(t, truth, numbers(t, db, `SELECT 'charged', charged FROM usage_minute UNION ALL SELECT 'given back', given_back FROM usage_minute
			UNION ALL SELECT 'calls', calls FROM usage_minute UNION ALL SELECT 'refused', refused FROM decision_minute UNION ALL SELECT 'times', times FROM reached_minute`))
		require.NotEqual(t, truth["charged"], naive, "who adds up what is read counts it twice")
		require.NotEqual(t, truth["charged"], one, "who has one row for all generations loses some")
		rollUp(t, db, c.now)
		requireSums(t, db)
		require.Equal(t, truth["charged"], numbers(t, db, "SELECT 'charged', charged FROM usage_month")["charged"])
		require.Equal(t, truth["refused"], numbers(t, db, "SELECT 'refused', refused FROM decision_month")["refused"])
		// What has not changed is not computed again.
		count(t, db, func(tx *store.UsageTx) { require.NoError(t, put(tx, u.is, u.decided, u.reached)) })
		require.Zero(t, rollUp(t, db, c.now))
	})
}

func TestManyThatCountAndComputeAtOnceLoseNothing(t *testing.T) {
	t.Parallel()
	both(t, func(s scene) {
		t, db, c := s.T, s.db, s.clock
		openUsage(t, db)
		const writers = 4
		var all, computing sync.WaitGroup
		done := make(chan struct{})
		for range 2 {
			computing.Go(func() {
				for {
					err := db.Count(t.Context(), func(tx *store.UsageTx) error {
						_, err := tx.RollUp(c.now, 3)
						return err
					})
					if err != nil {
						t.Error(err)
						return
					}
					select {
					case <-done:
						return
					default:
					}
				}
			})
		}
		for w := range uint64(writers) {
			all.Go(func() {
				// All of them read the same, up to another moment.
				u := newTruthOfUsage(7)
				for range 15 + w {
					counts, decided, reached := u.grow()
					if err := db.Count(t.Context(), func(tx *store.UsageTx) error { return put(tx, counts, decided, reached) }); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
		close(done)
		computing.Wait()
		rollUp(t, db, c.now)
		requireSums(t, db)
		u := newTruthOfUsage(7)
		for range 15 + writers - 1 {
			u.grow()
		}
		truth := int64(0)
		for i := range u.is {
			truth += u.is[i].Charged
		}
		require.Equal(t, truth, numbers(t, db, "SELECT 'n', charged FROM usage_month")["n"])
	})
}

func TestWhatIsCountedWhileSomebodyComputesIsComputedAfterwards(t *testing.T) {
	t.Parallel()
	// A file of SQLite has one writer.
	c := newClock()
	db := open(t, store.Config{URL: kinds["PostgreSQL"](t), Now: c.Now})
	openUsage(t, db)
	counted := store.UsageCount{Tenant: "acme", Minute: minuteOfUsage, Unit: bucketUnit, Charged: 5}
	add := func(tx *store.UsageTx) {
		counted.Charged++
		require.NoError(t, put(tx, []store.UsageCount{counted}, nil, nil))
	}
	count(t, db, add)
	// The mark is there, and what is computed now would be without what is counted meanwhile.
	count(t, db, func(tx *store.UsageTx) {
		add(tx)
		require.Zero(t, rollUp(t, db, c.now))
	})
	rollUp(t, db, c.now)
	requireSums(t, db)
	count(t, db, add)
	var counting sync.WaitGroup
	count(t, db, func(tx *store.UsageTx) {
		found, err := tx.RollUp(c.now, 1)
		require.NoError(t, err)
		require.Equal(t, 1, found)
		counting.Go(func() { count(t, db, add) })
	})
	counting.Wait()
	require.NotZero(t, rollUp(t, db, c.now))
	requireSums(t, db)
}

func TestWhatIsNoCountIsLeftOutAndStopsNothing(t *testing.T) {
	t.Parallel()
	both(t, func(s scene) {
		t, db, c := s.T, s.db, s.clock
		long := strings.Repeat("x", store.MaxUsageName+1)
		good := store.UsageCount{Tenant: strings.Repeat("t", store.MaxUsageTenant), Minute: minuteOfUsage, Unit: bucketUnit, Field: long[1:], Charged: 3}
		count(t, db, func(tx *store.UsageTx) {
			left, err := tx.PutUsage([]store.UsageCount{good})
			require.NoError(t, err)
			require.Equal(t, 1, left, "nothing is kept yet")
		})
		openUsage(t, db)
		count(t, db, func(tx *store.UsageTx) {
			bad := func(change func(*store.UsageCount)) store.UsageCount {
				c := good
				change(&c)
				return c
			}
			left, err := tx.PutUsage([]store.UsageCount{
				good,
				bad(func(c *store.UsageCount) { c.Tenant += "t" }), bad(func(c *store.UsageCount) { c.Unit = long }), bad(func(c *store.UsageCount) { c.Field = long }),
				bad(func(c *store.UsageCount) { c.Minute-- }), bad(func(c *store.UsageCount) { c.Minute = math.MaxInt64 }), bad(func(c *store.UsageCount) { c.Minute = math.MinInt64 }),
				// These are counts, out of bounds.
				bad(func(c *store.UsageCount) { c.Charged = -7 }), bad(func(c *store.UsageCount) { c.Generation, c.Charged = math.MaxUint64, math.MaxInt64 }),
				bad(func(c *store.UsageCount) { c.Generation, c.Charged = 7, math.MaxInt64 }),
			})
			require.NoError(t, err)
			require.Equal(t, 6, left)
			left, err = tx.PutDecisions([]store.DecisionCount{{Minute: minuteOfUsage, Name: long}, {Minute: minuteOfUsage, Instance: long}, {Minute: minuteOfUsage, Boot: long}})
			require.NoError(t, err)
			require.Equal(t, 3, left)
			left, err = tx.PutReached([]store.ReachedCount{
				{Minute: minuteOfUsage, Limit: long},
				{Minute: minuteOfUsage, Level: long},
				// A PostgreSQL would refuse the whole transaction for such a text, again and again.
				{Minute: minuteOfUsage, Level: "\x00"},
				{Minute: minuteOfUsage, Level: "\xff"},
				{Minute: minuteOfUsage, Level: "word"},
				{Minute: minuteOfUsage, Owner: long},
				{Minute: minuteOfUsage, Tenant: good.Tenant, Level: "user", Owner: long[1:], Limit: long[1:], Instance: long[1:], Boot: long[1:]},
			})
			require.NoError(t, err)
			require.Equal(t, 6, left)
		})
		rollUp(t, db, c.now)
		// Sums are bounded too.
		for _, table := range []string{"usage_hour", "usage_day", "usage_month"} {
			require.Equal(t, map[string]int64{"n": store.MaxUsage}, numbers(t, db, "SELECT 'n', charged FROM "+table))
		}
	})
}

const bucketUnit = string(bucket.Points)

func TestWhatIsForgottenStaysInTheLevelAboveAndIsNotComputedAnew(t *testing.T) {
	t.Parallel()
	both(t, func(s scene) {
		t, db, c := s.T, s.db, s.clock
		openUsage(t, db)
		at := func(minute int64) store.UsageCount {
			return store.UsageCount{Tenant: "acme", Minute: minute, Unit: bucketUnit, Generation: uint64(minute), Charged: 5}
		}
		both := func() []store.UsageCount { return []store.UsageCount{at(minuteOfUsage), at(minuteOfUsage + 1440)} }
		count(t, db, func(tx *store.UsageTx) { require.NoError(t, put(tx, both(), nil, nil)) })
		next := store.UsageState{MinutesFrom: dayOfUsage + 1, MinutesUntil: dayOfUsage + 5}
		require.EqualValues(t, dayOfUsage, keepUsage(t, db, next).MinutesFrom, "the hour was not computed yet")
		rollUp(t, db, c.now)
		require.Equal(t, next, keepUsage(t, db, next))
		require.Equal(t, next, keepUsage(t, db, store.UsageState{}), "it never goes back")
		removeUsage(t, db)
		require.Equal(t, map[string]int64{"minute": 5, "hour": 10, "day": 10, "month": 10}, levels(t, db))
		// What comes too late changes nothing.
		count(t, db, func(tx *store.UsageTx) {
			more := both()
			more[0].Charged, more[1].Charged = 50, 50
			left, err := tx.PutUsage(more)
			require.NoError(t, err)
			require.Equal(t, 1, left)
		})
		rollUp(t, db, c.now)
		require.Equal(t, map[string]int64{"minute": 50, "hour": 55, "day": 55, "month": 55}, levels(t, db))

		// Hours and days go later, and none before what is below it.
		all := store.UsageState{MinutesFrom: dayOfUsage + 1, MinutesUntil: dayOfUsage + 5, HoursFrom: dayOfUsage + 1, DaysFrom: store.MonthOfDay(dayOfUsage)}
		require.Equal(t, all, keepUsage(t, db, store.UsageState{HoursFrom: dayOfUsage + 40, DaysFrom: 9999}))
		removeUsage(t, db)
		require.Equal(t, map[string]int64{"minute": 50, "hour": 50, "day": 55, "month": 55}, levels(t, db))
		keepUsage(t, db, store.UsageState{MinutesFrom: dayOfUsage + 40, MinutesUntil: dayOfUsage + 42, HoursFrom: dayOfUsage + 40, DaysFrom: 9999})
		removeUsage(t, db)
		require.Equal(t, map[string]int64{}, levels(t, db))
	})
}

func TestPassesAndMarksSayHowFarItIs(t *testing.T) {
	t.Parallel()
	both(t, func(s scene) {
		t, db, c := s.T, s.db, s.clock
		openUsage(t, db)
		pass := func() int64 {
			return read(t, db, func(v *store.View) (int64, error) { return v.UsagePass("first") })
		}
		waiting := func() time.Time { return read(t, db, (*store.View).UsageWaiting) }
		require.Zero(t, pass())
		require.Zero(t, waiting())
		begun := c.now
		one := []store.UsageCount{{Tenant: "acme", Minute: minuteOfUsage, Unit: bucketUnit, Charged: 1}}
		for _, minute := range []int64{5, 7, 6} {
			count(t, db, func(tx *store.UsageTx) {
				require.NoError(t, tx.PutUsagePass("first", minute))
				one[0].Charged++
				require.NoError(t, put(tx, one, nil, nil))
			})
			c.now = c.now.Add(time.Minute)
		}
		require.EqualValues(t, 7, pass(), "it never goes back")
		require.Equal(t, begun, waiting(), "a mark keeps its age")
		require.Zero(t, rollUp(t, db, begun.Add(-time.Second)))
		require.NotZero(t, rollUp(t, db, c.now))
		require.Zero(t, waiting())
	})
}

func TestAMonthBeginsWithItsFirstDay(t *testing.T) {
	t.Parallel()
	at := time.Date(1970, time.January, 1, 0, 0, 0, 0, time.UTC)
	for month := range int64(12 * 200) {
		day := at.AddDate(0, int(month), 0)
		require.Equal(t, store.DayOf(day), store.FirstDayOfMonth(month))
		require.Equal(t, month, store.MonthOfDay(store.DayOf(day)))
		require.Equal(t, month, store.MonthOfDay(store.FirstDayOfMonth(month+1)-1))
	}
}
