package state_test

import (
	"math/rand/v2"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// The times lie after that of every Redis that runs the tests: it would drop what expires before its own.
const (
	firstNow   = int64(1) << 42
	longest    = int64(10 * 366 * 24 * 3600 * 1000)
	mostOwners = 3
	mostCounts = 3
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
	// overrides are records, and instances those of the store.
	overrides, instances []byte
	attempts             [2][16]byte
	// counts are what is counted in an hour.
	counts     [mostCounts][]byte
	countsHour int64
	// holdings are those of each live owner, and holders who may hold something.
	holdings [mostOwners][]byte
	holders  [3]holderState
	// onlyLeases says that a chain is all about leases, and exchanges is how many there were that are not compared.
	onlyLeases bool
	exchanges  int
}

// policy is the limits of an owner.
type policy struct {
	rules *state.Rules
	// amounts are numbers that the limits are near to admit.
	amounts []int64
}

func newWorld(seed, chain uint64) *world {
	w := &world{Rand: rand.New(rand.NewPCG(seed, chain)), onlyLeases: chain >= leaseChains}
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
	case r.Tag == state.TokenBucket && w.one(4):
		return w.leased(r, tokens)
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

// leased draws the entry of a token bucket of which instances hold something, by its rule or one that was like it.
func (w *world) leased(r *state.Rule, tokens int64) state.Entry {
	scale := int64(1)
	if r.P < 1<<30 && r.Full < state.MaxDebt/1000 && r.R < state.MaxExact/1000 && !w.one(8) {
		scale = 1000
	}
	held := &state.Leased{Base: scale * r.R, Until: w.now + w.Int64N(4000) - 2000}
	held.Capacity = w.near(scale*r.Full, scale*r.Full/2, 1, 0)
	held.Rate = w.near(held.Base, held.Base/2, 1, 0)
	switch w.IntN(10) {
	case 0:
		held.Until = w.now - state.LeaseForgotten + w.Int64N(3) - 1
	case 1:
		held.Until = w.now + state.MaxLease + 4999 + w.Int64N(3)
	}
	e := state.Entry{ID: r.ID, Terms: state.Terms{Tag: r.Tag, P: scale * r.P, R: max(1, held.Base-held.Rate)}, Held: held}
	e.Debt = min(w.near(state.MaxExact/4, min(tokens, state.MaxExact/4/e.P)*e.P, scale*r.Full-held.Capacity, 0), state.Product(held.Base, longest))
	e.Date = w.date(min(e.Debt/e.R+2, 2*longest))
	return e
}

// gone is when no entry counts anything any more.
func gone(o *state.Owner) int64 {
	until := int64(0)
	for i := range o.Entries {
		until = max(until, o.Entries[i].Gone())
	}
	return until
}

// code draws what a state of one date says of the expiry of its key: what a write says, or any other.
func (w *world) code(o *state.Owner, date int64) byte {
	if w.one(4) {
		return byte(w.IntN(256))
	}
	return state.NextDeadline(gone(o), date-w.Int64N(8192))
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
		o.SetDeadline(w.code(&o, date), 0)
		return state.PackFast(&o, rules, date)
	}
	known := map[uint16]bool{}
	for i := range rules.All {
		if !w.one(4) {
			o.Entries = append(o.Entries, w.entry(&rules.All[i], p.amounts))
			known[rules.All[i].ID] = true
		}
	}
	for range max(0, w.IntN(5)-2) {
		if e := w.entry(nil, nil); !known[e.ID] {
			o.Entries, known[e.ID] = append(o.Entries, e), true
		}
	}
	w.Shuffle(len(o.Entries), func(i, j int) { o.Entries[i], o.Entries[j] = o.Entries[j], o.Entries[i] })
	if gone := gone(&o); w.one(3) {
		o.SetDeadline(0, gone+w.Int64N(3)-1)
	} else if w.one(2) {
		// As long again and some seconds is the most.
		o.SetDeadline(0, max(0, 2*gone-w.now+8192+w.Int64N(3)-1))
	}
	text := state.PackInOrder(&o, rules)
	if w.one(4) {
		text = state.PackMixed(&o)
	}
	if w.one(100) {
		// Something that nobody wrote.
		text[w.IntN(2)%len(text)] ^= 8
	} else if w.one(100) {
		text = text[:w.IntN(len(text))]
	}
	return text
}
