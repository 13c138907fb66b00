package lease_test

import (
	"container/heap"
	"flag"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/internal/lease"
	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// modelSteps is how many operations and messages the model has: `make test-long` asks for a million and more.
var modelSteps = flag.Int("steps", 60_000, "how many steps the model of leases takes in all")

// entries reads what is stored of the owner.
func (f *fleet) entries() state.Owner {
	o, err := state.ReadOwner(f.values[0])
	if err != nil {
		f.failed("%v", err)
	}
	return o
}

func (f *fleet) windowEnd(limit int) int64 {
	o := f.entries()
	if e := o.Find(f.rules.All[limit].ID, limit); e != nil {
		return e.End
	}
	return 0
}

// consistent looks at whether all parts together are no more than the limit: what is held of it, what comes back, and the levels.
func (f *fleet) consistent() {
	o := f.entries()
	for i := range f.limits {
		l := &f.limits[i]
		if l.Window {
			continue
		}
		var capacity, rate, level int64
		for _, n := range f.all {
			if !n.dead && n.holder.Alive(n.clock()) {
				has := n.holder.Holds(i, n.clock())
				capacity, rate, level = capacity+has.Capacity, rate+has.Rate, level+has.Level
			}
		}
		var held state.Leased
		debt := int64(0)
		if e := o.Find(f.rules.All[i].ID, i); e != nil {
			now := e.At(f.store())
			if debt = now.Debt; e.Held != nil {
				held = *e.Held
			} else {
				debt *= l.Unit / e.P
			}
		}
		if held.Capacity > l.Capacity || held.Rate > l.Rate || capacity > held.Capacity || rate > held.Rate {
			f.failed("held of limit %d: %d and %d of %d and %d, and there are %d and %d", i, capacity, rate, held.Capacity, held.Rate, l.Capacity, l.Rate)
		}
		if rest := l.Capacity - held.Capacity - debt; level+max(0, rest) > l.Capacity {
			f.failed("limit %d: a level of %d in all, %d of them held, of a capacity of %d", i, level+rest, level, l.Capacity)
		} else if spent := f.truth[i].spentAt(f.now, l.Rate); f.step == 0 && f.offset == 0 && level+max(0, rest)+spent > l.Capacity+l.Unit {
			f.failed("limit %d: a level of %d in all, and %d are spent of a capacity of %d", i, level+max(0, rest), spent, l.Capacity)
		}
	}
}

// run lets time pass until so many steps have been taken, or something is wrong.
func (f *fleet) run(steps int) error {
	f.load()
	for _, i := range f.all {
		f.after(f.Int64N(50), i.beat)
	}
	f.trouble()
	for f.fail == nil && f.steps < steps {
		_ = f.goOn()
	}
	return f.fail
}

// goOn has the next thing happen.
func (f *fleet) goOn() error {
	next := heap.Pop(&f.queue).(happening)
	f.now = max(f.now, next.at)
	next.do()
	f.steps++
	return f.fail
}

// load is what clients ask for: of some instances more than of others.
func (f *fleet) load() {
	total := 0.0
	for _, w := range f.weights {
		total += w
	}
	at := f.Float64() * total
	for i, w := range f.weights {
		if at -= w; at < 0 {
			f.all[i].ask()
			break
		}
	}
	// The rest of a millisecond is kept, so that as much comes as is meant.
	f.rest += f.ExpFloat64() / f.rate
	whole := int64(f.rest)
	f.rest -= float64(whole)
	f.after(whole, f.load)
}

// move gives most of the load to another instance from time to time.
func (f *fleet) move() {
	f.Shuffle(len(f.weights), func(i, j int) { f.weights[i], f.weights[j] = f.weights[j], f.weights[i] })
	f.after(5000, f.move)
}

func (i *instance) ask() {
	f := i.f
	cost := []int64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 5, 5, 5, 5, 5, 50}[f.IntN(20)]
	amounts := make([]int64, len(f.limits))
	for k := range amounts {
		amounts[k] = cost
	}
	f.ideal.offer(f.now-1<<41, &f.limits[0], cost)
	if f.mixed && f.IntN(50) == 0 {
		f.central(amounts)
		return
	}
	i.decide(amounts)
}

