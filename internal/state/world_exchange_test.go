package state_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// holderState is what a holder knows: the number of its last exchange, when that was by both clocks, and when the last ones were answered by its own.
type holderState struct {
	number, seen, clock int64
	heard               [3]int64
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
	lease := 2000 + w.Int64N(3)
	switch heard := h.heard[w.IntN(len(h.heard))]; {
	case w.one(10):
		h.clock = w.size(1 << 40)
	case w.one(4):
		// About a lease after something that it was answered.
		h.clock = heard + lease + w.Int64N(6) - 1
	}
	heard := min(h.heard[0], 1<<47)
	h.seen = w.now
	copy(h.heard[1:], h.heard[:])
	h.heard[0] = h.clock + w.Int64N(30)
	leaving := byte(0)
	if w.one(12) {
		leaving = 1
	}
	arg := append([]byte{byte(1 + which)}, "older99"...)
	for _, number := range []int64{h.number, min(h.clock, 1<<47), heard, w.size(2000)} {
		arg = state.AppendUint(arg, 6, number)
	}
	arg = append(arg, leaving)
	for range n {
		arg = state.AppendUint(arg, 2, w.Int64N(3))
	}
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

// leaseChains are the chains of worlds that are all about leases of holders who have exchanged for a while.
const leaseChains = 1 << 41

// leaseNext draws the next call of such a chain, after some that are not compared.
func (w *world) leaseNext() *call {
	const before = 24
	draw := func() *call {
		w.now += w.Int64N(1000)
		c := &call{Call: state.Call{Now: w.now, Deadlines: true}, expiry: w.now + 1 + w.Int64N(1<<30)}
		w.exchange(c)
		return c
	}
	for ; w.exchanges < before; w.exchanges++ {
		c := draw()
		reply, err := state.Exchange(c.Call)
		if err != nil {
			continue
		}
		for _, write := range reply.Writes {
			*c.places[write.Key] = write.Value
		}
	}
	return draw()
}

func TestGoAndTheScriptOfAnExchangeDecideAndStoreTheSameBytesAfterMany(t *testing.T) {
	t.Parallel()
	c := newComparison(t, startRedis(t))
	for first := uint64(leaseChains); c.calls < *comparedCalls; first += batch {
		require.NoError(t, c.run(first))
	}
	t.Logf("%d calls, %d errors; script and outcome: %v", c.calls, c.errors, c.outcomes)
}

// leaseMutants are mistakes in who takes back what.
var leaseMutants = []mutant{
	{"exchange", "h.reap + LEASE_MARGIN", "h.reap"},
	{"exchange", "limit.at > now and min(", "false and min("},
	{"exchange", "AHEAD - limit.at + now", "AHEAD"},
	{"exchange", "ends + LEASE_MARGIN <= now and order", "order"},
	{"exchange", " and order <= silent", ""},
	{"exchange", "extra + ceil_div(extra, LEASE_DRIFT - 1)", "extra"},
	{"exchange", "latest_at > heard", "false"},
	{"exchange", "heard - latest_at >= floor(2 * extra / 5)", "true"},
	{"exchange", "= base, heard, latest", "= h.order, heard, latest"},
	{"exchange", "h.reap = max(h.reap, now + floor(extra / 8) - LEASE_MARGIN)", ""},
}

func TestAMistakeInWhatIsTakenBackIsFound(t *testing.T) {
	t.Parallel()
	areFound(t, leaseMutants, leaseChains)
}

// areFound looks for mistakes, each in chains from the first on.
func areFound(t *testing.T, mutants []mutant, first uint64) {
	t.Helper()
	client := startRedis(t)
	for _, m := range mutants {
		t.Run(m.script+": "+m.is, func(t *testing.T) {
			t.Parallel()
			c := newComparison(t, client, m)
			if late := shownLate[m]; late > 0 && c.run(first+late) != nil {
				return
			}
			chain, err := first, error(nil)
			for err == nil && c.calls < mutantCalls {
				err = c.run(chain)
				chain += batch
			}
			require.ErrorContains(t, err, "Lua", "in %d calls", c.calls)
			t.Logf("after %d calls: {%q, %q, %q}: %d", c.calls, m.script, m.is, m.becomes, chain-first-batch)
		})
	}
}
