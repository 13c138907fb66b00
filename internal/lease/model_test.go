package lease_test

import (
	"container/heap"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"

	"github.com/gqlgen-ratelimit/ratelimit/internal/lease"
	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// faults are what happens to the instances and to what they send, and how often.
type faults struct {
	loss                          float64
	crash, pause, cut, step, late int64
	// dip is how often the clock of the store steps back, and on again soon.
	dip   int64
	drift bool
	// mistake is a deliberate one in the protocol.
	mistake string
}

// fleet is a model of instances that lease the limits of one owner, of the store, and of all that lies between them. Its time is in milliseconds, and
// so are the debits, so that the clock of the store says when they were.
type fleet struct {
	*rand.Rand
	faults
	queue  events
	serial int64
	now    int64
	// offset is by how much the clock of the store has stepped.
	offset  int64
	rules   *state.Rules
	limits  []lease.Limit
	values  [2][]byte
	expires [2]int64
	all     []*instance
	names   uint64
	// truth is what was admitted.
	truth []account
	steps int
	calls int
	// admitted and refused are how many were, and used is how many tokens, and ideal how many one bucket would have admitted.
	admitted, refused int
	used              int64
	ideal             bucketOfAll
	weights           []float64
	// rate is how many operations come in a millisecond.
	rate float64
	fail error
	// rest is the part of a millisecond until the next operation, and mixed says that some take from the rest as well, and that the load moves.
	rest  float64
	mixed bool
}

// warm is when the figures begin, in milliseconds.
const warm = 5000

func (b *bucketOfAll) offer(now int64, l *lease.Limit, tokens int64) {
	b.debt, b.at = max(0, b.debt-l.Rate*(now-b.at)), now
	if b.debt+tokens*l.Unit <= l.Capacity {
		if b.debt += tokens * l.Unit; now > warm {
			b.used += tokens
		}
	}
}

// instance is one of the fleet.
type instance struct {
	f      *fleet
	holder *lease.Holder
	// ppm is by how many millionths its clock runs faster.
	ppm int64
	// paused is until when it does nothing, cut until when it has no store, and dead that it is gone.
	paused, cut int64
	dead        bool
	waiting     [][]int64
	tries       int
}

func newFleet(seed uint64, instances int, rules []state.Rule, x faults) *fleet {
	f := &fleet{Rand: rand.New(rand.NewPCG(seed, 17)), faults: x, rules: state.NewRules(rules), now: 1 << 41}
	for i := range rules {
		unit, capacity, rate := f.rules.All[i].Leasing()
		f.limits = append(f.limits, lease.Limit{Window: rules[i].Tag != state.TokenBucket, Unit: unit, Capacity: capacity, Rate: rate})
		f.truth = append(f.truth, account{spent: new(big.Int)})
	}
	for range instances {
		i := &instance{f: f}
		if x.drift {
			i.ppm = f.Int64N(1001) - 500
		}
		i.begin()
		f.all = append(f.all, i)
		f.weights = append(f.weights, 1/float64(len(f.all)))
	}
	return f
}

func (i *instance) begin() {
	i.dead, i.waiting = false, nil
	i.holder = lease.New(i.f.limits, func() (name [8]byte) {
		i.f.names++
		binary.BigEndian.PutUint64(name[:], i.f.names)
		return name
	})
}

// clock is that of the instance, in microseconds.
func (i *instance) clock() int64 {
	t := i.f.now - 1<<41 + 1000
	return t*1000 + t*i.ppm/1000
}

func (f *fleet) store() int64 { return f.now + f.offset }

func (f *fleet) after(ms int64, do func()) {
	f.serial++
	heap.Push(&f.queue, happening{f.now + ms, f.serial, do})
}

func (f *fleet) failed(format string, args ...any) {
	if f.fail == nil {
		f.fail = fmt.Errorf("after %d ms: "+format, append([]any{f.now - 1<<41}, args...)...)
	}
}

// call runs a script on what is stored.
func (f *fleet) call(script func(state.Call) (state.Reply, error), keys []int, extra int64, numbers [][]int64, args ...string) string {
	now := f.store()
	c := state.Call{Now: now, Args: append([]string{f.numbers(extra, numbers)}, append(args, f.rules.Packed)...), Deadlines: true}
	for _, key := range keys {
		if f.values[key] != nil && f.expires[key] <= now {
			f.values[key] = nil
		}
		c.Values = append(c.Values, f.values[key])
	}
	c.Values = append(c.Values, nil)
	reply, err := script(c)
	if err != nil {
		f.failed("%v", err)
		return "\x00"
	}
	for _, w := range reply.Writes {
		f.values[keys[w.Key]] = w.Value
		if w.Expiry > 0 {
			f.expires[keys[w.Key]] = w.Expiry
		}
	}
	f.calls++
	f.consistent()
	return string(reply.Text)
}

func (f *fleet) numbers(extra int64, numbers [][]int64) string {
	b := state.AppendDouble(state.AppendDouble(nil, 0), extra)
	b = append(b, make([]byte, state.GenerationSize)...)
	b = state.AppendDouble(state.AppendDouble(b, 0), 1<<52)
	for _, limit := range numbers {
		for _, n := range limit {
			b = state.AppendDouble(b, n)
		}
	}
	if f.rules.Fast {
		for range (state.FastLimits - len(numbers)) * len(numbers[0]) {
			b = state.AppendDouble(b, 0)
		}
	}
	return string(b)
}

// send sends the message of an exchange that is under way, again and again until it is answered.
func (i *instance) send(m lease.Message) {
	f := i.f
	holder, sent := i.holder, i.clock()
	i.tries++
	if f.Float64() >= f.loss && i.cut <= f.now {
		f.after(f.trip(), func() {
			answer, at := f.exchange(&m, sent/lease.Millisecond)
			if f.Float64() >= f.loss && i.cut <= f.now {
				f.after(f.trip(), func() { i.receive(holder, &m, sent, answer, at) })
			}
		})
	}
	tries := i.tries
	f.after(20*min(int64(tries), 8), func() {
		if again, pending := holder.Pending(); pending && !i.dead && i.holder == holder && again.Number == m.Number && again.Holder == m.Holder && i.tries == tries {
			if f.now < i.paused {
				f.after(i.paused-f.now, func() { i.resend(holder, again) })
				return
			}
			i.resend(holder, again)
		}
	})
}

func (i *instance) resend(holder *lease.Holder, m lease.Message) {
	if again, pending := holder.Pending(); !pending || again.Number != m.Number || i.dead || i.holder != holder {
		return
	}
	if !holder.Alive(i.clock()) && m.Number > 1 {
		i.lost()
		return
	}
	i.send(m)
}

// lost begins anew after a lease has ended.
func (i *instance) lost() {
	i.mistaken(func() { i.holder.Lose(i.clock()) })
	i.flush()
}

// trip is how long a message takes.
func (f *fleet) trip() int64 {
	if f.IntN(200) == 0 {
		return f.Int64N(20 + f.late)
	}
	return f.Int64N(2)
}

// exchange does what the store does.
func (f *fleet) exchange(m *lease.Message, clock int64) (state.ExchangeAnswer, int64) {
	number := m.Number
	if f.mistake == "repeats are applied again" {
		number = f.nextNumber(m)
	}
	arg := state.AppendExchange(nil, m.Holder, number, clock, m.Heard, m.Beat, m.Leaving)
	arg = state.AppendUint(arg, state.PlaceSize, f.IntN(3))
	var numbers [][]int64
	for i := range m.Limits {
		n := m.Limits[i].Numbers()
		numbers = append(numbers, n[:])
	}
	before := f.held()
	reply := f.call(state.Exchange, []int{0, 1}, lease.Length/lease.Millisecond, numbers, string(arg))
	if reply[0] != byte(state.Applied) {
		return state.ExchangeAnswer{Status: state.OldExchange}, 0
	}
	if f.mistake == "an ended lease returns its level" {
		f.returnLevel(before, m)
	}
	answer, _, ok := state.ReadExchange(reply[7:], len(f.limits))
	if !ok {
		f.failed("an answer that cannot be read")
	}
	if f.mistake == "rate is given that is not free" && answer.Status == state.Exchanged {
		answer.Given[0].Rate = max(answer.Given[0].Rate, answer.Given[0].DueRate/8)
	}
	return answer, state.ReadUint(reply[1:], state.DateSize)
}

func (i *instance) receive(holder *lease.Holder, m *lease.Message, sent int64, answer state.ExchangeAnswer, at int64) {
	switch f := i.f; {
	case i.dead || i.holder != holder:
	case f.now < i.paused:
		f.after(i.paused-f.now, func() { i.receive(holder, m, sent, answer, at) })
	default:
		i.mistaken(func() { holder.Receive(i.clock(), sent, m, &answer, at) })
		i.tries = 0
		i.flush()
		f.consistent()
	}
}

// flush decides those who waited.
func (i *instance) flush() {
	waiting := i.waiting
	i.waiting = nil
	for _, amounts := range waiting {
		if i.take(i.clock(), amounts) {
			i.f.admit(amounts)
		} else {
			i.f.refused++
		}
	}
}

// take takes from what is leased, after a look at the clock.
func (i *instance) take(now int64, amounts []int64) bool {
	clock := i.clock
	if i.f.mistake == "the clock is not read after the debit" {
		clock = func() int64 { return math.MinInt64 }
	}
	_, ok := i.holder.Take(now, amounts, clock)
	return ok
}

// late stands still between a look at the clock and the debit.
func (i *instance) late(amounts []int64) {
	holder, now := i.holder, i.clock()
	i.f.after(i.f.Int64N(3000), func() {
		if i.holder != holder || i.dead || i.f.now < i.paused || !i.take(now, amounts) {
			return
		}
		if !holder.Alive(i.clock()) {
			i.f.failed("something was admitted after the end of the lease")
		}
		i.f.admit(amounts)
	})
}

// decide is an operation at an instance.
func (i *instance) decide(amounts []int64) {
	f := i.f
	if i.dead || f.now < i.paused {
		return
	}
	if f.pause > 0 && f.IntN(200) == 0 {
		i.late(amounts)
		return
	}
	if i.take(i.clock(), amounts) {
		f.admit(amounts)
		i.refund(amounts)
		return
	}
	if _, pending := i.holder.Pending(); pending && len(i.waiting) < 256 {
		i.waiting = append(i.waiting, amounts)
		return
	}
	if i.holder.MayAsk(i.clock()) {
		i.waiting = append(i.waiting, amounts)
		i.exchange(false)
		return
	}
	f.refused++
}

func (i *instance) exchange(leaving bool) {
	var m lease.Message
	begun := false
	i.mistaken(func() { m, begun = i.holder.Begin(i.clock(), leaving) })
	if begun {
		i.tries = 0
		i.send(m)
	}
}

// central takes from the rest, as who leases nothing.
func (f *fleet) central(amounts []int64) {
	var numbers [][]int64
	for _, n := range amounts {
		numbers = append(numbers, []int64{n})
	}
	if reply := f.call(state.Take, []int{0}, state.FastTake, numbers, ""); reply[0] == byte(state.Admitted) {
		f.admit(amounts)
	} else {
		f.refused++
	}
}

// judgedAt is the time by which is judged what has come back: what has by a clock that was right does not come again when it is right again.
func (f *fleet) judgedAt() int64 {
	if f.dip > 0 {
		return f.now
	}
	return f.store()
}

// admit counts what was admitted, and looks at whether it was too much in any interval of time.
func (f *fleet) admit(amounts []int64) {
	f.admitted++
	if f.now-1<<41 > warm {
		f.used += amounts[0]
	}
	now := f.judgedAt()
	for i, n := range amounts {
		a, l := &f.truth[i], &f.limits[i]
		if l.Window {
			if ends := f.windowEnd(i); ends != a.ends {
				a.ends, a.spent = ends, new(big.Int)
			}
			if n > 0 && now >= a.ends {
				f.failed("%d tokens were admitted of a window that is not open", n)
			}
		} else {
			back := new(big.Int).Mul(big.NewInt(l.Rate), big.NewInt(max(0, now-a.at)))
			if a.at = now; a.spent.Cmp(back) > 0 {
				a.spent.Sub(a.spent, back)
			} else {
				a.spent.SetInt64(0)
			}
		}
		a.spent.Add(a.spent, new(big.Int).Mul(big.NewInt(n), big.NewInt(l.Unit)))
		if over := new(big.Int).Sub(a.spent, big.NewInt(l.Capacity)); over.Sign() > 0 {
			f.failed("limit %d: %v units more than %d were admitted", i, over, l.Capacity)
		}
	}
}
