package state_test

import (
	"fmt"
	"strings"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// generation draws the first bytes of override records.
func (w *world) generation() string {
	return string(rune(state.OverridesVersion)) + fmt.Sprintf("%07d", w.IntN(1e7))
}

// recordID draws what addresses an override record: one of a few, so that calls meet.
func (w *world) recordID() string { return fmt.Sprint("record ", w.IntN(5)) }

// recordBody draws an override record from its end on, without when it was set.
func (w *world) recordBody() string {
	expires := int64(0)
	if !w.one(3) {
		expires = max(0, w.now+w.Int64N(40)-10)
	}
	text := "numbers and texts"
	if w.one(8) {
		// One by itself is about as many bytes as fit.
		head := state.GenerationSize + 2 + 2 + len(w.recordID()) + 2*state.DateSize
		text = strings.Repeat("x", state.MaxOverrideBytes-head+w.IntN(3)-1)
	}
	return string(state.AppendUint(nil, state.DateSize, expires)) + text
}

// records draws the override records of a tenant.
func (w *world) records() []byte {
	if w.one(5) {
		return nil
	}
	b := []byte(w.generation())
	for i := range w.IntN(4) {
		record := string(state.AppendUint(nil, 2, len("record 0"))) + fmt.Sprint("record ", i) + w.recordBody()
		record = record[:10+state.DateSize] + string(state.AppendUint(nil, state.DateSize, w.now-1)) + record[10+state.DateSize:]
		b = append(state.AppendUint(b, 2, len(record)), record...)
	}
	if w.one(20) {
		b[0]++
	}
	return b
}

// other draws a call of the scripts that judge no limits and hold no claim.
func (w *world) other(c *call) {
	if w.one(2) {
		w.heartbeat(c)
	} else if w.one(3) {
		w.usage(c)
	} else {
		w.override(c)
	}
}

// override draws a call that reads or changes the override records.
func (w *world) override(c *call) {
	c.script = "override"
	if w.one(4) {
		w.overrides = w.records()
	}
	next, id, record := "", "", ""
	switch w.IntN(4) {
	case 0:
	case 1:
		next = w.generation()
	case 2:
		next, id = w.generation(), w.recordID()
	default:
		next, id, record = w.generation(), w.recordID(), w.recordBody()
	}
	c.key(&w.overrides)
	c.Args = append(c.Args, w.numbers(int64(1+w.IntN(5)), nil, 0, nil), next, id, record)
}

// heartbeat draws a beat of an instance.
func (w *world) heartbeat(c *call) {
	c.script = "heartbeat"
	life := 1 + w.Int64N(100)
	if w.one(2) {
		w.instances = nil
		n, crowd := w.IntN(6), w.one(4)
		if crowd {
			n = state.MaxInstances + w.IntN(4)
		}
		for i := range n {
			heard := w.now
			if !crowd {
				heard += w.Int64N(2*life+3) - life - 1
			}
			w.instances = state.AppendUint(append(w.instances, instanceName(i)...), state.DateSize, heard)
		}
	}
	c.key(&w.instances)
	c.Args = append(c.Args, w.numbers(life, nil, 0, nil), instanceName(w.IntN(8)))
}

// instanceName is that of an instance, of which some can lease.
func instanceName(i int) string {
	if i%3 > 0 {
		return state.Leases + fmt.Sprintf("%05d", i)
	}
	return fmt.Sprintf("%08d", i)
}
