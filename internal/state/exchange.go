package state

import "fmt"

// The numbers of each limit in an exchange, in the units of its leased bucket, or in tokens of a window.
const (
	// What the holder gives back: it has it no longer.
	givesCapacity = iota
	givesRate
	givesLevel
	// demand is what it is asked for in a millisecond, level what it has, want what it would have more, and largest the largest amount that it is
	// asked for.
	numberDemand
	numberLevel
	numberWant
	numberLargest
	// numberWanted is an amount that only the rest can have, and has not.
	numberWanted
	exchangeNumbers
)

// What an exchange comes to for an owner.
const (
	// Exchanged says that it was booked, now or when it was sent before.
	Exchanged = 0
	// NotKnown says that nothing is known of the holder: what it holds ends, and it begins anew under another name.
	NotKnown = 1
	// OldExchange is one that came after a later one.
	OldExchange = 2
	// OtherHoldings says that the limits are leased under another policy, or owe more than they have.
	OtherHoldings = 3
	// NoHolding says that as many hold something as can.
	NoHolding = 4
)

const (
	// leaseMargin is how much later than at its end a lease is taken back, in milliseconds.
	leaseMargin = 100
	// mostDemand is how much one holder is asked for at most, so that all together can be counted.
	mostDemand = MaxExact / 1024
	// leaseDrift is by which part the clocks of holders may be wrong.
	leaseDrift = 1000
)

// exchange is one under way.
type exchange struct {
	*Call
	holder string
	number int64
	// clock is the time of the holder when it sent this, and heard when the exchange before was answered, in milliseconds by its own clock.
	clock, heard int64
	// beat is after how long the holder means to come again, in milliseconds.
	beat    int64
	leaving bool
}

const exchangeHead = holderSize + 4*numberSize + 1

// Exchange is exchange.lua: a holder gives back what it holds of the limits of some owners, and gets more. Errors are as of [Settle].
func Exchange(c Call) (Reply, error) {
	return c.run(2, true, func(r *Reply) error {
		owners := len(c.Values) / 2
		if len(c.Values)%2 != 0 || len(c.Args[1]) != exchangeHead+2*owners {
			return fmt.Errorf("%w: an exchange", errMalformed)
		}
		f := fields{[]byte(c.Args[1])[holderSize:]}
		x := exchange{Call: &c, holder: c.Args[1][:holderSize]}
		f.read(numberSize, &x.number, &x.clock, &x.heard, &x.beat)
		x.leaving = f.next(1) == 1
		all, err := c.load(owners, 2, exchangeNumbers)
		if err != nil {
			return err
		}
		tables := make([]holdings, owners)
		for i := range tables {
			var ok bool
			if tables[i], ok = readHoldings(c.Values[owners+i]); !ok {
				return fmt.Errorf("%w: holdings", errMalformed)
			}
		}
		r.Text = c.reply(Applied)
		for i, o := range all {
			x.owner(r, o, &tables[i], int(f.next(2)), owners+i)
		}
		return nil
	})
}

// owner does the exchange for one owner, whose holdings stand under a key.
func (x *exchange) owner(r *Reply, o *loaded, h *holdings, place, key int) {
	if !h.stored {
		// Nothing is taken back of what somebody may hold whom nobody knows any more.
		h.reap = x.Now + x.extra
		for i := range o.asked.All {
			rule := &o.asked.All[i]
			h.sums = append(h.sums, sum{id: rule.ID, p: rule.leaseUnit()})
		}
	}
	all := make([]leasing, len(o.asked.All))
	status := byte(OtherHoldings)
	if h.are(o.asked.All) && x.begin(o, h, all) {
		place, status = x.meet(h, all, place)
	} else {
		place = -1
	}
	booked := status == Exchanged && h.records[place].number != x.number
	if booked {
		h.records[place].number = x.number
		for i := range all {
			x.book(o, h, &all[i], i, &h.records[place].parts[i])
		}
	}
	r.Text = AppendUint(append(r.Text, status), 2, max(0, place))
	r.Text = AppendUint(r.Text, 2, h.holders)
	if status == Exchanged {
		for i := range all {
			r.Text = h.records[place].parts[i].given.append(r.Text)
		}
	}
	if status == Exchanged || status == NotKnown && place >= 0 {
		x.write(r, o, h, all, place, key)
	}
}

