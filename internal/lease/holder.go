package lease

import (
	"math"
	"math/bits"
)

// Times in microseconds, and what comes of them.
const (
	Millisecond = 1000
	Second      = 1000 * Millisecond
	// Beat is how often a holder exchanges when nothing changes, and Length how long a lease is: a lost message is sent again long before.
	Beat   = Second
	Length = 2 * Second
	// drift is by which part the clock of a holder may be slower than that of the store.
	drift = 1000
	// shortest is the least time between an exchange that changed little and the one before.
	shortest = 5 * Millisecond
)

// Limit is a limit as it is leased.
type Limit struct {
	// Window says that it counts in windows of time, of which a holder has tokens. Otherwise it has a bucket of its own.
	Window bool
	// Unit is how many units one token has: 1 of a window.
	Unit int64
	// Capacity is that of the whole limit in units, and Rate what of it comes back each millisecond.
	Capacity, Rate int64
}

// part is what the holder has of a limit.
type part struct {
	capacity, rate, level int64
	// carry is what has come back of less than a unit, in millionths.
	carry int64
	// dueCapacity and dueRate are what it should have no more than.
	dueCapacity, dueRate int64
	// closes is when its window ends by the clock of the holder, and window by that of the store.
	closes, window int64
	// left is what was left for all, when the store said so last.
	left int64
	// largest and wanted are the largest amount it was asked for of late, and one that only the rest can have.
	largest, wanted int64
	missed          int64
	demand          demand
}

// Holder is what one instance leases of the limits of one owner. It is made by [New], and whoever owns it sees to it that nobody uses it at the same
// time.
type Holder struct {
	limits []Limit
	parts  []part
	// name makes the names of holders.
	name func() [8]byte
	id   [8]byte
	// number is that of the exchange begun last.
	number int64
	// deadline is when the lease ends, and updated the time of the levels.
	deadline, updated int64
	// pending says that an exchange is under way, which is message.
	pending bool
	message Message
	holders int
	// interval is the time until the next beat, and began when the last exchange did.
	interval, began int64
	// gap is how long nobody asks for what is missing, after an exchange that brought nothing.
	gap       int64
	contended bool
}

// New returns a holder that holds nothing yet. Each call of name returns another name.
func New(limits []Limit, name func() [8]byte) *Holder {
	h := &Holder{limits: limits, parts: make([]part, len(limits)), name: name}
	h.drop(0)
	return h
}

// drop forgets everything it holds: it begins anew, under another name.
func (h *Holder) drop(now int64) {
	h.id, h.number, h.pending, h.contended = h.name(), 0, false, false
	h.updated, h.deadline, h.interval, h.gap = now, now, Beat/8, shortest
	for i := range h.parts {
		p := &h.parts[i]
		p.capacity, p.rate, p.level, p.carry, p.closes, p.window = 0, 0, 0, 0, 0, 0
		p.dueCapacity, p.dueRate = math.MaxInt64, math.MaxInt64
	}
}

// Alive reports whether it holds something at a time.
func (h *Holder) Alive(now int64) bool { return now < h.deadline }

// refill brings the levels to a time.
func (h *Holder) refill(now int64) {
	elapsed := now - h.updated
	if elapsed <= 0 {
		return
	}
	h.updated = now
	for i := range h.parts {
		p := &h.parts[i]
		if h.limits[i].Window {
			if p.closes <= now {
				p.level = 0
			}
			continue
		}
		if p.rate == 0 || p.level >= p.capacity {
			continue
		}
		if missing := p.capacity - p.level; elapsed/Millisecond >= missing/p.rate*2+2 {
			p.level, p.carry = p.capacity, 0
			continue
		}
		// Of each millisecond a thousandth does not count.
		high, low := bits.Mul64(uint64(p.rate*(drift-1)), uint64(elapsed))
		low, more := bits.Add64(low, uint64(p.carry), 0)
		come, rest := bits.Div64(high+more, low, Millisecond*drift)
		p.level, p.carry = p.level+int64(come), int64(rest)
		if p.level >= p.capacity {
			p.level, p.carry = p.capacity, 0
		}
	}
}

// Take takes amounts of the limits, in tokens, all or none. clock is read after the debit. It returns false where it holds too little, or holds it no
// longer: the store has to be asked then, or an exchange. It allocates nothing.
func (h *Holder) Take(now int64, amounts []int64, clock func() int64) bool {
	h.refill(now)
	closes := h.deadline
	enough := now < h.deadline
	for i := range h.parts {
		p := &h.parts[i]
		units := amounts[i] * h.limits[i].Unit
		p.demand.offer(now, units)
		p.largest = max(p.largest, units)
		if amounts[i] > 0 && h.limits[i].Window {
			closes = min(closes, p.closes)
		}
		enough = enough && p.level >= units
	}
	if !enough {
		for i := range h.parts {
			h.parts[i].missed = max(h.parts[i].missed, amounts[i]*h.limits[i].Unit)
		}
		return false
	}
	for i := range h.parts {
		h.parts[i].level -= amounts[i] * h.limits[i].Unit
	}
	return clock() < closes
}

// Want says that only the rest of the store can have amounts, and has not: what is left for all is kept for them for a while.
func (h *Holder) Want(amounts []int64) {
	for i := range h.parts {
		h.parts[i].wanted = max(h.parts[i].wanted, amounts[i]*h.limits[i].Unit)
	}
}

// PutBack returns amounts that were taken and not needed, if the lease still holds under which they were. Mark is [Holder.Mark] of that time.
func (h *Holder) PutBack(now int64, mark [8]byte, amounts []int64) {
	if h.id != mark || now >= h.deadline {
		return
	}
	h.refill(now)
	for i := range h.parts {
		p := &h.parts[i]
		if h.limits[i].Window && p.closes <= now {
			continue
		}
		p.level += amounts[i] * h.limits[i].Unit
		if !h.limits[i].Window {
			p.level = min(p.level, p.capacity)
		}
	}
}

// Mark tells what is held now from what is held after everything was lost.
func (h *Holder) Mark() [8]byte { return h.id }

// Level returns how many tokens of a limit it has at a time, and how many were left for all by what the store said last.
func (h *Holder) Level(limit int, now int64) (tokens, left int64) {
	h.refill(now)
	p, unit := &h.parts[limit], h.limits[limit].Unit
	if now < h.deadline {
		tokens = p.level / unit
	}
	return tokens, p.left / unit
}

// Holders is how many hold something of the limits, by what the store said last.
func (h *Holder) Holders() int { return h.holders }

// Lose forgets what it holds, as after the end of its lease: what nobody has answered until then is not waited for any more.
func (h *Holder) Lose(now int64) { h.drop(now) }

// Used reports whether it has asked for anything, or holds something.
func (h *Holder) Used() bool { return h.number > 0 }
