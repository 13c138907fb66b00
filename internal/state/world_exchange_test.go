package state_test

import "github.com/gqlgen-ratelimit/ratelimit/internal/state"

// holderState is what a holder knows: the number of its last exchange, and when that was by both clocks.
type holderState struct {
	number, seen, clock int64
}

// exchange draws one of a holder that goes on, repeats itself, begins, comes late or has missed one, or leaves.
func (w *world) exchange(c *call) {
	c.script = "exchange"
	n := 1 + w.IntN(mostOwners)
	// One policy is leased most of the time.
	var policies []policy
	for i := range n {
		p := w.live[i][0]
		if w.one(8) {
			p = w.live[i][w.IntN(len(w.live[i]))]
		}
		if w.one(6) {
			w.values[0][i] = w.state(p)
		}
		policies = append(policies, p)
		c.key(&w.values[0][i])
	}
	for i := range n {
		if w.one(40) {
			w.holdings[i] = nil
		} else if len(w.holdings[i]) > 0 && w.one(100) {
			w.holdings[i][0] ^= 2
		}
		c.key(&w.holdings[i])
	}
	c.key(&w.overrides)
	if w.one(3) {
		w.toTheEndOfALease(c)
	}
	which := w.IntN(len(w.holders))
	h := &w.holders[which]
	switch w.IntN(20) {
	case 0:
		h.number = 1
	case 1:
	case 2:
		h.number += 2
	case 3:
		h.number = max(1, h.number-1)
	default:
		h.number++
	}
	h.clock = max(0, h.clock+w.now-h.seen+w.Int64N(120)-60)
	if w.one(10) {
		h.clock = w.size(1 << 40)
	}
	h.seen = w.now
	leaving := byte(0)
	if w.one(12) {
		leaving = 1
	}
	arg := append([]byte{byte(1 + which)}, "older99"...)
	for _, number := range []int64{h.number, min(h.clock, 1<<47), w.size(2000)} {
		arg = state.AppendUint(arg, 6, number)
	}
	arg = append(arg, leaving)
	for range n {
		arg = state.AppendUint(arg, 2, w.Int64N(3))
	}
	lease := 2000 + w.Int64N(3)
	if w.one(10) {
		lease = w.size(state.MaxLease)
	}
	c.Args = append(c.Args, w.manyNumbers(lease, policies, state.ExchangeNumbers, w.exchanged), string(arg))
	c.rules(policies)
}

// exchanged draws the numbers of a limit.
func (w *world) exchanged(r *state.Rule, amounts []int64) (n [state.ExchangeNumbers]int64) {
	scale, most := int64(1), r.Capacity
	if r.Tag == state.TokenBucket {
		scale, most = r.LeaseScale(), r.LeaseScale()*r.Full
	}
	draw := func(most int64, others ...int64) int64 {
		if w.one(3) {
			return 0
		}
		return w.near(most, others...)
	}
	n[0], n[1], n[2] = draw(most, most/2), draw(scale*r.R, scale*r.R/3), draw(most, most/3)
	n[3], n[4], n[5] = draw(3*min(scale*r.R, state.MaxExact/4), scale*r.R/2), draw(most, most/4), draw(most, most/2, most)
	n[6] = draw(most, most/50)
	if w.one(6) {
		n[7] = draw(most, most/2)
	}
	return n
}

// toTheEndOfALease sets the time to when a lease may be taken back, or just before.
func (w *world) toTheEndOfALease(c *call) {
	// What stands before the date in the holdings, and the margin of the clock.
	const head, margin = 1 + 1 + 2, 100
	for _, held := range w.holdings {
		if len(held) < head+state.DateSize {
			continue
		}
		if at := state.ReadUint(held[head:], state.DateSize) + margin + w.Int64N(3) - 1; at > w.now {
			w.now = at
			c.Now, c.expiry = w.now, w.now+1+w.Int64N(1<<30)
		}
	}
}