// beat looks every 50 ms at whether an exchange is due.
func (i *instance) beat() {
	f := i.f
	if !i.dead && f.now >= i.paused && i.clock() >= i.holder.Due(i.clock()) && i.holder.Used() {
		i.exchange(false)
	}
	f.after(50, i.beat)
}

// trouble makes instances and clocks fail, each from time to time.
func (f *fleet) trouble() {
	every := func(ms int64, what func(*instance)) {
		if ms == 0 {
			return
		}
		var again func()
		again = func() {
			what(f.all[f.IntN(len(f.all))])
			f.after(ms/2+f.Int64N(ms), again)
		}
		f.after(f.Int64N(ms), again)
	}
	if f.mixed {
		f.after(f.Int64N(5000), f.move)
	}
	every(f.crash, func(i *instance) {
		if f.IntN(3) == 0 {
			// It leaves in order, and another one begins.
			i.exchange(true)
		}
		i.begin()
	})
	every(f.pause, func(i *instance) { i.paused = f.now + 200 + f.Int64N(6000) })
	every(f.cut, func(i *instance) { i.cut = f.now + 500 + f.Int64N(5000) })
	every(f.step, func(*instance) {
		step := []int64{10, 40, 60, 500, 5000}[f.IntN(5)]
		if f.IntN(3) == 0 {
			step = -step
		}
		f.offset += step
		if f.IntN(2) == 0 {
			f.setRight(step)
		}
	})
	every(f.dip, func(*instance) {
		if f.offset < 0 || f.now-1<<41 < 1000 {
			// What is new while the clock is behind does not know that.
			return
		}
		// By as much as a clock that was set back is told from a date that is wrong.
		step := -100 - f.Int64N(4900)
		f.offset += step
		f.setRight(step)
	})
}

// setRight takes a step of the clock of the store back before a lease has passed: who asked for nothing meanwhile has seen no step.
func (f *fleet) setRight(step int64) {
	f.after(f.Int64N(lease.Length/lease.Millisecond), func() { f.offset -= step })
}

func tokens(id uint16, capacity, perSecond int64) state.Rule {
	// Lowest terms of perSecond/1000 a millisecond.
	p, r := int64(1000), perSecond
	for d := int64(2); d <= p; d++ {
		for p%d == 0 && r%d == 0 {
			p, r = p/d, r/d
		}
	}
	return state.NewRule(state.Rule{ID: id, Tag: state.TokenBucket, P: p, R: r, Capacity: capacity})
}

func window(id uint16, tag state.Tag, capacity, length int64) state.Rule {
	r := state.Rule{ID: id, Tag: tag, R: length, P: 1, Capacity: capacity}
	if tag == state.SlidingWindow {
		r.P = length
	}
	return state.NewRule(r)
}

// situations draws limits, and how much is asked for of them.
func situation(seed uint64, x faults) *fleet {
	f := newFleet(seed, 1, []state.Rule{tokens(1, 1, 1)}, x)
	perSecond := []int64{3000, 30_000}[f.IntN(2)]
	rules := []state.Rule{tokens(1, []int64{perSecond, 4 * perSecond, 60 * perSecond}[f.IntN(3)], perSecond)}
	switch f.IntN(4) {
	case 0:
		// A clock that steps ends windows before their time, as it does without leases.
		x.step, x.dip = 0, 0
		rules = append(rules, window(2, state.FixedWindow, 20*perSecond, 10_000))
	case 1:
		rules = append(rules, tokens(2, perSecond, 2*perSecond))
	}
	load := 0.5 + 2.5*f.Float64()
	f = newFleet(seed, 3+f.IntN(6), rules, x)
	f.rate, f.mixed = load*float64(perSecond)/1000/meanCost, true
	return f
}

