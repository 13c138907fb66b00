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
	// leastParts is how many amounts a limit has to have for one of them to be demand of a part that is smaller: a part of two of them is left to each
	// of three holders. Only the store can have what is larger: who asks for that and is refused draws nothing from those who ask for less.
	leastParts = 8
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
	// Lenient says that it refuses nothing, and is not charged what it does not have.
	Lenient bool
}

// part is what the holder has of a limit.
type part struct {
	capacity, rate, level int64
	// held is what was taken and may be declined: it is room that what comes back does not fill.
	held int64
	// surplus is what was put back and found no room here. The store gets it with the next exchange.
	surplus int64
	// carry is what has come back of less than a unit, in millionths.
	carry int64
	// dueCapacity and dueRate are what it should have no more than.
	dueCapacity, dueRate int64
	// closes is when its window ends by the clock of the holder, and window by that of the store.
	closes, window int64
	// turn is that of the holder since which it is this window.
	turn uint32
	// left is how many tokens were left for all, when the store said so last.
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
	// turn counts what became another window.
	turn uint32
	// number is that of the exchange begun last.
	number int64
	// deadline is when the lease ends, and updated the time of the levels.
	deadline, updated int64
	// pending says that an exchange is under way, which is message.
	pending bool
	message Message
	holders int
	// heard is when the last exchange was answered, in milliseconds.
	heard int64
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
	h.id, h.number, h.heard, h.pending, h.contended = h.name(), 0, 0, false, false
	h.updated, h.deadline, h.interval, h.gap = now, now, Beat/8, shortest
	for i := range h.parts {
		p := &h.parts[i]
		p.capacity, p.rate, p.level, p.surplus, p.held, p.carry, p.closes, p.window = 0, 0, 0, 0, 0, 0, 0, 0
		p.dueCapacity, p.dueRate = math.MaxInt64, math.MaxInt64
	}
}

// Alive reports whether it holds something at a time.
func (h *Holder) Alive(now int64) bool { return now < h.deadline }

// refill brings the levels to a time.
func (h *Holder) refill(now int64) {
	if now > h.updated {
		h.accrue(now, now-h.updated)
	}
}

// accrue brings the levels to a time that is later than that of the levels by elapsed.
func (h *Holder) accrue(now, elapsed int64) {
	h.updated = now
	for i := range h.parts {
		p := &h.parts[i]
		if h.limits[i].Window {
			if p.closes <= now {
				p.level = 0
			}
			continue
		}
		full := p.capacity - p.held
		if p.rate == 0 || p.level >= full {
			continue
		}
		if missing := full - p.level; elapsed >= 2*Millisecond && elapsed/Millisecond >= missing/p.rate*2+2 {
			p.level, p.carry = full, 0
			continue
		}
		// Of each millisecond a thousandth does not count.
		high, low := bits.Mul64(uint64(p.rate*(drift-1)), uint64(elapsed))
		low, more := bits.Add64(low, uint64(p.carry), 0)
		come, rest := bits.Div64(high+more, low, Millisecond*drift)
		p.level, p.carry = p.level+int64(come), int64(rest)
		if p.level >= full {
			p.level, p.carry = full, 0
		}
	}
}

// Take takes amounts of the limits, in tokens, all or none; those that are lenient and have too little are short, by a bit for each of the first 64,
// and left as they are. clock is read after the debit. It returns false where it holds too little, or holds it no longer: the store has to be
// asked then, or an exchange. It allocates nothing.
func (h *Holder) Take(now int64, amounts []int64, clock func() int64) (short uint64, ok bool) {
	h.refill(now)
	closes := h.deadline
	ok = now < h.deadline
	for i := range h.parts {
		p, l := &h.parts[i], &h.limits[i]
		units := amounts[i] * l.Unit
		if units <= max(p.capacity, p.level, l.Capacity/leastParts) {
			p.demand.offer(now, units)
		}
		p.largest = max(p.largest, units)
		if amounts[i] > 0 && l.Window {
			closes = min(closes, p.closes)
		}
		if p.level >= units {
			continue
		}
		p.missed = max(p.missed, units)
		if short |= 1 << i; !l.Lenient {
			ok = false
		}
	}
	if !ok {
		return short, false
	}
	for i := range h.parts {
		if short>>i&1 == 0 {
			h.parts[i].level -= amounts[i] * h.limits[i].Unit
		}
	}
	return short, clock() < closes
}

// Under sets the limits to others of the same units: what it holds stays, and what it is due changes with its next exchange.
func (h *Holder) Under(limits []Limit) { h.limits = limits }

