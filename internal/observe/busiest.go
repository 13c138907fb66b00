package observe

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sync/atomic"
)

// counters find the most frequent ids in a fixed number of counters, by the space-saving algorithm (Metwally, Agrawal, El
// Abbadi: Efficient Computation of Frequent and Top-k Elements in Data Streams, 2005) with random admission (Ben Basat,
// Einziger, Friedman, Kassner, INFOCOM 2017).
//
// An id has its counter in one of many rows, where a newcomer takes over the smallest: not each time, but once in as many as
// that has counted. Else a million ids that come once would raise all counters and push out who comes often. It goes on from
// what the counter has, of which what was counted since is surely its own.
//
// They are counted by atomic operations alone. Of two that take over one counter at once one is not counted.
type counters []counterRow

// countersOfRow is how many counters a row has. There are as many rows as top places or more, so that as many
// candidates compete for each place.
const countersOfRow = 8

type counterRow [countersOfRow]counter

// counter has an id and its tally, which is written first and read last: what was counted of another is never
// taken for its own.
type counter struct{ id, tally atomic.Uint64 }

const (
	// counted is one in a tally, and own is one that is surely of the id: so many are in the lower 32 bits.
	counted = 1 << 32
	own     = 1
	// shareOfPlace is the share of one place in what all have, below which a tenant is not busy: one in 128.
	shareOfPlace = 128
)

// newCounters returns counters for a number of top places, none for none.
func newCounters(top int) counters {
	if top == 0 {
		return nil
	}
	rows := 1
	for rows < top {
		rows *= 2
	}
	return make(counters, rows)
}

// count adds one to the counter of an id.
func (c counters) count(id uint64) {
	row := &c[id%uint64(len(c))]
	smallest, least := 0, row[0].tally.Load()
	for i := range row {
		if row[i].id.Load() == id {
			row[i].tally.Add(counted + own)
			return
		}
		if tally := row[i].tally.Load(); tally < least {
			smallest, least = i, tally
		}
	}
	n := least/counted + 1
	//nolint:gosec // a draw that could be foreseen does no harm
	if n > 1 && rand.Uint64N(n) > 0 {
		return
	}
	if row[smallest].tally.CompareAndSwap(least, n*counted+own) {
		row[smallest].id.Store(id)
	}
}

// halve halves all counters so many times.
func (c counters) halve(times int) {
	for r := range c {
		for i := range c[r] {
			tally := &c[r][i].tally
			was := tally.Load()
			for !tally.CompareAndSwap(was, was/counted>>times*counted+was%counted>>times) {
				// What is counted meanwhile is not lost.
				was = tally.Load()
			}
		}
	}
}

// busiest returns the ids of which most was surely counted, at most so many, and how many of these are busy enough for a name
// that they do not have. Who came once is not, nor who has a small share of what all have: where nobody was busy for a
// moment, many such would take names for an hour.
func (c counters) busiest(most int) (ids []uint64, busy int) {
	type of struct{ id, own uint64 }
	var all []of
	sum := uint64(0)
	for r := range c {
		for i := range c[r] {
			id, tally := c[r][i].id.Load(), c[r][i].tally.Load()
			if n := tally % counted; n > 0 {
				all = append(all, of{id, n})
				sum += n
			}
		}
	}
	slices.SortFunc(all, func(a, b of) int { return cmp.Compare(b.own, a.own) })
	fewest := max(2, sum/shareOfPlace/uint64(max(1, len(c))))
	ids = make([]uint64, min(most, len(all)))
	for i := range ids {
		ids[i] = all[i].id
		if all[i].own >= fewest {
			busy++
		}
	}
	return ids, busy
}