// leasing is a limit in an exchange. Of a token bucket it has what is held of it, and what the rest owes, in units of its leased bucket.
type leasing struct {
	rule                   *Rule
	capacity, rate         int64
	heldCapacity, heldRate int64
	debt                   int64
	until                  int64
	// behind is for how long the clock of the store can have been set back, in milliseconds.
	behind int64
}

// begin reads the limits. It returns false if one cannot be leased now.
func (x *exchange) begin(o *loaded, h *holdings, all []leasing) bool {
	for i := range all {
		rule, s, l := &o.asked.All[i], o.spends[i], &all[i]
		l.rule = rule
		if rule.Soft || s.Other != nil && rule.Level(s, x.Now) > rule.Full {
			return false
		}
		if rule.Tag != TokenBucket {
			continue
		}
		if e := o.Find(rule.ID, i); e != nil && e.Date > x.Now {
			l.behind = maxAhead - e.Date + x.Now
		}
		scale := rule.scale()
		l.capacity, l.rate = scale*rule.Full, scale*rule.R
		l.heldCapacity, l.heldRate = h.sums[i].capacity, h.sums[i].rate
		if held := o.rules.All[i].held; held != nil {
			l.heldCapacity, l.heldRate = max(l.heldCapacity, held.Capacity), max(l.heldRate, held.Rate)
			l.debt, l.until = s.Debt, held.Until
		} else if l.debt = scale * s.Debt; s.Debt > MaxExact/scale {
			// It was charged under a larger capacity.
			return false
		}
	}
	return true
}

// meet finds the record of the holder and judges the number of the exchange. It makes a record for who is new.
func (x *exchange) meet(h *holdings, all []leasing, place int) (at int, status byte) {
	at = h.place(x.holder, place)
	if at < 0 {
		if x.number != 1 || x.leaving {
			return -1, NotKnown
		}
		if at = h.add(x.holder); at < 0 {
			return -1, NoHolding
		}
	} else if x.number >= h.records[at].number && x.Now >= h.reap+leaseMargin {
		// Who is new does not know how long it was before it came.
		if silent := h.records[at].silent(x.clock, x.extra); silent > 0 {
			x.reap(h, all, at, silent)
		}
	}
	r := &h.records[at]
	switch {
	case x.number < r.number:
		return at, OldExchange
	case x.number > r.number+1:
		// What is stored is older than what the holder was told.
		for i := range all {
			all[i].back(r.parts[i].capacity, r.parts[i].rate, 0)
		}
		h.remove(at)
		return at, NotKnown
	}
	h.order++
	if r.order, r.ends = h.order, x.Now+x.extra; x.number != r.number {
		if r.number > 0 {
			r.mark(mark{r.base, x.heard}, x.extra)
		}
		r.base = h.order
	}
	h.till = max(h.till, r.ends)
	return at, Exchanged
}

// reap takes back what those hold whose leases have ended: by the clock of the store, and because they were not there since there were so many exchanges, which
// is a lease ago by the clock of the holder. The clock of the store may have stepped.
func (x *exchange) reap(h *holdings, all []leasing, mine int, silent int64) {
	h.reap = x.Now + x.extra
	for i := range h.records {
		r := &h.records[i]
		switch {
		case i == mine || r.id == noHolder:
		case r.ends+leaseMargin <= x.Now && r.order <= silent:
			h.remove(i)
		default:
			h.reap = min(h.reap, r.ends)
		}
	}
	// Who looks at everybody does so now and then.
	h.reap = max(h.reap, x.Now+x.extra/8-leaseMargin)
	for i := range all {
		all[i].back(all[i].heldCapacity-h.sums[i].capacity, all[i].heldRate-h.sums[i].rate, 0)
	}
}

