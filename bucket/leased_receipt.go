package bucket

import (
	"github.com/gqlgen-ratelimit/ratelimit/internal/lease"
	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// leasedCharge is what a receipt knows of a bucket that was charged by what is leased of it. The zero value is none.
type leasedCharge struct {
	// mark is that of what was held when it was taken.
	mark lease.Mark
	// place is that of the bucket in the receipt, from 1 on.
	place uint8
	// counted says that the usage was counted in this process.
	counted bool
	// held says that what was taken may be declined.
	held bool
	// number is that of the take among those of its lease, and takes knows which of these were settled.
	number int64
	takes  *settledTakes
}

// leasedBy notes that the bucket of a debit was charged here.
func (r *Receipt) leasedBy(d *debit, counted bool) {
	// Field by field: a copy of a whole one waits until that is written.
	c := &r.leased
	*c = leasedCharge{}
	c.mark, c.takes, c.number = d.mark, d.takes, d.number
	c.place, c.counted, c.held = uint8(d.at+1), counted, d.held
}

// weave makes the receipt of the rest of a take that of the whole.
func (r *Receipt) weave(take *Take, d *debit, states []LimitState, now int64) {
	whole := *take
	whole.Buckets = append(append(append(make([]Bucket, 0, len(d.buckets)), d.buckets[:d.at]...), d.buckets[d.at]), d.buckets[d.at+1:]...)
	counted := *r
	short := shortOf(states)
	if counted.IsZero() {
		r.issue(&whole, now, short)
	} else {
		r.buckets, r.short = whole.Buckets, short
		for i := range counted.buckets {
			at := i
			if i >= d.at {
				at++
			}
			r.buckets[at] = counted.buckets[i]
		}
	}
	r.leasedBy(d, false)
}

// shortOf is what of the limits was charged less than was asked for.
func shortOf(states []LimitState) (short state.Shortfall) {
	for k := range states {
		if states[k].Charged < states[k].Asked {
			short.Add(k, states[k].Charged)
		}
	}
	return short
}

// parts divides a settlement into that of what the store has charged and counted, and that of what was charged and counted here.
func (s *Settlement) parts() (rest, own Settlement) {
	r, at := &s.Receipt, int(s.Receipt.leased.place)-1
	rest, own = *s, *s
	rest.Receipt.leased, own.Receipt.leased = leasedCharge{}, leasedCharge{}
	rest.Receipt.buckets = append(append([]Bucket(nil), r.buckets[:at]...), r.buckets[at+1:]...)
	own.Receipt.buckets = r.buckets[at : at+1]
	rest.Receipt.counted, own.Receipt.counted = r.counted && !r.leased.counted, r.leased.counted
	rest.Receipt.short, own.Receipt.short = state.Shortfall{}, state.Shortfall{}
	own.Claim = nil
	k, restK := 0, 0
	for i := range r.buckets {
		b := &r.buckets[i]
		for j := range b.Limits.rules {
			asked := b.asked(r.amounts.all(), b.Limits.rules[j].limit.Unit)
			charged := r.short.Of(k, asked)
			k++
			switch {
			case i == at && charged < asked:
				own.Receipt.short.Add(j, charged)
			case i != at && charged < asked:
				rest.Receipt.short.Add(restK, charged)
			}
			if i != at {
				restK++
			}
		}
	}
	return rest, own
}

// charges reports whether a settlement is about anything that a store has charged or counted.
func (s *Settlement) charges() bool {
	return s.Claim != nil || s.Receipt.counted || countLimits(s.Receipt.buckets) > 0
}