// meanCost is how many tokens an operation costs on average.
const meanCost = (14.0*1 + 5*5 + 50) / 20

var everything = faults{loss: 0.05, crash: 4000, pause: 3000, cut: 3000, step: 5000, late: 3000, drift: true}

func TestNoMoreIsAdmittedThanTheLimitInAnyIntervalWhateverIsLostRepeatedLateOrStopped(t *testing.T) {
	t.Parallel()
	const each = 20_000
	for seed := range uint64(*modelSteps / each) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			f := situation(seed, everything)
			require.NoError(t, f.run(each))
			require.Positive(t, f.admitted)
			t.Logf("%d admitted, %d refused, %d calls", f.admitted, f.refused, f.calls)
		})
	}
}

func TestAClockOfTheStoreThatStepsBackAndOnAgainTakesNothingFromWhoStillHoldsIt(t *testing.T) {
	t.Parallel()
	const each = 20_000
	for seed := range uint64(*modelSteps / each) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			x := faults{dip: 1500}
			if seed%2 == 0 {
				// What is lost otherwise hides what comes back twice, and without it nobody loses a lease.
				x = everything
				x.step, x.dip = 0, 1500
			}
			f := situation(seed, x)
			require.NoError(t, f.run(each))
			require.Positive(t, f.admitted)
		})
	}
}

func TestAFleetUsesWhatOneBucketWould(t *testing.T) {
	t.Parallel()
	const perSecond = 50_000
	for name, load := range map[string]struct {
		share   float64
		weights func(i int) float64
		moves   bool
	}{
		"even 0.9":                 {0.9, func(int) float64 { return 1 }, false},
		"even 1.5":                 {1.5, func(int) float64 { return 1 }, false},
		"Zipf 0.9":                 {0.9, func(i int) float64 { return 1 / float64(i+1) }, false},
		"Zipf 1.5":                 {1.5, func(i int) float64 { return 1 / float64(i+1) }, false},
		"60 % on one, moving, 0.9": {0.9, mostOnOne, true},
		"60 % on one, moving, 1.5": {1.5, mostOnOne, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(7, 8, []state.Rule{tokens(1, perSecond, perSecond)}, faults{})
			f.rate = load.share * perSecond / 1000 / meanCost
			for i := range f.weights {
				f.weights[i] = load.weights(i)
			}
			if load.moves {
				f.after(0, f.move)
			}
			require.NoError(t, f.run(400_000))
			used := float64(f.used) / float64(f.ideal.used)
			t.Logf("%.2f %% of what one bucket admits, %.1f calls a second", 100*used, float64(f.calls)*1000/float64(f.now-1<<41))
			require.GreaterOrEqual(t, used, 0.99)
		})
	}
}

// mostOnOne gives the first of eight instances 60 % of the load.
func mostOnOne(i int) float64 {
	if i == 0 {
		return 0.6
	}
	return 0.4 / 7
}

// Who dies has what it holds until nobody can say any more that it lives: a lease, and until the next exchange of somebody who has seen that.
func TestWhatADeadHolderHadComesBack(t *testing.T) {
	t.Parallel()
	const perSecond = 30_000
	for _, instances := range []int{2, 8} {
		var all []int64
		for seed := range uint64(10) {
			f := newFleet(seed, instances, []state.Rule{tokens(1, perSecond, perSecond)}, faults{})
			f.rate = 0.9 * perSecond / 1000 / meanCost
			require.NoError(t, f.run(8000))
			require.EqualValues(t, instances, f.held()[0])
			f.all[0].dead = true
			died := f.now
			for f.held()[0] == int64(instances) && f.now < died+20_000 {
				require.NoError(t, f.goOn())
			}
			all = append(all, f.now-died)
		}
		slices.Sort(all)
		t.Logf("of %d instances: after %d to %d ms, %d in the middle", instances, all[0], all[len(all)-1], all[len(all)/2])
		require.LessOrEqual(t, all[len(all)-1], int64(4500))
	}
}
