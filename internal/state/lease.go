package state

// What an instance leases of a token bucket is a bucket of its own, with a part of the capacity and a part of what decays. Of the bucket that
// is stored the rest is left, and that is what takes are judged by: its capacity is less by what is held, and its debt decays slower.
//
// Parts of a small rate need small units. So the units of a leased bucket are a thousandth of those of its limit, where they fit.

const (
	// leaseScale is how many units of a leased bucket are one of its limit.
	leaseScale = 1000
	// MaxLease is the longest lease, in milliseconds.
	MaxLease = 60_000
	// leaseForgotten is how long after the end of the last lease, in milliseconds, what is held is nobody's: no instance that leases has
	// been there since, to take it back. A clock that steps less far takes nothing from those who hold it.
	leaseForgotten = 60_000
	// leaseLife is how long after that end the entry of a leased bucket lives at most, in milliseconds. Debts of another policy may be worth
	// any time in the terms of this one.
	leaseLife = 1 << 40
)

// Leased is what instances hold of a token bucket, in its units.
type Leased struct {
	// Capacity is what is held of the capacity, and Rate of what decays each millisecond.
	Capacity, Rate int64
	// Base is what of the whole bucket decays each millisecond.
	Base int64
	// Until is when the last lease ends, in Unix milliseconds.
	Until int64
}

// forgotten reports whether what is held is nobody's by now.
func (h *Leased) forgotten(now int64) bool { return now >= h.Until+leaseForgotten }

// rest is what decays of the bucket that is left. Where more is held than there is, since another policy has given it away, it is the least that
// a bucket has.
func (h *Leased) rest() int64 { return max(1, h.Base-h.Rate) }

// scale is how many units of its leased bucket one of the limit is.
func (r *Rule) scale() int64 {
	if r.Full <= MaxDebt/leaseScale && r.P < maxLeasedP && r.R <= MaxExact/leaseScale {
		return leaseScale
	}
	return 1
}

// maxLeasedP is the end of what an entry has room for, by which no limit is scaled that would reach it.
const maxLeasedP = 1 << (8 * lengthSize) / leaseScale

// leased returns the rule of what is left of the limit while an entry says what is held of it.
func (r *Rule) leased(e *Entry) Rule {
	scale := r.scale()
	l := *r
	l.P = scale * r.P
	held := &Leased{
		Capacity: convertUp(e.Held.Capacity, e.P, l.P), Rate: convertUp(e.Held.Rate, e.P, l.P), Base: scale * r.R, Until: e.Held.Until,
	}
	l.R = held.rest()
	l = NewRule(l)
	l.Full -= held.Capacity
	l.held = held
	return l
}

// leased returns the rules of what is left of the limits: the same if nobody holds anything. What is nobody's any more it puts back.
func (o *Owner) leased(l *Rules, now int64) *Rules {
	own := l
	for i := range o.Entries {
		e := &o.Entries[i]
		if e.Held == nil {
			continue
		}
		if e.Held.forgotten(now) {
			*e = e.whole(now)
			continue
		}
		anew, _ := e.farAhead(now)
		for j := range l.All {
			if l.All[j].ID != e.ID || l.All[j].Tag != TokenBucket {
				continue
			}
			if own == l {
				other := *l
				other.All, other.Fast = append([]Rule(nil), l.All...), false
				own = &other
			}
			own.All[j] = l.All[j].leased(&anew)
		}
	}
	return own
}

// leasedDebt returns what the limit owes by an entry of which something is held: of what is left if the rule is that of what is left, and otherwise
// with all that is held.
func (r *Rule) leasedDebt(e *Entry, now int64) int64 {
	is := e.At(now)
	if r.held == nil {
		is.Debt = min(is.Debt+e.Held.Capacity, MaxExact)
	}
	return convertUp(is.Debt, e.P, r.P)
}

// whole returns the entry of the whole bucket: what was held comes back empty.
func (e *Entry) whole(now int64) Entry {
	is := e.At(now)
	is.Debt = min(is.Debt+e.Held.Capacity, MaxExact)
	is.R, is.Held = e.Held.Base, nil
	return is
}

// convertUp returns an amount that is counted in units of 1/from token in units of 1/to token, rounded up, and at most 2^53.
func convertUp(n, from, to int64) int64 {
	if from == to {
		return n
	}
	tokens := n / from
	rest := n - tokens*from
	converted := Product(tokens, to)
	switch {
	case rest == 0:
	case from > (MaxExact-1)/to:
		// rest × to may not be exact: a whole token is the upper bound.
		converted += to
	default:
		converted += CeilDiv(rest*to, from)
	}
	return min(converted, MaxExact)
}

// leasedSize is that of the entry of a token bucket of which something is held.
const leasedSize = tokenSize + 2*DebtSize + DateSize

// readLeased reads such an entry and returns its size, zero if it is none.
func readLeased[T ~string | ~[]byte](text T) (e Entry, size int) {
	if len(text) < leasedSize {
		return Entry{}, 0
	}
	part := func(end, size int) int64 { return ReadUint(text[end-size:], size) }
	held := &Leased{
		Base: part(tokenREnd, DebtSize), Capacity: part(tokenSize+DebtSize, DebtSize), Rate: part(tokenSize+2*DebtSize, DebtSize),
		Until: part(leasedSize, DateSize),
	}
	e = Entry{
		ID: uint16(part(tagSize+idSize, idSize)), Terms: Terms{Tag: TokenBucket, P: part(tokenPEnd, lengthSize), R: held.rest()},
		Date: part(tokenDateEnd, DateSize), Debt: part(tokenSize, DebtSize), Held: held,
	}
	if e.P == 0 || held.Base == 0 || max(held.Base, e.Debt, held.Capacity, held.Rate) > MaxExact {
		return Entry{}, 0
	}
	return e, leasedSize
}

// appendLeased appends it.
func (e *Entry) appendLeased(b []byte) []byte {
	b = AppendUint(append(b, byte(leasedBucket)), idSize, int(e.ID))
	b = AppendUint(AppendUint(b, DateSize, e.Date), lengthSize, e.P)
	b = AppendUint(AppendUint(b, DebtSize, e.Held.Base), DebtSize, e.Debt)
	return AppendUint(AppendUint(AppendUint(b, DebtSize, e.Held.Capacity), DebtSize, e.Held.Rate), DateSize, e.Held.Until)
}

// repaid returns what is left of an amount that was charged some time ago, by what decays of the whole bucket.
func (r *Rule) repaid(amount, elapsed int64) int64 {
	if r.held == nil {
		return r.Decay(amount, elapsed)
	}
	if elapsed <= 0 {
		return amount
	}
	return max(0, amount-Product(elapsed, r.held.Base))
}
