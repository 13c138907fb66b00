package throttle_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/throttle"
)

// served is one operation in ten milliseconds, by its number.
type served struct {
	tenant string
	took   time.Duration
	fails  bool
}

// serve lets operations come for so many seconds, a hundred in each but for those that have no tenant.
func serve(one *throttle.Throttle, seconds int, operation func(i int) served) {
	serveAt(one, 100, 0, seconds, operation)
}

// serveAt lets so many operations come in each second, from one second to another.
func serveAt(one *throttle.Throttle, rate, from, to int, operation func(i int) served) {
	for i := from * rate; i < to*rate; i++ {
		if op := operation(i); op.tenant != "" {
			one.Offer(op.tenant, 1, 0.1, 1)
			start := one.Begin(op.tenant)
			if op.took < time.Hour {
				time.AfterFunc(op.took, func() { one.End(start, op.fails) })
			}
		}
		time.Sleep(time.Second / time.Duration(rate)) //nolint:forbidigo // The clock of the bubble is not the real one: this waits for nothing.
	}
}

// shop is operations of fifty tenants that take so long, where another one's come instead in so many of a hundred.
func shop(often int, took time.Duration, other served) func(i int) served {
	return func(i int) served {
		if i%100 < often {
			return other
		}
		return served{tenant: fmt.Sprint("t", i%50), took: took}
	}
}

const (
	fast = 20 * time.Millisecond
	slow = 2 * time.Second
)

func TestATenantIsNotTheSignalOfAll(t *testing.T) {
	t.Parallel()
	for what, other := range map[string]served{
		"that asks for what is slow":           {took: slow},
		"that asks for what is nearly slow":    {took: 98 * time.Millisecond},
		"that asks for what fails":             {took: fast, fails: true},
		"whose operations do not end":          {took: time.Hour},
		"whose operations take a minute":       {took: time.Minute},
		"that asks for what fails slowly":      {took: slow, fails: true},
		"whose operations fail after a minute": {took: time.Minute, fails: true},
	} {
		for _, c := range []struct{ often, others int }{{1, 1}, {5, 1}, {50, 1}, {100, 1}, {5, 2}, {50, 2}} {
			t.Run(fmt.Sprintf("%d tenants %s in %d of 100 operations", c.others, what, c.often), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { requireUnheard(t, c.often, c.others, other) })
			})
		}
	}
}

// requireUnheard fails if few tenants are heard whose operations are so many of a hundred.
func requireUnheard(t *testing.T, often, tenants int, other served) {
	t.Helper()
	cfg := quiet(throttle.NewMemory(nil))
	cfg.Latency, cfg.Errors = 100*time.Millisecond, 0.02
	one := running(t, cfg)
	for second := range 70 {
		serve(one, 1, func(i int) served {
			op := shop(often, fast, other)(i)
			if i%100 < often {
				op.tenant = fmt.Sprint("attacker", (i+second)%tenants)
			}
			return op
		})
		require.Zero(t, one.Status().Shed)
		require.LessOrEqual(t, one.Status().Fleet.Pressure, 1.0)
		if tenants == 1 {
			require.Less(t, one.Status().Fleet.Pressure, 0.83, "nor does it have a share fall slower")
		}
	}
}

func TestWhatManyTenantsSayIsHeard(t *testing.T) {
	t.Parallel()
	for what, operation := range map[string]func(i int) served{
		"all are slow": func(i int) served { return served{fmt.Sprint("t", i%50), slow, false} },
		"three in a hundred of all are slow": func(i int) served {
			return served{fmt.Sprint("t", i*7%50), []time.Duration{fast, slow}[min(1, max(0, i%33-31))], false}
		},
		"three tenants are all, and are slow": func(i int) served {
			return served{fmt.Sprint("t", i%3), slow, false}
		},
		"three tenants are half, and are slow": func(i int) served {
			if i%2 == 0 {
				return served{fmt.Sprint("slow", i%3), slow, false}
			}
			return served{fmt.Sprint("t", i%50), fast, false}
		},
		"nothing ends": func(i int) served { return served{fmt.Sprint("t", i%50), time.Hour, false} },
		"one in ten of all fails": func(i int) served {
			return served{fmt.Sprint("t", i*7%50), fast, i%10 == 3}
		},
		"each has come once, and is slow": func(i int) served {
			return served{fmt.Sprint("t", i), []time.Duration{fast, slow}[min(1, max(0, i%20-16))], false}
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				cfg := quiet(throttle.NewMemory(nil))
				cfg.Latency, cfg.Errors = 100*time.Millisecond, 0.02
				one := running(t, cfg)
				most := 0.0
				for second := range 15 {
					serveAt(one, 100, second, second+1, operation)
					most = max(most, one.Status().Shed)
				}
				require.Greater(t, most, 0.25)
			})
		})
	}
}

