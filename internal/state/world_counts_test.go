package state_test

import (
	"strings"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// count adds the keys of what is counted to a call, and returns what its numbers end with, its arguments, and what its extra number is
// more. The hour is that of a date, or of a take now and then another one.
func (w *world) count(c *call, date int64, takes bool) (first string, args []string, extra int64) {
	if w.one(2) {
		return "", nil, 0
	}
	hour := date / state.CountHour * state.CountHour
	if takes && w.one(40) {
		// At the edges of an hour.
		hour = date - state.CountHour*w.Int64N(2) + w.Int64N(3) - 1
	}
	if hour != w.countsHour || w.one(10) {
		w.countsHour, w.counts = hour, [mostCounts][]byte{}
	}
	n := 1 + w.IntN(mostCounts)
	for i := range n {
		w.touchCount(i)
		c.key(&w.counts[i])
		name := ""
		switch {
		case i == 0 && w.one(2):
			name = state.CountName(state.CountTenant, "a tenant|"+strings.Repeat("x", w.IntN(30)))
		case i == 1:
			name = state.CountName(state.CountUnit, "exports")
		case i == 2:
			// So long that it finds no room at times.
			name = state.CountName(state.CountField, "Query.products"+strings.Repeat("s", w.IntN(300)))
		}
		if listed := w.counts[0]; i == 1 && w.counts[1] == nil && listed != nil && w.one(4) {
			// There is just room for the name, or just none.
			w.counts[0] = append(listed, make([]byte, max(0, state.MaxCount-len(listed)-len(name)+w.IntN(3)-1))...)
			c.Values[len(c.Values)-2] = w.counts[0]
		}
		numbers := state.CountNumbers{Charged: w.counted(), Back: [2]int64{w.near(4, 0), w.near(4, 0)}}
		var mark [state.MarkSize]byte
		mark[0], mark[1] = state.CountVersion, byte(w.Uint32())
		at := hour
		if !takes {
			at = date
		}
		if i == 0 && takes {
			numbers.Back = [2]int64{}
		}
		if i == 0 {
			first = string(state.AppendFirstCount(nil, &numbers, at, mark, name))
			continue
		}
		args = append(args, string(state.AppendCount(nil, &numbers, name)))
	}
	return first, args, int64(n) * state.Counted
}

// touchCount puts something under a key, now and then, that nobody wrote.
func (w *world) touchCount(i int) {
	if w.one(40) {
		w.counts[i] = make([]byte, w.IntN(2000))
		for j := range w.counts[i] {
			w.counts[i][j] = byte(w.Uint32())
		}
	}
}

// counted draws two numbers, at times so large that they end at the largest.
func (w *world) counted() [2]int64 {
	if w.one(20) {
		return [2]int64{state.MaxExact, w.near(2, 0)}
	}
	return [2]int64{w.near(1000, 0, 1), w.near(4, 0, 1)}
}

// usage draws a call that reads what was counted, or forgets it.
func (w *world) usage(c *call) {
	c.script = "usage"
	extra := w.Int64N(2)
	c.Args = append(c.Args, w.numbers(extra, nil, 0, nil))
	for i := range 1 + w.IntN(mostCounts) {
		c.key(&w.counts[i])
		if extra == 1 {
			c.Args = append(c.Args, string(w.counts[i]))
		}
	}
	if extra == 1 && w.one(3) {
		c.Args[1] += "x"
	}
}
