package state

// holdings are who leases what of the limits of an owner, as exchange.lua keeps them.
type holdings struct {
	// stored says that they were there before the call.
	stored bool
	// holders is how many there are.
	holders int64
	// reap is when the next lease may have ended, and till when the last one ends, in Unix milliseconds. order is how many exchanges there were.
	reap, order, till int64
	// sums has one for each limit, and records one for each place, of which those are free that have no id.
	sums    []sum
	records []holding
}

// sum is what all holders have of a limit together.
type sum struct {
	id uint16
	// p is in which units of 1/p token the numbers are.
	p int64
	// capacity and rate are held. Demand is what is asked for in a millisecond, short what holders are below what is due to them, and spare what they
	// are above it.
	capacity, rate, demand, short, spare int64
	// wanted is what somebody would take at once if the rest had it, until a time.
	wanted, wantedUntil int64
}

// holding is what one holder has.
type holding struct {
	id string
	// number is that of its last exchange, and ends when its lease does.
	number, ends int64
	// order is how many exchanges there were when it was there last, and base when it sent its last number for the first time.
	order, base int64
	// marks are the last moments from which on it can say how long it was, the last one first.
	marks [holderMarks]mark
	parts []part
}

// mark is a moment of which a holder knows that it was after so many exchanges, in milliseconds by its own clock. The zero value is none.
type mark struct{ order, clock int64 }

// mark notes a moment, unless it is close to the last one: all together reach back a lease at least. A clock that goes back has told nothing before.
func (r *holding) mark(m mark, lease int64) {
	if r.marks[0].clock > m.clock {
		r.marks = [holderMarks]mark{}
	}
	if r.marks[0].order == 0 || m.clock-r.marks[0].clock >= 2*lease/5 {
		copy(r.marks[1:], r.marks[:])
		r.marks[0] = m
	}
}

// silent returns how many exchanges there were at least a lease ago, by the clock of the holder, or zero if it does not know. Whoever was last there by
// then holds nothing any more.
func (r *holding) silent(clock, lease int64) int64 {
	for _, m := range r.marks {
		if m.order > 0 && clock-m.clock > lease+CeilDiv(lease, leaseDrift-1) {
			return m.order
		}
	}
	return 0
}

// part is what one holder has of a limit.
type part struct {
	capacity, rate int64
	// level is what the holder had after its last exchange. It is kept for those who ask who has what: nothing is decided by it.
	level                int64
	demand, short, spare int64
	// window is when the window ends that it has something of.
	window int64
	given  Given
}

// Given is what an exchange gives to a holder, of one limit, in the units of its leased bucket, or in tokens of a window.
type Given struct {
	// Capacity, Rate and Level are added to what it has.
	Capacity, Rate, Level int64
	// DueCapacity and DueRate are what it should have no more than, and gives back with its next exchange.
	DueCapacity, DueRate int64
	// Left is what is left of the limit for all.
	Left int64
	// Closes is when the window ends that Level is of, in Unix milliseconds, zero for a token bucket.
	Closes int64
	// Contended says that others are short of what is due to them.
	Contended bool
}

const (
	holdingsVersion = 3
	holderSize      = 8
	numberSize      = 6
	holdingsHead    = 1 + 1 + 2 + 3*DateSize
	sumSize         = idSize + lengthSize + 6*DebtSize + DateSize
	holderMarks     = 3
	holdingHead     = holderSize + numberSize + DateSize + (2+2*holderMarks)*numberSize
	givenSize       = 6*DebtSize + DateSize + 1
	partSize        = 6*DebtSize + DateSize + givenSize
	// maxHolders is how many hold something of an owner at once.
	maxHolders = 1000
)

var noHolder = string(make([]byte, holderSize))

// fields reads and writes numbers one after the other.
type fields struct{ text []byte }

func (f *fields) next(size int) int64 {
	n := ReadUint(f.text, size)
	f.text = f.text[size:]
	return n
}

func (f *fields) read(size int, into ...*int64) {
	for _, n := range into {
		*n = f.next(size)
	}
}

func appendAll(b []byte, size int, numbers ...int64) []byte {
	for _, n := range numbers {
		b = AppendUint(b, size, n)
	}
	return b
}

