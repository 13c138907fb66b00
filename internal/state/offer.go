package state

// Offer is what a holder says of a limit in an exchange, in the units of its leased bucket, or in tokens of a window.
type Offer struct {
	// GivesCapacity, GivesRate and GivesLevel are what it gives back, and has no longer.
	GivesCapacity, GivesRate, GivesLevel int64
	// Demand is what it is asked for in a millisecond, Level what it has, and Want what it would have more. Largest is the largest amount that it is
	// asked for, and Wanted one that only the rest can have, and has not.
	Demand, Level, Want, Largest, Wanted int64
}

// Numbers are those of the offer as a call has them.
func (o *Offer) Numbers() [exchangeNumbers]int64 {
	return [exchangeNumbers]int64{o.GivesCapacity, o.GivesRate, o.GivesLevel, o.Demand, o.Level, o.Want, o.Largest, o.Wanted}
}

// ExchangeNumbers is how many numbers a limit has in an exchange.
const ExchangeNumbers = exchangeNumbers

// AppendExchange appends what a call says of an exchange, but for the places of the records: two bytes each, for each owner. clock is the time of the holder, and heard when it was answered last,
// in milliseconds.
func AppendExchange(b []byte, holder [holderSize]byte, number, clock, heard, beat int64, leaving bool) []byte {
	b = appendAll(append(b, holder[:]...), numberSize, number, clock, heard, beat)
	if leaving {
		return append(b, 1)
	}
	return append(b, 0)
}

// ExchangeAnswer is what an exchange came to for one owner.
type ExchangeAnswer struct {
	Status byte
	// Place is where the record of the holder stands, and Holders is how many there are.
	Place, Holders int
	// Given has one for each limit, and none unless Status is Exchanged.
	Given []Given
}

// ReadExchange reads what an exchange came to for an owner of some limits, and returns what follows it.
func ReadExchange(text string, limits int) (a ExchangeAnswer, rest string, ok bool) {
	const head = 1 + 2 + 2
	if len(text) < head {
		return a, "", false
	}
	f := fields{[]byte(text)}
	a.Status, a.Place, a.Holders = byte(f.next(1)), int(f.next(2)), int(f.next(2))
	if a.Status != Exchanged {
		return a, string(f.text), true
	}
	if len(f.text) < limits*givenSize {
		return a, "", false
	}
	for range limits {
		a.Given = append(a.Given, readGiven(&f))
	}
	return a, string(f.text), true
}

// Leasing returns in which units the limit is leased, in all its capacity, and what of it comes back each millisecond. Of a window these are tokens.
func (r *Rule) Leasing() (unit, capacity, rate int64) {
	if r.Tag != TokenBucket {
		return 1, r.Capacity, 0
	}
	scale := r.scale()
	return scale * r.P, scale * r.Full, scale * r.R
}
