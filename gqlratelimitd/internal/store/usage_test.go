package store_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

const bucketUnit = string(bucket.Points)

func TestWhatIsCountedIsThereOnceHoweverOftenAndInWhateverOrderItIsRead(t *testing.T) {
	t.Parallel()
	both(t, func(s scene) {
		t, db := s.T, s.db
		u := newTruthOfUsage(uint64(s.db.Dialect()))
		broken := errors.New("it was killed")
		type batch struct {
			counts  []store.UsageCount
			refused []store.RefusedCount
		}
		var old []batch
		naive := int64(0)
		for range 40 {
			b := batch{}
			b.counts, b.refused = u.grow()
			old = append(old, b)
			if u.IntN(3) == 0 {
				b = old[u.IntN(len(old))]
			}
			// A transaction that ends with an error leaves nothing.
			ends := u.IntN(4) == 0
			err := db.Count(t.Context(), func(tx *store.UsageTx) error {
				if err := put(tx, b.counts, b.refused); err != nil || !ends {
					return err
				}
				return broken
			})
			require.Equal(t, ends, errors.Is(err, broken), err)
			for i := range b.counts {
				naive += b.counts[i].Charged
			}
		}
		// Somebody reads everything a last time.
		count(t, db, func(tx *store.UsageTx) { require.NoError(t, put(tx, u.hours, u.refused)) })
		truth, newest := map[string]int64{}, map[string]int64{}
		for i := range u.hours {
			truth["charged"] += u.hours[i].Charged
			truth["given back"] += u.hours[i].GivenBack
			truth["calls"] += u.hours[i].Calls
			truth["refused"] += u.refused[i].Refused
			// Who has one row for all generations keeps the larger one.
			key := fmt.Sprint(u.hours[i].Tenant, u.hours[i].At, u.hours[i].Grade, u.hours[i].Field)
			newest[key] = max(newest[key], u.hours[i].Charged)
		}
		one := int64(0)
		for _, n := range newest {
			one += n
		}
		for _, table := range []string{"usage_minute", "usage_hour"} {
			require.Equal(t, truth, numbers(t, db, `SELECT 'charged', charged FROM `+table+` UNION ALL SELECT 'given back', given_back FROM `+table+`
				UNION ALL SELECT 'calls', calls FROM `+table+` UNION ALL SELECT 'refused', refused FROM refused_hour`), table)
		}
		require.NotEqual(t, truth["charged"], naive, "who adds up what is read counts it twice")
		require.NotEqual(t, truth["charged"], one, "who has one row for all generations loses some")
	})
}

