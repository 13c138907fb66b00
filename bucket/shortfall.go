package bucket

import "math/bits"

// shortfall is which limits of a take were charged less than it asked for, in the order of the result: those whose
// mode is Shadow or Warn and that did not have the amount, nothing; and soft ones, up to twice their capacity. The
// zero value is none.
type shortfall struct {
	// limits has a bit for each of them.
	limits uint64
	// charged has what each was charged, in the order of its bits. It is nil if that is nothing for all.
	charged []int64
}

// add notes what a limit was charged.
func (s *shortfall) add(k int, charged int64) {
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

// of returns what a limit was charged that was asked for an amount, of which no more than 2^53 counts.
func (s *shortfall) of(k int, amount int64) int64 {
	switch {
	case s.limits>>k&1 == 0:
		return exact(amount)
	case s.charged == nil:
		return 0
	default:
		return s.charged[bits.OnesCount64(s.limits&(1<<k-1))]
	}
}
