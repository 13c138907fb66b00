package state

import "math/bits"

// Shortfall is which limits of a take were charged less than it asked for, in the order of the result: those that
// are lenient and that did not have the amount, nothing; and soft ones, up to twice their capacity. The
// zero value is none.
type Shortfall struct {
	// limits has a bit for each of them.
	limits uint64
	// charged has what each was charged, in the order of its bits. It is nil if that is nothing for all.
	charged []int64
}

// Add notes what a limit was charged.
func (s *Shortfall) Add(k int, charged int64) {
	place := bits.OnesCount64(s.limits & (1<<k - 1))
	if s.charged != nil || charged > 0 {
		all := make([]int64, bits.OnesCount64(s.limits)+1)
		for i := range all {
			switch {
			case i == place:
				all[i] = charged
			case s.charged == nil:
			case i < place:
				all[i] = s.charged[i]
			default:
				all[i] = s.charged[i-1]
			}
		}
		s.charged = all
	}
	s.limits |= 1 << k
}

// Of returns what a limit was charged that was asked for an amount, of which no more than 2^53 counts.
func (s *Shortfall) Of(k int, amount int64) int64 {
	switch {
	case s.limits>>k&1 == 0:
		return Exact(amount)
	case s.charged == nil:
		return 0
	default:
		return s.charged[bits.OnesCount64(s.limits&(1<<k-1))]
	}
}

// Exact clamps a number of tokens to those that a double holds exactly. What lies beyond means the same: it is more
// than twice any capacity.
func Exact(n int64) int64 {
	return max(-MaxExact, min(n, MaxExact))
}

// Append appends the limits in the order of a reply: the lenient ones, which are known when all are judged, come
// first.
func (s *Shortfall) Append(b []byte, owners []*Rules) []byte {
	for _, lenient := range []bool{true, false} {
		k := 0
		for _, l := range owners {
			for i := range l.All {
				if s.limits>>k&1 == 1 && l.All[i].Lenient == lenient {
					b = AppendUint(append(b, byte(k)), DebtSize, s.Of(k, 0))
				}
				k++
			}
		}
	}
	return b
}

// ReadShort reads how many limits were charged less than they were asked for, and these, and returns what
// follows. It returns false if there are not so many limits.
func ReadShort(text string, limits int) (short Shortfall, rest string, ok bool) {
	if text == "" || len(text) < 1+ShortSize*int(text[0]) {
		return Shortfall{}, "", false
	}
	n := 1 + ShortSize*int(text[0])
	short, ok = ReadShortfall(text[1:n], limits)
	return short, text[n:], ok
}

// ReadShortfall reads limits that were charged less than they were asked for.
func ReadShortfall(text string, limits int) (short Shortfall, ok bool) {
	if len(text)%ShortSize != 0 {
		return Shortfall{}, false
	}
	for ; text != ""; text = text[ShortSize:] {
		if int(text[0]) >= limits {
			return Shortfall{}, false
		}
		short.Add(int(text[0]), ReadUint(text[1:], DebtSize))
	}
	return short, true
}

// Judging is what the limits of a take say of it, one after the other.
type Judging struct {
	// Outcome is Admitted, Limited or Never.
	Outcome Outcome
	// Short are the limits that an admission charges nothing because they do not have the amount.
	Short Shortfall
}

// Limit takes in what limit k says, which has spent so much. A soft one never refuses.
func (j *Judging) Limit(k int, r *Rule, s Spent, amount, now int64) {
	if amount == 0 || r.Soft || amount <= r.Capacity && r.Over(r.Level(s, now), amount) <= 0 {
		return
	}
	switch {
	case r.Lenient:
		j.Short.limits |= 1 << k
	case amount > r.Capacity:
		j.Outcome = Never
	case j.Outcome == Admitted:
		j.Outcome = Limited
	}
}