func TestManyThatCountAtOnceLoseNothing(t *testing.T) {
	t.Parallel()
	both(t, func(s scene) {
		t, db := s.T, s.db
		const writers = 4
		var all sync.WaitGroup
		for w := range uint64(writers) {
			all.Go(func() {
				// All of them read the same, up to another moment.
				u := newTruthOfUsage(7)
				for range 15 + w {
					counts, refused := u.grow()
					if err := db.Count(t.Context(), func(tx *store.UsageTx) error { return put(tx, counts, refused) }); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
		u := newTruthOfUsage(7)
		for range 15 + writers - 1 {
			u.grow()
		}
		charged, refused := int64(0), int64(0)
		for i := range u.hours {
			charged, refused = charged+u.hours[i].Charged, refused+u.refused[i].Refused
		}
		require.Equal(t, map[string]int64{"usage_minute": charged, "usage_hour": charged, "refused_hour": refused}, levels(t, db))
	})
}

func TestWhatIsNoCountIsLeftOutAndStopsNothing(t *testing.T) {
	t.Parallel()
	both(t, func(s scene) {
		t, db := s.T, s.db
		long := strings.Repeat("x", store.MaxUsageName+1)
		good := store.UsageCount{Tenant: strings.Repeat("t", store.MaxUsageTenant), At: hourOfUsage, Unit: bucketUnit, Field: long[1:], Charged: 3}
		keepUsage(t, db, store.UsageState{HoursFrom: hourOfUsage})
		count(t, db, func(tx *store.UsageTx) {
			bad := func(change func(*store.UsageCount)) store.UsageCount {
				c := good
				change(&c)
				return c
			}
			left, err := tx.PutUsage(store.UsageHours, []store.UsageCount{
				good,
				bad(func(c *store.UsageCount) { c.Tenant += "t" }), bad(func(c *store.UsageCount) { c.Unit = long }), bad(func(c *store.UsageCount) { c.Field = long }),
				bad(func(c *store.UsageCount) { c.At-- }), bad(func(c *store.UsageCount) { c.At = math.MaxInt64 }), bad(func(c *store.UsageCount) { c.At = math.MinInt64 }),
				bad(func(c *store.UsageCount) { c.At = s.clock.now.Unix()/3600 + 5*24 }),
				// These are counts, out of bounds.
				bad(func(c *store.UsageCount) { c.Charged = -7 }), bad(func(c *store.UsageCount) { c.Generation, c.Charged = math.MaxUint64, math.MaxInt64 }),
				bad(func(c *store.UsageCount) { c.Generation, c.Charged = 7, math.MaxInt64 }),
			})
			require.NoError(t, err)
			require.Equal(t, 7, left)
			left, err = tx.PutRefused([]store.RefusedCount{
				{Tenant: good.Tenant, Hour: hourOfUsage, Name: long[1:], Refused: math.MaxInt64}, {Tenant: good.Tenant + "t", Hour: hourOfUsage}, {Hour: hourOfUsage, Name: long}, {Hour: hourOfUsage - 1},
			})
			require.NoError(t, err)
			require.Equal(t, 3, left)
		})
		require.Equal(t, map[string]int64{"n": store.MaxUsage}, numbers(t, db, "SELECT 'n', refused FROM refused_hour"))
		require.Equal(t, map[string]int64{"n": 3}, numbers(t, db, "SELECT 'n', count(*) FROM usage_hour"))
	})
}

func TestForgottenUsageIsRemovedAndNotWrittenAgain(t *testing.T) {
	t.Parallel()
	both(t, func(s scene) {
		t, db := s.T, s.db
		at := func(hour int64) store.UsageCount {
			return store.UsageCount{Tenant: "acme", At: hour, Unit: bucketUnit, Charged: 5}
		}
		all := []store.UsageCount{at(hourOfUsage), at(hourOfUsage + 1)}
		refused := []store.RefusedCount{{Tenant: "acme", Hour: hourOfUsage, Name: "x", Refused: 5}, {Tenant: "globex", Hour: hourOfUsage + 1, Name: "x", Refused: 5}}
		count(t, db, func(tx *store.UsageTx) { require.NoError(t, put(tx, all, refused)) })
		require.Equal(t, map[string]int64{"usage_minute": 10, "usage_hour": 10, "refused_hour": 10}, levels(t, db))
		want := store.UsageState{MinutesFrom: minuteOfUsage + 61, HoursFrom: hourOfUsage + 1}
		require.Equal(t, want, keepUsage(t, db, want))
		require.Equal(t, want, keepUsage(t, db, store.UsageState{}), "it never goes back")
		removeUsage(t, db)
		require.Equal(t, map[string]int64{"usage_hour": 5, "refused_hour": 5}, levels(t, db))
		count(t, db, func(tx *store.UsageTx) { require.NoError(t, put(tx, all, refused)) })
		require.Equal(t, map[string]int64{"usage_hour": 5, "refused_hour": 5}, levels(t, db), "what comes too late changes nothing")
	})
}

func TestThePassSaysOfWhichTimeThereAreCounts(t *testing.T) {
	t.Parallel()
	both(t, func(s scene) {
		t, db := s.T, s.db
		pass := func() store.UsagePass { return read(t, db, (*store.View).UsagePass) }
		require.Zero(t, pass())
		for _, p := range []store.UsagePass{{Began: 3, Collected: 5}, {Began: 4, Collected: 9}, {Began: 2, Collected: 7}} {
			count(t, db, func(tx *store.UsageTx) { require.NoError(t, tx.PutUsagePass(p)) })
		}
		require.Equal(t, store.UsagePass{Began: 2, Collected: 9}, pass(), "it only grows")
		count(t, db, func(tx *store.UsageTx) { require.NoError(t, tx.SetBackUsagePass(12)) })
		require.EqualValues(t, 9, pass().Collected)
		count(t, db, func(tx *store.UsageTx) { require.NoError(t, tx.SetBackUsagePass(1)) })
		require.Equal(t, store.UsagePass{Began: 1, Collected: 1}, pass())
		for _, g := range []store.UsageGap{{First: 10, Until: 20}, {First: 10, Until: 15}, {First: 30, Until: 40}} {
			count(t, db, func(tx *store.UsageTx) { require.NoError(t, tx.PutUsageGap(g)) })
		}
		for _, of := range []struct {
			first, until int64
			found        int
		}{{0, 10, 0}, {0, 11, 1}, {19, 30, 1}, {20, 30, 0}, {19, 31, 2}} {
			require.Len(t, read(t, db, func(v *store.View) ([]store.UsageGap, error) { return v.UsageGaps(of.first, of.until) }), of.found, "%+v", of)
		}
	})
}
