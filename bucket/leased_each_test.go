package bucket_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	_ "github.com/gqlgen-ratelimit/ratelimit/internal/seed"
)

// wall is a budget of everything, and those of two operations, in front of which instances lease each by itself.
type wall struct {
	*testing.T
	store     *countedStore
	instances []*bucket.Leased
	all       *bucket.Limits
	one       [2]*bucket.Limits
}

var wallOperations = [2]string{"Mutation.checkout", "Query.*"}

func newWall(t *testing.T, instances int, all, checkout, query bucket.Limit) *wall {
	t.Helper()
	w := &wall{T: t, store: &countedStore{Memory: bucket.NewMemory(bucket.MemoryConfig{})}}
	compile := func(l bucket.Limit) *bucket.Limits {
		limits, err := bucket.Compile(l)
		require.NoError(t, err)
		return limits
	}
	w.all, w.one = compile(all), [2]*bucket.Limits{compile(checkout), compile(query)}
	ctx, cancel := context.WithCancel(t.Context())
	for range instances {
		l := bucket.NewLeased(w.store, bucket.LeasedConfig{})
		l.Allow(true)
		w.instances = append(w.instances, l)
		go l.Run(ctx)
	}
	synctest.Wait()
	t.Cleanup(func() {
		cancel()
		synctest.Wait()
	})
	return w
}

// of is a take of points from the budget of everything, and from those of operations, a bit for each.
func (w *wall) of(n int64, operations int) bucket.Take {
	take := bucket.Take{Buckets: []bucket.Bucket{{Limits: w.all}}, Amounts: points(n), Lease: bucket.LeaseAlways, LeaseEach: true}
	for i, name := range wallOperations {
		if operations>>i&1 == 1 {
			take.Buckets = append(take.Buckets, bucket.Bucket{Owner: bucket.Owner{Level: bucket.Operation, Name: name}, Limits: w.one[i]})
		}
	}
	return take
}

func (w *wall) take(l *bucket.Leased, take bucket.Take) bucket.Result {
	w.Helper()
	result, err := l.Take(w.Context(), take)
	require.NoError(w, err)
	return result
}

// newWarmWall returns one of an instance that leases all of it, of which 300 points are spent.
func newWarmWall(t *testing.T, checkout int64) (*wall, *bucket.Leased) {
	t.Helper()
	w := newWall(t, 1, hourly("all", 80_000), hourly("checkout", checkout), hourly("query", 40_000))
	l := w.instances[0]
	for range 300 {
		w.take(l, w.of(1, 3))
		time.Sleep(5 * time.Millisecond) //nolint:forbidigo // In the bubble.
	}
	require.Equal(t, 3, l.Stats().Tenants, "each budget by itself")
	return w, l
}

// requireLeft says what is left of each budget when the instance has given back what it holds.
func (w *wall) requireLeft(l *bucket.Leased, left ...int64) {
	w.Helper()
	require.NoError(w, l.Shutdown(w.Context()))
	is := w.left(len(left))
	for i := range left {
		require.InDelta(w, left[i], is[i], 2, "budget %d", i)
	}
}

func (w *wall) left(budgets int) (remaining []int64) {
	w.Helper()
	states, err := w.store.Peek(w.Context(), "", w.of(0, 3).Buckets[:budgets])
	require.NoError(w, err)
	for i := range states {
		remaining = append(remaining, states[i].Remaining)
	}
	return remaining
}

// hourly is a limit of which so little comes back that what is lost stays lost.
func hourly(name string, capacity int64) bucket.Limit {
	return bucket.Limit{Name: name, Capacity: capacity, Refill: 1, Period: time.Hour}
}