// readHoldings reads what is stored of them, nil for none. It returns false if something else is stored.
func readHoldings(stored []byte) (h holdings, ok bool) {
	if stored == nil {
		return h, true
	}
	if len(stored) < holdingsHead || stored[0] != holdingsVersion {
		return h, false
	}
	h.stored = true
	limits := int(stored[1])
	f := fields{stored[2:]}
	f.read(2, &h.holders)
	f.read(DateSize, &h.reap, &h.order, &h.till)
	each := holdingHead + partSize*limits
	if len(f.text) < sumSize*limits || (len(f.text)-sumSize*limits)%each != 0 {
		return h, false
	}
	for range limits {
		var s sum
		s.id = uint16(f.next(idSize))
		f.read(lengthSize, &s.p)
		f.read(DebtSize, &s.capacity, &s.rate, &s.demand, &s.short, &s.spare, &s.wanted)
		f.read(DateSize, &s.wantedUntil)
		h.sums = append(h.sums, s)
	}
	for len(f.text) > 0 {
		r := holding{id: string(f.text[:holderSize])}
		f.text = f.text[holderSize:]
		f.read(numberSize, &r.number, &r.ends, &r.order, &r.base)
		for i := range r.marks {
			f.read(numberSize, &r.marks[i].order, &r.marks[i].clock)
		}
		for range limits {
			var p part
			f.read(DebtSize, &p.capacity, &p.rate, &p.level, &p.demand, &p.short, &p.spare)
			f.read(DateSize, &p.window)
			p.given = readGiven(&f)
			r.parts = append(r.parts, p)
		}
		h.records = append(h.records, r)
	}
	return h, true
}

func readGiven(f *fields) (g Given) {
	f.read(DebtSize, &g.Capacity, &g.Rate, &g.Level, &g.DueCapacity, &g.DueRate, &g.Left)
	f.read(DateSize, &g.Closes)
	g.Contended = f.next(1) == 1
	return g
}

func (g *Given) append(b []byte) []byte {
	b = appendAll(b, DebtSize, g.Capacity, g.Rate, g.Level, g.DueCapacity, g.DueRate, g.Left)
	b = AppendUint(b, DateSize, g.Closes)
	if g.Contended {
		return append(b, 1)
	}
	return append(b, 0)
}

// pack returns them as they are stored.
func (h *holdings) pack() []byte {
	b := append(make([]byte, 0, holdingsHead+sumSize*len(h.sums)), holdingsVersion, byte(len(h.sums)))
	b = AppendUint(b, 2, h.holders)
	b = appendAll(b, DateSize, h.reap, h.order, h.till)
	for i := range h.sums {
		s := &h.sums[i]
		b = AppendUint(AppendUint(b, idSize, int(s.id)), lengthSize, s.p)
		b = appendAll(b, DebtSize, s.capacity, s.rate, s.demand, s.short, s.spare, s.wanted)
		b = AppendUint(b, DateSize, s.wantedUntil)
	}
	for i := range h.records {
		r := &h.records[i]
		b = appendAll(append(b, r.id...), numberSize, r.number, r.ends, r.order, r.base)
		for _, m := range r.marks {
			b = appendAll(b, numberSize, m.order, m.clock)
		}
		for j := range r.parts {
			p := &r.parts[j]
			b = appendAll(b, DebtSize, p.capacity, p.rate, p.level, p.demand, p.short, p.spare)
			b = p.given.append(AppendUint(b, DateSize, p.window))
		}
	}
	return b
}

// place returns where the record of a holder stands, which says where it was, or -1.
func (h *holdings) place(id string, was int) int {
	if was < len(h.records) && h.records[was].id == id {
		return was
	}
	for i := range h.records {
		if h.records[i].id == id {
			return i
		}
	}
	return -1
}

// add makes a record in a free place, and returns that, or -1 if there is none.
func (h *holdings) add(id string) int {
	at := h.place(noHolder, len(h.records))
	switch {
	case at >= 0:
	case len(h.records) >= maxHolders:
		return -1
	default:
		at, h.records = len(h.records), append(h.records, holding{})
	}
	h.records[at] = holding{id: id, parts: make([]part, len(h.sums))}
	h.holders++
	return at
}

// remove forgets a holder.
func (h *holdings) remove(at int) {
	for i := range h.sums {
		p, s := &h.records[at].parts[i], &h.sums[i]
		s.capacity -= p.capacity
		s.rate -= p.rate
		s.demand -= p.demand
		s.short -= p.short
		s.spare -= p.spare
	}
	h.records[at] = holding{id: noHolder, parts: make([]part, len(h.sums))}
	h.holders--
}

// trim drops free places at the end.
func (h *holdings) trim() {
	n := len(h.records)
	for n > 0 && h.records[n-1].id == noHolder {
		n--
	}
	h.records = h.records[:n]
}

// are reports whether they are those of the limits, each counted in these units.
func (h *holdings) are(rules []Rule) bool {
	if len(h.sums) != len(rules) {
		return false
	}
	for i := range rules {
		if h.sums[i].id != rules[i].ID || h.sums[i].p != rules[i].leaseUnit() {
			return false
		}
	}
	return true
}
