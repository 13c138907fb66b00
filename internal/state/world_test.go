package state_test

import (
	"fmt"
	"math/rand/v2"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// The times lie after that of every Redis that runs the tests: it would drop what expires before its own.
const (
	firstNow   = int64(1) << 42
	longest    = int64(10 * 366 * 24 * 3600 * 1000)
	mostOwners = 3
)

// world draws calls of the scripts on what calls before have left, or on states that no call leaves.
type world struct {
	*rand.Rand
	now int64
	// ids are those of all limits: few, so that policies meet.
	ids []uint16
	// live and candidate are the policies of each owner, and recordKey and so on are what stands under the keys.
	live, candidate [mostOwners][]policy
	values          [2][mostOwners][]byte
	record, marker  []byte
	overrides       []byte
	attempts        [2][16]byte
}

// policy is the limits of an owner.
type policy struct {
	rules *state.Rules
	// amounts are numbers that the limits are near to admit.
	amounts []int64
}

// call is one call, and where what it leaves stands.
type call struct {
	script string
	state.Call
	// expiry is that of each key.
	expiry int64
	places []*[]byte
	// fast says that fast.lua has to do it.
	fast bool
}

func newWorld(seed, chain uint64) *world {
	w := &world{Rand: rand.New(rand.NewPCG(seed, chain))}
	w.now = firstNow + w.Int64N(1<<40)
	for range 3 + w.IntN(6) {
		w.ids = append(w.ids, uint16(w.IntN(1<<13)<<3+len(w.ids)))
	}
	for i := range mostOwners {
		plain := w.IntN(3) > 0
		for range 1 + w.IntN(2) {
			w.live[i] = append(w.live[i], w.policy(plain))
			w.candidate[i] = append(w.candidate[i], w.policy(plain))
		}
	}
	for i := range w.attempts {
		w.attempts[i] = [16]byte{byte(i + 1), byte(w.Uint32())}
	}
	return w
}

// size draws a number from 1 on, of any order of magnitude up to most.
func (w *world) size(most int64) int64 {
	for {
		if n := w.Int64() >> w.IntN(63); n > 0 && n <= most {
			return n
		}
	}
}

// near draws a number that is one of the others, or next to it, or any up to most.
func (w *world) near(most int64, others ...int64) int64 {
	if most < 1 {
		return 0
	}
	n := w.size(most)
	if len(others) > 0 && w.IntN(4) > 0 {
		n = others[w.IntN(len(others))] + w.Int64N(3) - 1
	}
	return max(0, min(n, most))
}

func (w *world) one(n int) bool { return w.IntN(n) == 0 }

func (w *world) policy(plain bool) policy {
	var p policy
	var rules []state.Rule
	most := 5
	if plain {
		most = state.FastLimits
	}
	for _, i := range w.Perm(len(w.ids))[:min(len(w.ids), w.IntN(most+1))] {
		r := w.rule(plain)
		r.ID = w.ids[i]
		rules = append(rules, r)
		p.amounts = append(p.amounts, r.Capacity, r.Capacity/2)
	}
	p.rules = state.NewRules(rules)
	return p
}

// rule draws a limit that bucket.Compile would take. Its windows of the calendar are drawn with each call.
func (w *world) rule(plain bool) state.Rule {
	r := state.Rule{Tag: state.TokenBucket, P: 1, Lenient: w.one(5)}
	if !plain {
		r.Tag = state.Tag(1 + w.IntN(7))
		r.Soft = !r.Lenient && w.one(6)
	}
	for {
		switch {
		case r.Tag == state.TokenBucket && plain:
			r.P, r.R, r.Capacity = w.size(1<<32-1), w.size(1<<16-1), w.size(1<<39)
		case r.Tag == state.TokenBucket:
			r.P, r.R, r.Capacity = w.size(longest), w.size(1<<53-1), w.size(1<<52)
		case r.Tag == state.SlidingWindow:
			r.R, r.Capacity = w.size(longest), w.size(1<<51)
			r.P = r.R
		case r.Tag == state.FixedWindow:
			r.R, r.Capacity = w.size(longest), w.size(1<<52)
		default:
			r.Windows, r.Capacity = state.Span{}, w.size(1<<52)
		}
		most := int64(state.MaxDebt)
		if plain {
			most = 1<<39 - 1
		} else if r.Tag == state.SlidingWindow {
			most /= 2
		}
		if r.Capacity <= most/r.P && (r.Tag != state.TokenBucket || r.Capacity*r.P/r.R <= longest) {
			return state.NewRule(r)
		}
	}
}

// calendarLength is about how long the windows of a tag are.
func (w *world) calendarLength(tag state.Tag) int64 {
	hour := int64(3600 * 1000)
	switch tag {
	case state.HourWindow:
		return hour
	case state.DayWindow:
		return (23 + w.Int64N(3)) * hour
	case state.MonthWindow:
		return (28 + w.Int64N(4)) * 24 * hour
	default:
		return (365 + w.Int64N(2)) * 24 * hour
	}
}

// window is the one of a tag that holds the time, mostly the same for all.
func (w *world) window(tag state.Tag) (from, to int64) {
	length := w.calendarLength(tag)
	from = w.now / length * length
	if w.one(10) {
		from = w.now - w.Int64N(length)
	}
	if w.one(60) {
		from += length
	}
	return from, from + length
}

// date draws one near now: before, at the edges of what a clock that was set back leaves, or far ahead.
func (w *world) date(back int64) int64 {
	switch w.IntN(12) {
	case 0:
		return w.now + 4998 + w.Int64N(5)
	case 1:
		return w.now + w.size(1<<33)
	case 2:
		return w.now
	default:
		return w.now - w.Int64N(back+1)
	}
}

// entry draws what may be stored of a limit under the rule or under any other.
func (w *world) entry(r *state.Rule, amounts []int64) state.Entry {
	if r == nil || w.one(3) {
		id := w.ids[w.IntN(len(w.ids))]
		if r != nil {
			id = r.ID
		}
		other := w.rule(w.one(2))
		other.ID, r, amounts = id, &other, []int64{other.Capacity}
	}
	e := state.Entry{ID: r.ID, Terms: state.Terms{Tag: r.Tag, P: r.P, R: r.R, Length: r.R}}
	tokens := max(1, w.near(min(2*r.Capacity, state.MaxExact/r.P), amounts...))
	switch {
	case r.Tag == state.TokenBucket:
		e.Length = 0
		e.Debt = max(1, min(w.near(state.MaxExact/2, tokens*r.P, r.Full), r.R*longest))
		if r.R > state.MaxExact/longest {
			e.Debt = max(1, w.near(state.MaxExact/2, tokens*r.P, r.Full))
		}
		e.Date = w.date(min(e.Debt/r.R+2, 2*longest))
		return e
	case r.Tag.Calendar():
		from, to := w.window(r.Tag)
		e.Length, e.End, e.Debt = to-from, to, tokens
		if w.one(4) {
			e.End = w.now + w.Int64N(e.Length+5002)
		}
	default:
		e.Debt, e.End = tokens, w.now+w.Int64N(e.Length+1)
		if w.one(8) {
			e.End = w.now + e.Length + 4998 + w.Int64N(5)
		}
	}
	if r.Tag == state.SlidingWindow {
		most := state.MaxExact/e.Length - e.Debt
		e.Previous = max(0, min(most, w.near(2*r.Capacity, amounts...)))
		if w.one(4) {
			e.Debt, e.Previous = 0, max(1, e.Previous)
		} else if w.one(4) {
			e.End -= w.Int64N(2*e.Length + 1)
		}
	}
	e.P, e.R = 0, 0
	return e
}

// state draws one of an owner.
func (w *world) state(p policy) []byte {
	rules := p.rules
	var o state.Owner
	switch {
	case w.one(6):
		return nil
	case rules.Fast && w.one(2):
		date := w.date(w.size(longest))
		for i := range rules.All {
			r := &rules.All[i]
			if w.one(4) {
				continue
			}
			debt := min(w.near(1<<40-1, r.Full, p.amounts[2*i+1]*r.P), r.R*longest)
			o.Entries = append(o.Entries, state.Entry{
				ID: r.ID, Terms: state.Terms{Tag: r.Tag, P: r.P, R: r.R}, Date: min(date, w.now+debt/r.R), Debt: debt,
			})
		}
		return state.PackFast(&o, rules, date)
	}
	known := map[uint16]bool{}
	for i := range rules.All {
		if !w.one(4) {
			o.Entries = append(o.Entries, w.entry(&rules.All[i], p.amounts))
			known[rules.All[i].ID] = true
		}
	}
	for range w.IntN(3) {
		if e := w.entry(nil, nil); !known[e.ID] {
			o.Entries, known[e.ID] = append(o.Entries, e), true
		}
	}
	w.Shuffle(len(o.Entries), func(i, j int) { o.Entries[i], o.Entries[j] = o.Entries[j], o.Entries[i] })
	text := state.PackMixed(&o)
	if w.one(100) {
		// Something that nobody wrote.
		text[w.IntN(2)%len(text)] ^= 8
	} else if w.one(100) {
		text = text[:w.IntN(len(text))]
	}
	return text
}

// numbers packs the first argument: for each place of the policies as many as values says.
func (w *world) numbers(extra int64, policies []policy, each int, values func(r *state.Rule, amounts []int64) [2]int64) string {
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
	}
	b := state.AppendDouble(state.AppendDouble(nil, before), extra)
	b = state.AppendDouble(state.AppendDouble(append(b, known...), from), until)
	for _, p := range policies {
		for i := range p.rules.Columns {
			var numbers [2]int64
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
	switch w.IntN(6) {
	case 0:
		w.now += w.size(1 << 30)
	case 1:
		w.now = max(firstNow, w.now-w.size(1<<26))
	default:
		w.now += w.Int64N(2000)
	}
	if w.one(30) {
		w.overrides = append([]byte{state.OverridesVersion}, fmt.Sprintf("%07d and records", w.IntN(1e7))...)
	}
	c := &call{Call: state.Call{Now: w.now}, expiry: w.now + 1 + w.Int64N(1<<30)}
	switch w.IntN(12) {
	case 0, 1:
		w.settle(c)
	case 2:
		c.script = "grant"
		policies := w.owners(c, 0, 1+w.IntN(mostOwners))
		c.Args = append(c.Args, w.numbers(0, policies, 1, w.amount))
		c.rules(policies)
		c.key(&w.overrides)
	case 3:
		c.script = "peek"
		policies := w.owners(c, 0, 1+w.IntN(mostOwners))
		c.Args = append(c.Args, w.numbers(0, policies, 0, w.amount))
		c.rules(policies)
		c.key(&w.overrides)
	case 4:
		c.script = "renew"
		w.touchRecord()
		c.Args = append(c.Args, w.numbers(w.size(1<<30), nil, 0, nil), string(w.attempt()))
		c.key(&w.record)
	default:
		w.take(c)
	}
	return c
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
		State: byte(1 + max(0, w.IntN(6)-2)), Leased: w.now + w.Int64N(5) - 2, Ends: w.now + w.size(1<<30) - 1, Repeats: w.IntN(3),
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
	w.record = r.Pack()
}

func (w *world) take(c *call) {
	c.script = "take"
	policies := w.owners(c, 0, w.IntN(mostOwners+1))
	candidates := w.owners(c, 1, max(0, w.IntN(mostOwners+3)-3))
	all := append(policies[:len(policies):len(policies)], candidates...)
	kind := int64(state.FastTake)
	c.fast = len(all) > 0
	for i, p := range all {
		c.fast = c.fast && p.rules.Fast && state.FitsFast(p.rules, c.Values[i], w.now)
		if !p.rules.Fast {
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
			FreeRepeats: w.IntN(3), ChargeRepeats: w.one(2), RefuseAbandoned: w.one(2), Sum: w.Uint32(),
		}
		claim = string(packed.Pack())
	}
	c.key(&w.overrides)
	c.Args = append(c.Args, w.numbers(kind+int64(len(candidates))*state.CandidateOwner, all, 1, w.amount), claim)
	c.rules(all)
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
	c.Args = append(c.Args, w.numbers(w.now-back, policies, 2, func(r *state.Rule, amounts []int64) [2]int64 {
		charged := w.near(4*r.Capacity, append(amounts, 2*r.Capacity)...)
		if w.one(2) {
			return [2]int64{charged, -w.near(charged, charged, 1)}
		}
		return [2]int64{charged, w.near(state.MaxExact, amounts...)}
	}), end, "the answer")
	c.rules(policies)
}
