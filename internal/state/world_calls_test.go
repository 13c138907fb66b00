package state_test

import (
	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// call is one call, and where what it leaves stands.
type call struct {
	script string
	state.Call
	// expiry is that of each key.
	expiry int64
	places []*[]byte
	// fast says that fast.lua is asked, and must that it has to do it.
	fast, must bool
}

// numbers packs the first argument: for each place of the policies as many as values says.
func (w *world) numbers(extra int64, policies []policy, each int, values func(r *state.Rule, amounts []int64) [2]int64) string {
	return w.manyNumbers(extra, policies, each, func(r *state.Rule, amounts []int64) [state.ExchangeNumbers]int64 {
		pair := values(r, amounts)
		return [state.ExchangeNumbers]int64{pair[0], pair[1]}
	})
}

// manyNumbers packs any number of them.
func (w *world) manyNumbers(extra int64, policies []policy, each int, values func(r *state.Rule, amounts []int64) [state.ExchangeNumbers]int64) string {
	before, from, until := int64(0), int64(0), int64(1)<<47
	if w.one(8) {
		before = w.now + w.Int64N(40) - 2
	}
	if w.one(40) {
		from, until = w.now+w.Int64N(3)-1, w.now+w.Int64N(3)
	}
	known := make([]byte, state.GenerationSize)
	if copy(known, w.overrides); w.one(40) {
		known[0] ^= 1
	} else if w.one(40) {
		copy(known, state.AnyGeneration)
	}
	b := state.AppendDouble(state.AppendDouble(nil, before), extra)
	b = state.AppendDouble(state.AppendDouble(append(b, known...), from), until)
	for _, p := range policies {
		for i := range p.rules.Columns {
			var numbers [state.ExchangeNumbers]int64
			if i < len(p.rules.All) {
				numbers = values(&p.rules.All[i], p.amounts)
			}
			for _, n := range numbers[:each] {
				b = state.AppendDouble(b, n)
			}
		}
		for i := range p.rules.All {
			if tag := p.rules.All[i].Tag; tag.Calendar() {
				from, to := w.window(tag)
				b = state.AppendDouble(state.AppendDouble(b, from), to)
			}
		}
	}
	return string(b)
}

// owners adds some owners, and their policies to be called under.
func (w *world) owners(c *call, side, n int) []policy {
	policies := [2][mostOwners][]policy{w.live, w.candidate}[side]
	var chosen []policy
	for i := range n {
		p := policies[i][w.IntN(len(policies[i]))]
		if w.one(3) {
			w.values[side][i] = w.state(p)
		}
		chosen = append(chosen, p)
		c.key(&w.values[side][i])
	}
	return chosen
}

func (c *call) key(place *[]byte) {
	c.Values, c.places = append(c.Values, *place), append(c.places, place)
}

func (c *call) rules(policies []policy) {
	for _, p := range policies {
		c.Args = append(c.Args, p.rules.Packed)
	}
}

// next draws the next call.
func (w *world) next() *call {
	if w.onlyLeases {
		return w.leaseNext()
	}
	switch w.IntN(6) {
	case 0:
		w.now += w.size(1 << 30)
	case 1:
		w.now = max(firstNow, w.now-w.size(1<<26))
	default:
		w.now += w.Int64N(2000)
	}
	if w.one(30) {
		w.overrides = w.records()
	}
	c := &call{Call: state.Call{Now: w.now}, expiry: w.now + 1 + w.Int64N(1<<30)}
	if w.one(20) {
		w.other(c)
		return c
	}
	switch w.IntN(14) {
	case 12, 13:
		w.exchange(c)
	case 0, 1:
		w.settle(c)
	case 2:
		w.adjust(c, func(r *state.Rule, amounts []int64) [2]int64 {
			return [2]int64{w.near(4*r.Capacity, append(amounts, 0, 1)...)}
		})
	case 3:
		// It reads.
		w.adjust(c, func(*state.Rule, []int64) [2]int64 { return [2]int64{} })
	case 4:
		// It extends a lease.
		c.script = "settle"
		w.touchRecord()
		c.Args = append(c.Args, w.numbers(w.size(1<<30), nil, 2, nil), string(append(w.attempt(), state.Running)), "")
		c.key(&w.record)
	default:
		w.take(c)
	}
	return c
}

// adjust draws a call that gives amounts back.
func (w *world) adjust(c *call, amounts func(r *state.Rule, amounts []int64) [2]int64) {
	c.script = "adjust"
	policies := w.owners(c, 0, 1+w.IntN(mostOwners))
	c.Args = append(c.Args, w.numbers(0, policies, 1, amounts))
	c.rules(policies)
	c.key(&w.overrides)
}

func (w *world) amount(r *state.Rule, amounts []int64) [2]int64 {
	if w.one(4) {
		return [2]int64{}
	}
	most := r.Capacity
	if w.one(8) {
		most = state.MaxExact
	}
	return [2]int64{w.near(most, append(amounts, r.Capacity, 0, 1)...)}
}

func (w *world) attempt() []byte {
	attempt := w.attempts[w.IntN(2)]
	return attempt[:]
}

// touchRecord draws another record of the key, now and then.
func (w *world) touchRecord() {
	if !w.one(3) && w.record != nil {
		return
	}
	r := state.Record{
		State: byte(1 + max(0, w.IntN(6)-2)), Leased: w.now + w.Int64N(5) - 2, Ends: w.now + w.size(1<<30) - 1,
		Attempt: [16]byte(w.attempt()), Fingerprint: [16]byte{byte(w.IntN(2))},
	}
	switch r.State {
	case state.Running:
		outcome := state.Admitted
		if w.one(3) {
			outcome = state.Repeat
		}
		r.Hold(outcome, w.Uint32(), "", w.now-w.Int64N(100))
	case state.Answered:
		r.Rest = "an answer"
	}
	if w.record = r.Pack(); w.one(50) {
		// Of another version.
		w.record[0]++
	}
}

func (w *world) take(c *call) {
	c.script = "take"
	policies := w.owners(c, 0, w.IntN(mostOwners+1))
	candidates := w.owners(c, 1, max(0, w.IntN(mostOwners+3)-3))
	all := append(policies[:len(policies):len(policies)], candidates...)
	kind := int64(state.FastTake)
	c.fast, c.must = len(all) > 0, true
	for i, p := range all {
		c.must = c.must && state.FitsFast(p.rules, c.Values[i], w.now)
		if p.rules.Soft {
			kind = state.AnyTake
		}
	}
	if w.one(100) {
		kind = state.BlockedTake
	}
	claim := ""
	if w.one(3) {
		w.touchRecord()
		c.key(&w.record)
		packed := state.Claim{
			Attempt: [16]byte(w.attempt()), Fingerprint: [16]byte{byte(w.IntN(2))}, Lease: w.size(1 << 20), Life: w.size(1 << 30),
			RunAgain: w.one(2), RefuseAbandoned: w.one(2), Sum: w.Uint32(),
		}
		claim = string(packed.Pack())
	}
	head, counts, counted := w.count(c, w.now, true)
	c.key(&w.overrides)
	c.Args = append(c.Args, w.numbers(kind+int64(len(candidates))*state.CandidateOwner+counted, all, 1, w.amount)+head, claim)
	c.rules(all)
	c.Args = append(c.Args, counts...)
	// Whoever finds only the claim judges no owners at all.
	c.fast = c.fast && kind == state.FastTake && len(policies) > 0
}

func (w *world) settle(c *call) {
	c.script = "settle"
	policies := w.owners(c, 0, w.IntN(mostOwners+1))
	end := ""
	if w.one(2) {
		w.touchRecord()
		c.key(&w.record)
		end = string(append(w.attempt(), []byte{0, state.Done, state.Answered}[w.IntN(3)]))
	} else {
		if !w.one(4) {
			w.marker = nil
		}
		c.key(&w.marker)
	}
	back := w.size(1 << 17)
	if w.one(8) {
		back = state.MarkerLife + w.Int64N(3) - 1
	}
	head, counts, counted := w.count(c, w.now-back, false)
	c.Args = append(c.Args, w.numbers(w.now-back+counted, policies, 2, func(r *state.Rule, amounts []int64) [2]int64 {
		charged := w.near(4*r.Capacity, append(amounts, 2*r.Capacity)...)
		if w.one(2) {
			return [2]int64{charged, -w.near(charged, charged, 1)}
		}
		return [2]int64{charged, w.near(state.MaxExact, amounts...)}
	})+head, end, "the answer")
	c.rules(policies)
	c.Args = append(c.Args, counts...)
}
