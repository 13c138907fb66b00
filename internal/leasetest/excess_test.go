package leasetest_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// verdict is what became of an operation.
type verdict int64

const (
	refused verdict = iota
	admitted
	failed
	blocked
)

// operation is what a process has noted of one: when it looked at the clock before it was decided and afterwards, in nanoseconds of the clock that all
// processes share, and how many points it asked for, or which tenant it was of.
type operation struct {
	before, after int64
	cost          int64
	is            verdict
}

// budget is a bucket: so many points at once, and so many each second.
type budget struct{ capacity, refill int64 }

const second = 1_000_000_000

// excess returns by how much what was admitted in some interval exceeds what a bucket admits in it, in points, rounded up, or zero. An operation counts
// if all of it lies in the interval: it was debited between the two moments that are noted, so that this accuses nobody wrongly. Everything is of whole
// numbers.
//
// With the operations in the order of their ends, each adds its cost to all intervals that begin no later than it does; the tree has the
// largest of them.
func (b budget) excess(all []operation) int64 {
	var taken []operation
	for _, o := range all {
		if o.is == admitted {
			taken = append(taken, o)
		}
	}
	if len(taken) == 0 {
		return 0
	}
	slices.SortFunc(taken, func(a, b operation) int { return cmp.Compare(a.before, b.before) })
	first := taken[0].before
	starts := make([]int64, len(taken))
	t := newTree(len(taken))
	for i, o := range taken {
		starts[i] = o.before
		t.add(i, i+1, b.refill*(o.before-first))
	}
	byEnd := make([]int, len(taken))
	for i := range byEnd {
		byEnd[i] = i
	}
	slices.SortFunc(byEnd, func(i, j int) int { return cmp.Compare(taken[i].after, taken[j].after) })
	most := int64(0)
	for _, i := range byEnd {
		o := &taken[i]
		last, _ := slices.BinarySearch(starts, o.before+1)
		t.add(0, last, o.cost*second)
		// No interval begins here before this one: it would end before it begins.
		t.add(i, i+1, -closed)
		most = max(most, t.most()-b.refill*(o.after-first)-b.capacity*second)
	}
	return (most + second - 1) / second
}

// closed is less than the value of any interval.
const closed = math.MinInt64 / 4

// tree has a number for each place, to which something can be added in a range of places, and knows the largest.
type tree struct {
	size      int
	more, max []int64
}

func newTree(places int) *tree {
	t := &tree{size: 1}
	for t.size < places {
		t.size *= 2
	}
	t.more, t.max = make([]int64, 2*t.size), make([]int64, 2*t.size)
	for i := range t.max {
		t.max[i] = closed
	}
	for i := range t.size {
		t.more[t.size+i] = closed
	}
	return t
}

func (t *tree) most() int64 { return t.max[1] }

// add adds to the places from one to before another.
func (t *tree) add(from, to int, n int64) { t.addBelow(1, 0, t.size, from, to, n) }

func (t *tree) addBelow(node, begins, ends, from, to int, n int64) {
	if to <= begins || ends <= from {
		return
	}
	if from <= begins && ends <= to {
		t.more[node] += n
		t.max[node] += n
		return
	}
	half := (begins + ends) / 2
	t.addBelow(2*node, begins, half, from, to, n)
	t.addBelow(2*node+1, half, ends, from, to, n)
	t.max[node] = t.more[node] + max(t.max[2*node], t.max[2*node+1])
}

// used returns what was admitted from a moment on, and what one bucket would have admitted of the same operations, in points.
func (b budget) used(all []operation, from int64) (got, could int64) {
	sorted := slices.Clone(all)
	slices.SortFunc(sorted, func(a, b operation) int { return cmp.Compare(a.before, b.before) })
	full := b.capacity * second
	level, at := full, int64(0)
	for i, o := range sorted {
		if i > 0 {
			level = min(full, level+b.refill*(o.before-at))
		}
		at = o.before
		if level >= o.cost*second {
			level -= o.cost * second
			if o.before >= from {
				could += o.cost
			}
		}
		if o.is == admitted && o.before >= from {
			got += o.cost
		}
	}
	return got, could
}

func TestTheExcessIsThatOfTheWorstInterval(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	b := budget{capacity: 9, refill: 3}
	exceeded := 0
	for range 500 {
		var all []operation
		for range 1 + random.IntN(30) {
			before := random.Int64N(8) * second / 2
			all = append(all, operation{before, before + random.Int64N(4)*second/2, random.Int64N(9), verdict(random.IntN(3))})
		}
		worst := int64(0)
		for _, from := range all {
			for _, to := range all {
				sum := -b.capacity*second - b.refill*(to.after-from.before)
				for _, o := range all {
					if o.is == admitted && o.before >= from.before && o.after <= to.after {
						sum += o.cost * second
					}
				}
				if to.after >= from.before {
					worst = max(worst, sum)
				}
			}
		}
		if worst > 0 {
			exceeded++
		}
		require.Equal(t, (worst+second-1)/second, b.excess(all), "%v", all)
	}
	require.Greater(t, exceeded, 50)
}

func TestOneBucketUsesWhatOneBucketAdmits(t *testing.T) {
	t.Parallel()
	b := budget{capacity: 10, refill: 10}
	var all []operation
	level := int64(10 * second)
	for i := range int64(1000) {
		level = min(10*second, level+10*second/20)
		o := operation{i * second / 20, i*second/20 + 1, 1 + i%3, refused}
		if level >= o.cost*second {
			level -= o.cost * second
			o.is = admitted
		}
		all = append(all, o)
	}
	got, could := b.used(all, 10*second)
	require.Equal(t, could, got)
	require.Greater(t, got, int64(390))
	require.Zero(t, b.excess(all))
	all[500].is, all[500].cost = admitted, 50
	require.NotZero(t, b.excess(all))
}
