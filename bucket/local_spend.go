package bucket

import (
	"slices"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// spendSlots is in how many parts the time is divided in which a limit comes back, to know what of it was
// taken when.
const spendSlots = 8

// localSpend is what was taken here of one limit, under policies by which it comes back in the same time, and is not
// settled: of a token bucket and of a sliding
// window so much as was taken within the time in which it comes back, of other windows what was taken in the
// current one. What is older the refill has repaid, or went with its window, so that the store shall not count
// it as spent now.
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

// spend notes what was taken of the limit at a place of those that the owner is judged by. The state is that of the
// share.
func (o *localOwner) spend(place int, spent state.Spent, amount, now int64) {
	whole := &o.limits.rules[place]
	width := whole.slotWidth()
	at := slices.IndexFunc(o.taken, func(t localSpend) bool { return t.id == whole.ID && t.width == width })
	if at < 0 {
		at = len(o.taken)
		o.taken = append(o.taken, localSpend{id: whole.ID, width: width})
	}
	o.taken[at].under = o.limits
	o.taken[at].add(spent, amount, now)
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

func (t *localSpend) add(spent state.Spent, amount, now int64) {
	if t.width == 0 {
		if now >= t.end {
			t.slots[0] = 0
		}
		t.end = spent.End
		t.slots[0] += amount
		return
	}
	t.turn(now)
	t.slots[t.newest%int64(len(t.slots))] += amount
}

// turn moves to the slot of the time and empties those that have passed. A clock that was set back leaves the
// newest slot as it is.
func (t *localSpend) turn(now int64) {
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
	if t.width == 0 {
		if now >= t.end {
			return 0
		}
		return t.slots[0]
	}
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

// join puts back what could not be settled, of the same width.
func (t *localSpend) join(other *localSpend, now int64) {
	sum := other.sum(now)
	switch {
	case sum == 0:
	case t.width == 0:
		t.end = max(t.end, other.end)
		t.slots[0] += sum
	default:
		t.turn(now)
		other.turn(now)
		for i := range t.slots {
			// Both have turned to the same slot, unless the clock was set back: then it is about now.
			t.slots[i] += other.slots[i]
		}
	}
}