func TestBudgetsOfSingleOperationsAreLeasedWhereTheyAreBusy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, l := newWarmWall(t, 40_000)
		calls := w.store.takes
		for range 2000 {
			result := w.take(l, w.of(2, 3))
			require.Equal(t, bucket.Admitted, result.Verdict)
			require.Len(t, result.Limits, 3)
			for i := range result.Limits {
				require.EqualValues(t, 2, result.Limits[i].Charged)
				require.True(t, result.Limits[i].Approximate)
			}
			require.Equal(t, "Query.*", result.Limits[2].Owner.Name, "in the order of the buckets")
			time.Sleep(5 * time.Millisecond) //nolint:forbidigo // In the bubble.
		}
		require.Less(t, w.store.takes-calls, 40, "of 2000 takes")
		// Who asks for an operation now and then asks the store for it, and for nothing else.
		calls = w.store.takes
		for range 20 {
			time.Sleep(2 * time.Second) //nolint:forbidigo // In the bubble.
			w.take(l, w.of(1, 1))
		}
		require.GreaterOrEqual(t, w.store.takes-calls, 15)
		require.LessOrEqual(t, l.Stats().Tenants, 1)
		w.requireLeft(l, 80_000-300-4000-20, 40_000-300-4000-20, 40_000-300-4000)
	})
}

func TestWhatOneOfSeveralBudgetsRefusesIsTakenFromNone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, l := newWarmWall(t, 1000)
		admitted, refused := int64(300), 0
		for range 3000 {
			switch result := w.take(l, w.of(5, 3)); result.Verdict {
			case bucket.Admitted:
				admitted += 5
			default:
				refused++
				require.Positive(t, result.RetryAfter)
				require.True(t, result.Receipt.IsZero())
			}
			time.Sleep(2 * time.Millisecond) //nolint:forbidigo // In the bubble.
		}
		require.Greater(t, refused, 2000)
		w.requireLeft(l, 80_000-admitted, 1000-admitted, 40_000-admitted)
		require.LessOrEqual(t, admitted, int64(1001))
		require.Greater(t, admitted, int64(980))
	})
}

func TestWhatTheStoreRefusesOfSeveralBudgetsIsTakenFromNone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWall(t, 1, hourly("all", 1000), hourly("checkout", 3), hourly("query", 1000))
		l := w.instances[0]
		for range 100 {
			require.Equal(t, bucket.Admitted, w.take(l, w.of(1, 0)).Verdict)
			time.Sleep(5 * time.Millisecond) //nolint:forbidigo // In the bubble.
		}
		refused := 0
		for range 200 {
			// So seldom that the store is asked for the operation.
			time.Sleep(time.Second) //nolint:forbidigo // In the bubble.
			result := w.take(l, w.of(1, 1))
			if result.Verdict == bucket.Admitted {
				continue
			}
			refused++
			require.True(t, result.Receipt.IsZero())
			require.Len(t, result.Limits, 2)
			require.Zero(t, result.Limits[0].Charged)
			require.True(t, result.Limits[1].Exceeded)
		}
		require.Equal(t, 197, refused)
		require.Equal(t, 1, l.Stats().Tenants)
		w.requireLeft(l, 1000-103)
	})
}

func TestATakeOfSeveralLeasedBudgetsIsSettledInEach(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, l := newWarmWall(t, 40_000)
		for i := range 100 {
			take := w.of(100, 3)
			take.Declinable = true
			result := w.take(l, take)
			require.Equal(t, bucket.Admitted, result.Verdict)
			switch receipt := result.Receipt.Clone(); i % 2 {
			case 0:
				require.True(t, l.Decline(receipt).IsZero(), "all of it was held here")
			default:
				l.Keep(receipt)
				for range 3 {
					_, err := l.Settle(t.Context(), bucket.Settlement{Receipt: receipt, Actual: points(10)})
					require.NoError(t, err)
				}
			}
		}
		w.requireLeft(l, 80_000-300-500, 40_000-300-500, 40_000-300-500)
	})
}

func TestABudgetBesideALeasedOneDoesNotEndItsLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, l := newWarmWall(t, 40_000)
		calls := w.store.takes
		across := bucket.Take{Buckets: []bucket.Bucket{{Owner: bucket.Owner{Level: bucket.Operation, Name: "Mutation.login", Part: "ann"}, Limits: w.one[0]}}, Amounts: points(1)}
		for range 200 {
			require.Equal(t, bucket.Admitted, w.take(l, across).Verdict)
			w.take(l, w.of(1, 3))
			time.Sleep(10 * time.Millisecond) //nolint:forbidigo // In the bubble.
		}
		require.Less(t, w.store.takes-calls, 200+20)
		require.Equal(t, 3, l.Stats().Tenants)
	})
}