// back takes something back that was held, with a level. The debt is less than nothing by what of the level there is no room for.
func (l *leasing) back(capacity, rate, level int64) {
	l.heldCapacity -= capacity
	l.heldRate -= rate
	// Where the clock was set back the debt has a date that is ahead, and what has come back to the holder since then would come back once more when
	// the clock is right again. It is owed: for as long as that can have been.
	owed := int64(0)
	if l.behind > 0 {
		owed = Product(rate, l.behind)
	}
	l.debt = min(l.debt+capacity+owed, MaxExact) - level
}

// number returns a number of a limit of the call.
func (x *exchange) numbered(o *loaded, limit, number int) int64 {
	return readDouble(x.Args[0], o.first+(limit*exchangeNumbers+number)*DoubleSize)
}

// book books what the holder gives back of a limit, and gives it more.
func (x *exchange) book(o *loaded, h *holdings, l *leasing, limit int, p *part) {
	s := &h.sums[limit]
	number := func(n int) int64 { return x.numbered(o, limit, n) }
	if wanted := number(numberWanted); wanted > 0 {
		s.wanted, s.wantedUntil = wanted, x.Now+x.extra
	} else if x.Now >= s.wantedUntil {
		s.wanted = 0
	}
	if l.rule.Tag != TokenBucket {
		x.bookWindow(o, h, l, limit, p)
		return
	}
	capacity, rate := min(number(givesCapacity), p.capacity), min(number(givesRate), p.rate)
	l.back(capacity, rate, number(givesLevel))
	p.capacity -= capacity
	p.rate -= rate
	s.capacity -= capacity
	s.rate -= rate
	demand := min(number(numberDemand), mostDemand)
	s.demand += demand - p.demand
	p.demand = demand
	if x.leaving {
		l.debt = max(0, l.debt)
		p.given = Given{Left: max(0, l.capacity-l.heldCapacity-l.debt)}
		return
	}
	dueCapacity, dueRate := x.due(h, l, s, p.demand, number(numberLargest))
	g := Given{DueCapacity: dueCapacity, DueRate: dueRate}
	left := l.capacity - l.heldCapacity
	g.Rate = max(0, min(dueRate-p.rate, l.rate-l.heldRate))
	// A quarter stays, for what only the rest can have.
	g.Capacity = max(0, min(dueCapacity-p.capacity, left-CeilDiv(l.capacity, 4)))
	room := max(0, p.capacity+g.Capacity-number(numberLevel))
	want := min(max(0, number(numberWant)), room)
	level := left - l.debt
	if 2*level > left {
		// The rest is rich, and would be full before the holder is: with room for what flows until somebody notices.
		want = max(want, room-int64(0.3*float64(x.beat)*float64(p.rate+g.Rate)))
	}
	g.Level = max(0, min(want, level-s.wanted))
	// What goes of the capacity leaves no more behind than there is room for, and what there was no room for goes back.
	if over := g.Capacity - g.Level - l.debt; over > 0 {
		g.Level += min(over, max(0, room-g.Level))
	}
	l.heldCapacity += g.Capacity
	l.heldRate += g.Rate
	l.debt = max(0, min(l.debt-g.Capacity+g.Level, MaxExact))
	p.capacity += g.Capacity
	p.rate += g.Rate
	p.level = max(0, min(number(numberLevel)+g.Level, p.capacity))
	s.capacity += g.Capacity
	s.rate += g.Rate
	short, spare := min(max(0, dueRate-p.rate), mostDemand), min(max(0, p.rate-dueRate), mostDemand)
	s.short += short - p.short
	s.spare += spare - p.spare
	p.short, p.spare = short, spare
	g.Contended = float64(min(s.short-(l.rate-l.heldRate), s.spare)) > 0.03*float64(l.rate)
	g.Left = max(0, l.capacity-l.heldCapacity-l.debt)
	p.given = g
}

