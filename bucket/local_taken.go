package bucket

import (
	"slices"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// spendSlots is in how many parts the time is divided in which a limit comes back, to know what of it was
// taken when.
const spendSlots = 8

// localSpend is what was taken here of one limit, under policies by which it comes back in the same time, and is not
// settled: of a token bucket and of a sliding window so much as was taken within the time in which it comes back, of
// other windows what was taken in the current one. What is older the refill has repaid, or went with its window, so that
// the store shall not count it as spent now.
type localSpend struct {
	id uint16
	// under are the limits that it was taken under last.
	under *Limits
	// width is the length of a slot in milliseconds, newest the number of the newest slot since 1970, and
	// slots the amounts by number, with one more because the time begins within a slot.
	width, newest int64
	slots         [spendSlots + 1]int64
	// end is that of the window, if it is a fixed one or one of the calendar: slots has one amount then.
	end int64
}

// spendOf returns what was taken of a limit, by which it comes back in slots of that width: nothing if it is new.
func (o *localOwner) spendOf(id uint16, width int64) *localSpend {
	at := slices.IndexFunc(o.taken, func(t localSpend) bool { return t.id == id && t.width == width })
	if at < 0 {
		at = len(o.taken)
		o.taken = append(o.taken, localSpend{id: id, width: width})
	}
	return &o.taken[at]
}

// spend notes what was charged to the share of the limit at a place.
func (o *localOwner) spend(whole *Limits, place int, charged *LimitState, now int64) {
	rule := &whole.rules[place]
	t := o.spendOf(rule.ID, rule.slotWidth())
	t.under = whole
	t.turn(now)
	if t.width == 0 {
		t.end = charged.WindowEnd
	}
	t.slots[t.newest%int64(len(t.slots))] += charged.Charged
}

// putBack notes what could not be settled once more.
func (o *localOwner) putBack(was *localSpend, now int64) {
	if was.sum(now) == 0 {
		return
	}
	t := o.spendOf(was.id, was.width)
	if t.under == nil {
		*t = *was
		return
	}
	t.turn(now)
	t.end = max(t.end, was.end)
	for i := range t.slots {
		// Both have turned to the same slot, unless the clock was set back: then it is about now.
		t.slots[i] += was.slots[i]
	}
}

// due returns what the owner settles next, and under which limits: those of the latest charge of it. It is nothing
// without limits. What other limits were charged is left.
func (o *localOwner) due(now int64) (limits *Limits, taken, left []localSpend) {
	for i := range o.taken {
		if o.taken[i].sum(now) > 0 {
			limits = o.taken[i].under
		}
	}
	for i := range o.taken {
		switch t := o.taken[i]; {
		case t.total() == 0:
		case limits.place(t.id) >= 0:
			taken = append(taken, t)
		default:
			left = append(left, t)
		}
	}
	return limits, taken, left
}

// place returns the place of the rule of an id, or -1.
func (l *Limits) place(id uint16) int {
	return slices.IndexFunc(l.rules, func(r rule) bool { return r.ID == id })
}

// slotWidth is the length of a slot of what was taken of the limit, zero if it is a window that has one amount.
func (r *rule) slotWidth() int64 {
	switch r.Tag {
	case state.TokenBucket:
		return max(1, state.CeilDiv(r.Wait(r.Full), spendSlots))
	case state.SlidingWindow:
		return max(1, state.CeilDiv(r.R, spendSlots))
	default:
		return 0
	}
}

// turn empties the slots that have passed by the time, and moves to the one of it. A clock that was set back leaves the
// newest slot as it is.
func (t *localSpend) turn(now int64) {
	if t.width == 0 {
		if now >= t.end {
			t.slots[0] = 0
		}
		return
	}
	slot := now / t.width
	if slot-t.newest >= int64(len(t.slots)) {
		clear(t.slots[:])
		t.newest = slot
	}
	for t.newest < slot {
		t.newest++
		t.slots[t.newest%int64(len(t.slots))] = 0
	}
}

// sum returns what is to be settled at the time.
func (t *localSpend) sum(now int64) int64 {
	t.turn(now)
	return t.total()
}

// total is what was to be settled when it was summed last.
func (t *localSpend) total() int64 {
	sum := int64(0)
	for _, amount := range t.slots {
		sum += amount
	}
	return sum
}