// walled is what was spent of one budget, as one bucket would have it that sees every take. Its level is in thousandths, so that it is exact to the millisecond.
type walled struct {
	capacity, refill, level int64
	at                      time.Time
}

func (w *walled) spend(t require.TestingT, n int64, what string) {
	now := time.Now()
	w.level = min(w.capacity*1000, w.level+w.refill*now.Sub(w.at).Milliseconds())
	w.at = now
	w.level -= n * 1000
	require.GreaterOrEqual(t, w.level, int64(0), "%s: more was admitted in some interval than the budget", what)
}

func TestBudgetsThatAreLeasedOneByOneAdmitNoMoreThanEachInAnyInterval(t *testing.T) {
	t.Parallel()
	mixed, declined := 0, 0
	rapid.Check(t, func(r *rapid.T) {
		limit := func(name string) (bucket.Limit, *walled) {
			capacity, refill := rapid.Int64Range(300, 3000).Draw(r, name), rapid.Int64Range(50, 2000).Draw(r, name+" a second")
			return bucket.Limit{Name: name, Capacity: capacity, Refill: refill, Period: time.Second}, &walled{capacity: capacity, refill: refill}
		}
		synctest.Test(t, func(t *testing.T) {
			all, ofAll := limit("all")
			checkout, ofCheckout := limit("checkout")
			query, ofQuery := limit("query")
			for _, one := range []*walled{ofAll, ofCheckout, ofQuery} {
				one.level, one.at = one.capacity*1000, time.Now()
			}
			w := newWall(t, rapid.IntRange(1, 3).Draw(r, "instances"), all, checkout, query)
			spend := func(operations int, n int64) {
				ofAll.spend(r, n, "all")
				if operations&1 != 0 {
					ofCheckout.spend(r, n, "checkout")
				}
				if operations&2 != 0 {
					ofQuery.spend(r, n, "query")
				}
			}
			type waiting struct {
				by         *bucket.Leased
				receipt    bucket.Receipt
				operations int
				n          int64
			}
			var held []waiting
			end := func(h waiting, keeps bool) {
				if keeps {
					h.by.Keep(h.receipt)
					return
				}
				declined++
				if rest := h.by.Decline(h.receipt); !rest.IsZero() {
					_, err := h.by.Settle(t.Context(), bucket.Settlement{Receipt: rest, Actual: points(0)})
					require.NoError(r, err)
				}
			}
			for range rapid.IntRange(20, 150).Draw(r, "steps") {
				by := rapid.SampledFrom(w.instances).Draw(r, "instance")
				operations, n := rapid.IntRange(0, 3).Draw(r, "operations"), rapid.Int64Range(1, 60).Draw(r, "points")
				switch rapid.IntRange(0, 3).Draw(r, "step") {
				case 0:
					time.Sleep(time.Duration(rapid.IntRange(0, 1500).Draw(r, "pause")) * time.Millisecond) //nolint:forbidigo // In the bubble.
				case 1:
					for range 40 {
						if w.take(by, w.of(n, operations)).Verdict == bucket.Admitted {
							spend(operations, n)
						}
					}
				case 2:
					take := w.of(n, operations)
					take.Declinable = true
					before := w.store.takes
					result := w.take(by, take)
					if result.Verdict != bucket.Admitted {
						continue
					}
					h := waiting{by, result.Receipt.Clone(), operations, n}
					if w.store.takes > before {
						// What the store has charged of it is not held, and is spent now.
						mixed++
						spend(operations, n)
						end(h, true)
						continue
					}
					held = append(held, h)
				default:
					if len(held) == 0 {
						continue
					}
					h := held[0]
					held = held[1:]
					keeps := rapid.Bool().Draw(r, "keeps")
					if end(h, keeps); keeps {
						spend(h.operations, h.n)
					}
				}
			}
		})
	})
	require.Positive(t, mixed)
	require.Positive(t, declined)
}