// Want says that only the rest of the store can have amounts, and has not: what is left for all is kept for them for a while.
func (h *Holder) Want(amounts []int64) {
	for i := range h.parts {
		h.parts[i].wanted = max(h.parts[i].wanted, amounts[i]*h.limits[i].Unit)
	}
}

// PutBack returns amounts that were taken and not needed, if the lease still holds under which they were, and of a window as long as it is that of then. Mark
// is [Holder.Mark] of that time. What there is no room for is the store's with the next exchange: the part may have been filled from there meanwhile.
func (h *Holder) PutBack(now int64, mark Mark, amounts []int64) {
	if h.id != mark.id || now >= h.deadline {
		return
	}
	h.refill(now)
	for i := range h.parts {
		p := &h.parts[i]
		if h.limits[i].Window && (p.closes <= now || p.turn > mark.turn) {
			continue
		}
		p.level += amounts[i] * h.limits[i].Unit
		if over := p.level - p.capacity; over > 0 && !h.limits[i].Window {
			p.level, p.surplus = p.capacity, min(p.surplus+over, h.limits[i].Capacity)
		}
	}
}

// Hold says that amounts that were taken may be declined: until [Holder.Spend] or [Holder.Decline] says what becomes of them, their room stays free. So
// whatever comes back meanwhile, declining them makes no more than there would have been without them.
func (h *Holder) Hold(amounts []int64) {
	for i := range h.parts {
		if !h.limits[i].Window {
			h.parts[i].held += amounts[i] * h.limits[i].Unit
		}
	}
}

// Spend says that amounts that were held are spent. Mark is [Holder.Mark] of when they were taken.
func (h *Holder) Spend(now int64, mark Mark, amounts []int64) {
	if h.id != mark.id {
		return
	}
	h.refill(now)
	for i := range h.parts {
		if !h.limits[i].Window {
			h.parts[i].held = max(0, h.parts[i].held-amounts[i]*h.limits[i].Unit)
		}
	}
}

// Decline returns amounts that were held as if they had never been taken, if the lease still holds under which they were. They are no demand either: who is refused
// by somebody else draws nothing here that others could use.
func (h *Holder) Decline(now int64, mark Mark, amounts []int64) {
	if h.id == mark.id {
		for i := range h.parts {
			h.parts[i].demand.withdraw(now, amounts[i]*h.limits[i].Unit)
		}
	}
	h.Spend(now, mark, amounts)
	h.PutBack(now, mark, amounts)
}

// Mark tells what is held at a time from what is held after everything was lost, and windows of that time from later ones. The zero value is that of no holder.
type Mark struct {
	id   [8]byte
	turn uint32
}

// Same reports whether nothing was lost between two marks.
func (m Mark) Same(other Mark) bool { return m.id == other.id }

// Mark is that of now.
func (h *Holder) Mark() Mark { return Mark{h.id, h.turn} }

// Level is what a holder knows of a limit.
type Level struct {
	// Tokens are those that it has, and Left those that were left for all by what the store said last.
	Tokens, Left int64
	// Window is when the window ends that it has something of, by the clock of the store, or zero.
	Window int64
}

// Level returns that of a limit at a time.
func (h *Holder) Level(limit int, now int64) Level {
	h.refill(now)
	p := &h.parts[limit]
	l := Level{Left: p.left, Window: p.window}
	if now < h.deadline {
		l.Tokens = p.level / h.limits[limit].Unit
	}
	return l
}

// Capacity returns how many tokens of a limit it can have at once, at a time.
func (h *Holder) Capacity(limit int, now int64) int64 {
	if now >= h.deadline {
		return 0
	}
	return h.parts[limit].capacity / h.limits[limit].Unit
}

// Wait returns how long it takes until it has an amount of tokens of a limit by what comes back to it, in milliseconds, if nothing else is taken: a beat
// where that is never, because the store has to be asked.
func (h *Holder) Wait(limit int, now, amount int64) int64 {
	h.refill(now)
	p, units := &h.parts[limit], amount*h.limits[limit].Unit
	switch missing := units - p.level; {
	case missing <= 0:
		return 0
	case p.rate == 0 || units > p.capacity:
		return Beat / Millisecond
	default:
		return missing/p.rate + 1
	}
}

// Spent says how much is left for all of a limit after the store was asked by itself.
func (h *Holder) Spent(limit int, left int64) {
	h.parts[limit].left = min(h.parts[limit].left, left)
}

// Holders is how many hold something of the limits, by what the store said last.
func (h *Holder) Holders() int { return h.holders }

// Lose forgets what it holds, as after the end of its lease: what nobody has answered until then is not waited for any more.
func (h *Holder) Lose(now int64) { h.drop(now) }

// Used reports whether it has asked for anything, or holds something.
func (h *Holder) Used() bool { return h.number > 0 }