// few is operations of so many tenants in the place of those of a hundred others, from the tenth second of 200 operations on.
func few(tenants int, op served, times func(i int) bool) func(i int) served {
	return func(i int) served {
		if i >= 10*200 && times(i) {
			op.tenant = fmt.Sprint("few", i%tenants)
			return op
		}
		return served{tenant: fmt.Sprint("t", i%100), took: fast}
	}
}

func TestFewTenantsAreNotTheSignalOfAll(t *testing.T) {
	t.Parallel()
	for name, operation := range map[string]func(i int) served{
		"that ask for what takes 30 s, twice each": few(3, served{took: 30 * time.Second}, func(i int) bool { return i < 12*200 && i%200 < 3 }),
		"that ask for what is slow, each second":   few(3, served{took: 5 * time.Second}, func(i int) bool { return i%200 < 3 }),
		"that ask for what fails":                  few(5, served{took: fast, fails: true}, func(i int) bool { return i%4 == 0 }),
		"that ask for what hangs, for half of all": few(3, served{took: time.Hour}, func(i int) bool { return i%2 == 0 }),
		"beside one in 250 that is slow": func(i int) served {
			if i%250 == 249 {
				return served{tenant: fmt.Sprint("t", i/250%100), took: slow}
			}
			return few(3, served{took: slow}, func(i int) bool { return i%10 == 0 })(i)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				cfg := quiet(throttle.NewMemory(nil))
				cfg.Latency, cfg.Errors = 200*time.Millisecond, 0.02
				one := running(t, cfg)
				for second := range 60 {
					serveAt(one, 200, second, second+1, operation)
					require.Zero(t, one.Status().Shed, "in second %d", second)
				}
			})
		})
	}
}

func TestFewTenantsDoNotKeepTheShareFromComingBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := quiet(throttle.NewMemory(nil))
		cfg.Latency = 200 * time.Millisecond
		one := running(t, cfg)
		stop := pressed(t, one, over(4))
		nearly := few(3, served{took: 190 * time.Millisecond}, func(i int) bool { return i%10 < 3 })
		serveAt(one, 200, 0, 15, nearly)
		require.Greater(t, one.Status().Shed, 0.7)
		stop()
		serveAt(one, 200, 15, 100, nearly)
		require.Zero(t, one.Status().Shed)
	})
}

func TestAnOverloadIsHeardSoonThoughTrafficIsLow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ tenants, rate int }{
		"100 tenants and 20 operations a second":  {100, 20},
		"1000 tenants and 20 operations a second": {1000, 20},
		"1000 tenants and 200":                    {1000, 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				cfg := quiet(throttle.NewMemory(nil))
				cfg.Latency = 200 * time.Millisecond
				one := running(t, cfg)
				took := fast
				operation := func(i int) served { return served{tenant: fmt.Sprint("t", i*7%c.tenants), took: took} }
				serveAt(one, c.rate, 0, 20, operation)
				require.Zero(t, one.Status().Shed)
				took = slow
				serveAt(one, c.rate, 20, 24, operation)
				require.Positive(t, one.Status().Shed)
			})
		})
	}
}

func TestATenantWhoseOperationsAreSlowAndHangIsHeardOnceForBoth(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := quiet(throttle.NewMemory(nil))
		cfg.Latency = 100 * time.Millisecond
		one := running(t, cfg)
		most := 0.0
		for second := range 30 {
			// They are so few that a window is of several seconds: what hangs begins when what is slow has ended in the same one.
			serve(one, 1, func(i int) served {
				switch {
				case i == 4:
					return served{tenant: "attacker", took: 300 * time.Millisecond}
				case i == 60 && second%7 == 0:
					return served{tenant: "attacker", took: 4 * time.Second}
				case i%4 == 0:
					return served{tenant: fmt.Sprint("t", i%50), took: fast}
				}
				return served{}
			})
			most = max(most, one.Status().Shed)
		}
		require.Zero(t, most)
	})
}

func TestWhatABacklogSaysIsHeardThoughLittleIsLetIn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := quiet(throttle.NewMemory(nil))
		cfg.Latency = 100 * time.Millisecond
		one := running(t, cfg)
		var backlog []throttle.Start
		for i := range 2000 {
			backlog = append(backlog, one.Begin(fmt.Sprint("t", i%50)))
		}
		time.Sleep(3 * time.Second) //nolint:forbidigo // The clock of the bubble is not the real one: this waits for nothing.
		// A beat of the last tenth of a second sees no old operation any more: the test must not look at that one alone.
		most := 0.0
		for i, start := range backlog {
			one.End(start, false)
			if i%5 == 0 {
				time.Sleep(10 * time.Millisecond) //nolint:forbidigo // The clock of the bubble is not the real one: this waits for nothing.
			}
			most = max(most, one.Status().Fleet.Pressure)
		}
		require.Greater(t, most, 2.5)
	})
}