// due returns what the holder should have: in proportion to what is asked for, so that all are refused the same share, as one bucket
// would. Nobody holds much more than it needs: the rest is worth more to all. Conversions keep a compiler from fusing
// operations: the script has to come to the same.
func (x *exchange) due(h *holdings, l *leasing, s *sum, demand, largest int64) (capacity, rate int64) {
	holders, whole := float64(h.holders), float64(l.rate)
	floor := float64(whole*0.05) / holders
	share := (float64(demand) + floor) / (float64(s.demand) + float64(floor*holders))
	needs := float64(1.3 * float64(demand))
	rate = int64(0.98 * min(float64(whole*share), needs+floor))
	most := float64(float64(1.2*float64(x.beat))*max(float64(rate), needs)) + float64(4*float64(largest))
	return int64(min(float64(float64(0.75*float64(l.capacity))*share), most)), rate
}

// bookWindow gives a holder a part of what is left of a window: it counts as used until it comes back.
func (x *exchange) bookWindow(o *loaded, h *holdings, l *leasing, limit int, p *part) {
	now, s := x.Now, o.spends[limit]
	if back := min(x.numbered(o, limit, givesLevel), s.Debt); back > 0 && s.Other == nil && s.End == p.window {
		s = l.rule.spend(s, s.Debt-back, now)
		o.changed |= 1 << limit
	}
	left := max(0, l.rule.Remaining(l.rule.Level(s, now)))
	level := max(0, min(x.numbered(o, limit, numberWant), left/(4*h.holders), left-h.sums[limit].wanted))
	if level > 0 && !x.leaving {
		s.Other = nil
		s = l.rule.spend(s, s.Debt+level, now)
	} else {
		level = 0
	}
	o.set(limit, s)
	if p.window = s.End; s.Other != nil {
		p.window = 0
	}
	p.level = max(0, min(x.numbered(o, limit, numberLevel)+level, MaxExact))
	p.given = Given{Level: level, Left: left - level, Closes: p.window}
}

// write stores what an exchange has left of the owner, and of who holds what.
func (x *exchange) write(r *Reply, o *loaded, h *holdings, all []leasing, place, key int) {
	if x.leaving && h.records[place].id == x.holder {
		for i := range all {
			all[i].back(h.records[place].parts[i].capacity, h.records[place].parts[i].rate, 0)
		}
		h.remove(place)
	}
	h.trim()
	rules := *o.asked
	rules.All = append([]Rule(nil), o.asked.All...)
	held := false
	for i := range all {
		l := &all[i]
		if l.rule.Tag != TokenBucket {
			continue
		}
		if h.holders == 0 && l.heldCapacity+l.heldRate == 0 {
			// Rounded up, by less than a unit.
			o.spends[i] = Spent{Debt: CeilDiv(l.debt, l.rule.scale())}
		} else {
			held, rules.Fast = true, false
			rules.All[i] = l.left(max(h.till, l.until, x.Now))
			o.spends[i] = Spent{Debt: l.debt}
		}
		o.changed |= 1 << i
	}
	o.rules = &rules
	if o.toSave() {
		r.save(o, x.Call)
	}
	w := Write{Key: key}
	if held || h.holders > 0 {
		w.Value, w.Expiry = h.pack(), max(h.till, h.reap)+leaseForgotten
	}
	r.Writes = append(r.Writes, w)
}

// left is the rule of what is left of the limit.
func (l *leasing) left(until int64) Rule {
	scale := l.rule.scale()
	return l.rule.leased(&Entry{
		Terms: Terms{P: scale * l.rule.P}, Held: &Leased{Capacity: l.heldCapacity, Rate: l.heldRate, Until: until},
	})
}

// leaseUnit is in which units of 1/p token the limit is leased: those of its leased bucket, or tokens of a window.
func (r *Rule) leaseUnit() int64 {
	if r.Tag == TokenBucket {
		return r.scale() * r.P
	}
	return 1
}