func TestWhatHangsForeverIsHeardForAsLongAsItDoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := quiet(throttle.NewMemory(nil))
		cfg.Latency = 100 * time.Millisecond
		one := running(t, cfg)
		// A dependency hangs, which every second operation asks, and there is no timeout.
		hangs := func(i int) served {
			return served{fmt.Sprint("t", i%50), []time.Duration{fast, time.Hour}[i/50%2], false}
		}
		serve(one, 30, hangs)
		for second := range 300 {
			serve(one, 1, hangs)
			require.Greater(t, one.Status().Shed, 0.5, "after %d s", second)
		}
	})
}

func TestATenantThatIsShedLessThanOthersIsNotHeardMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := quiet(throttle.NewMemory(nil))
		cfg.Latency, cfg.Errors = 100*time.Millisecond, 0.02
		one := running(t, cfg)
		large := one.Apart(4, func(i int) string { return fmt.Sprint("large", i) }, "slow")
		// Two in a hundred of 1500 operations a second are those of a tenant that is slow: too little for a word. What is shed is what the large ones ask for beyond that.
		second := func() {
			for i := range 1500 {
				op := served{large[i%4], fast, false}
				if i%50 == 0 {
					op = served{"slow", slow, i%100 == 0}
				}
				if !one.Offer(op.tenant, 1, 0.1, 1).Shed {
					start := one.Begin(op.tenant)
					time.AfterFunc(op.took, func() { one.End(start, op.fails) })
				}
				if i%15 == 0 {
					time.Sleep(10 * time.Millisecond) //nolint:forbidigo // The clock of the bubble is not the real one: this waits for nothing.
				}
			}
		}
		for range 5 {
			second()
		}
		require.Zero(t, one.Status().Shed)
		stop := pressed(t, one, over(4))
		for range 20 {
			second()
		}
		require.InDelta(t, 0.9, one.Status().Shed, 0.01)
		stop()
		for range 40 {
			second()
		}
		require.Less(t, one.Status().Shed, 0.8, "it comes back when the cause has gone")
		for range 80 {
			second()
		}
		require.Zero(t, one.Status().Shed)
	})
}

// stepped returns a throttle that does not run, and what moves its clock.
func stepped(t *testing.T) (*throttle.Throttle, func(time.Duration)) {
	t.Helper()
	var passed atomic.Int64
	epoch := time.Now()
	cfg := quiet(throttle.NewMemory(nil))
	cfg.Latency, cfg.Errors = 100*time.Millisecond, 0.02
	cfg.Clock = func() time.Time { return epoch.Add(time.Duration(passed.Load())) }
	one, err := throttle.New(cfg)
	require.NoError(t, err)
	return one, func(step time.Duration) { passed.Add(int64(step)) }
}

// end ends fast operations of so many tenants.
func end(one *throttle.Throttle, tenants int) {
	for i := range tenants {
		one.End(one.Begin(fmt.Sprint("t", i)), false)
	}
}

func TestWhatWaitsWhileAWindowEndsIsJudgedByTheNext(t *testing.T) {
	t.Parallel()
	one, step := stepped(t)
	var slow []throttle.Start
	for range 40 {
		slow = append(slow, one.Begin("attacker"))
	}
	step(time.Second)
	const before = 10_000
	end(one, before)
	var ended sync.WaitGroup
	one.EndWindow(before+40, func() {
		for _, start := range slow {
			ended.Go(func() { one.End(start, true) })
		}
	})
	ended.Wait()
	end(one, 160)
	p99, failures := one.EndBeat()
	require.Less(t, p99, 100*time.Millisecond)
	require.Zero(t, failures)
}

func TestWhatRanLongBeforeTheFirstBeatIsNotHeard(t *testing.T) {
	t.Parallel()
	for _, first := range []time.Duration{70 * time.Second, 5 * time.Minute} {
		one, step := stepped(t)
		var starts []throttle.Start
		step(3 * time.Second)
		for i := range 100 {
			starts = append(starts, one.Begin(fmt.Sprint("t", i)))
		}
		step(first)
		for _, start := range starts {
			one.End(start, false)
		}
		// What they took is heard once, in a window of their own.
		one.EndBeat()
		for range 70 {
			step(time.Second)
			end(one, 200)
			p99, _ := one.EndBeat()
			require.Less(t, p99, 100*time.Millisecond)
		}
	}
}

func TestWhatRunsAtTheFirstBeatIsHeard(t *testing.T) {
	t.Parallel()
	one, step := stepped(t)
	step(3 * time.Second)
	for i := range 50 {
		one.Begin(fmt.Sprint("t", i))
	}
	step(20 * time.Second)
	p99, _ := one.EndBeat()
	require.Greater(t, p99, 15*time.Second)
}
