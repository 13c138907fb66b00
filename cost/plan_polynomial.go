package cost

import "slices"

// Lowering turns a form into the program that an evaluation runs.
//
// A cost is nearly always a polynomial: weights, multiplied with the sizes of the lists around them, and
// with 1 or 0 for a condition. None of these is negative, and with 0 × ∞ = 0 they add and multiply by the
// usual laws up to infinity. So the polynomial of the operation is expanded and equal products are put
// together: an evaluation costs what the different sizes and conditions of the operation cost, and not
// what its fields do. What is no polynomial, such as the larger of two costs that depend on variables,
// is computed into registers, and is used like a size from there on.

// maxAddends is how many addends a cost may have before it is computed into registers. It bounds the
// expansion: lowering takes at most so many steps for each cost that a cost is made of.
const maxAddends = 8

// lowering is the working memory of lowering one form.
type lowering struct {
	form    *form
	program program
	// nodes counts the elements of lists of objects in the place of the cost.
	nodes bool

	// values are the costs of the values of the form, sized those of values whose parent sizes lists, sets
	// those of sets. Their addends are in the list below.
	values []memo
	sized  map[sizedKey]polynomial
	sets   map[sizedSet]setCost
	// calls are the costs of those on the root type.
	calls []polynomial
	// stack are the costs that are going to be added up or compared.
	stack   []polynomial
	addends []addend
	// total collects the addends of a sum. The register r stands at at[r], if it is in there at all.
	total []addend
	at    []int32

	// sizes, holds and owns are the registers of what the form says, -1 if there is none yet.
	sizes    []int32
	sizeIDs  map[sizeExpr]int32
	holds    []int32
	owns     map[ownKey]int32
	products map[[2]int32]int32
	rules    map[rule]bool
}

type memo struct {
	cost  polynomial
	known bool
}

// ownKey tells what calls cost themselves apart, if they have no more than two terms.
type ownKey struct {
	expr  ownExpr
	count int32
	terms [2]term
}

func (c *compiler) lower(nodes bool) program {
	l := lowering{
		form: c.form, nodes: nodes,
		values:  make([]memo, len(c.form.values)),
		holds:   slices.Repeat([]int32{-1}, len(c.form.conditions)),
		addends: make([]addend, 0, 2*len(c.form.calls)),
	}
	l.program.maxEntries = c.index.options.maxEntries
	if nodes {
		// The price has a rule for the number of representations.
		l.program.maxEntries = maxCount
	}
	cost := l.set(sizedSet{set: c.form.root}).rest
	l.begin()
	l.program.result = l.keep(l.include(cost))
	l.keepParts(l.calls)
	return l.program
}

// begin starts a sum.
func (l *lowering) begin() { l.total = l.total[:0] }

// put adds a register times a coefficient to the sum.
func (l *lowering) put(register int32, coefficient pair) {
	if coefficient == (pair{}) {
		return
	}
	if missing := int(register) + 1 - len(l.at); missing > 0 {
		l.at = append(l.at, make([]int32, missing)...)
	}
	if at := l.at[register]; int(at) < len(l.total) && l.total[at].register == register {
		l.total[at].coefficient = l.total[at].coefficient.plus(coefficient)
		return
	}
	l.at[register] = int32(len(l.total))
	l.total = append(l.total, addend{register, coefficient})
}

// include adds the addends of a cost to the sum, and returns its constant.
func (l *lowering) include(cost polynomial) pair {
	for _, a := range l.addends[cost.lo:cost.hi] {
		l.put(a.register, a.coefficient)
	}
	return cost.constant
}

// end returns the constant and the sum as a cost.
func (l *lowering) end(constant pair) polynomial {
	if len(l.total) == 0 {
		return polynomial{constant: constant}
	}
	if len(l.total) > maxAddends {
		l.compute(opSum, l.keepSum(constant), 0)
		constant = pair{}
	}
	lo := int32(len(l.addends))
	l.addends = append(l.addends, l.total...)
	return polynomial{constant, lo, int32(len(l.addends))}
}

// keep moves the constant and the sum into the program.
func (l *lowering) keep(constant pair) polynomial {
	lo := int32(len(l.program.addends))
	l.program.addends = append(l.program.addends, l.total...)
	return polynomial{constant, lo, int32(len(l.program.addends))}
}

func (l *lowering) keepSum(constant pair) int32 {
	return push(&l.program.sums, l.keep(constant))
}

// sumOf makes a cost a sum of the program.
func (l *lowering) sumOf(cost polynomial) int32 {
	l.begin()
	return l.keepSum(l.include(cost))
}

// emit appends an instruction and returns the register of its result.
func (l *lowering) emit(op opcode, a, b, results int32) int32 {
	to := int32(l.program.registers)
	l.program.registers += int(results)
	l.program.code = append(l.program.code, instruction{op: op, to: to, a: a, b: b})
	return to
}

// compute appends an instruction with two results, and makes them the sum.
func (l *lowering) compute(op opcode, a, b int32) {
	to := l.emit(op, a, b, 2)
	l.begin()
	l.put(to, pair{typ: 1})
	l.put(to+1, pair{field: 1})
}

// computed is compute for a cost that is nothing else.
func (l *lowering) computed(op opcode, a, b int32) polynomial {
	l.compute(op, a, b)
	return l.end(pair{})
}

// add returns the sum of two costs.
func (l *lowering) add(a, b polynomial) polynomial {
	if a.isConstant() && b.isConstant() {
		return polynomial{constant: a.constant.plus(b.constant)}
	}
	l.begin()
	return l.end(l.include(a).plus(l.include(b)))
}

// sum adds up one of so many costs on the stack each.
func (l *lowering) sum(from, each int) polynomial {
	l.begin()
	var constant pair
	for at := from; at < len(l.stack); at += each {
		constant = constant.plus(l.include(l.stack[at]))
	}
	return l.end(constant)
}

// scale multiplies a cost with a register.
func (l *lowering) scale(cost polynomial, register int32) polynomial {
	if cost == (polynomial{}) {
		return cost
	}
	l.begin()
	l.put(register, cost.constant)
	for _, a := range l.addends[cost.lo:cost.hi] {
		l.put(l.product(a.register, register), a.coefficient)
	}
	return l.end(pair{})
}

// times multiplies a cost with a number.
func (l *lowering) times(cost polynomial, n float64) polynomial {
	if cost.isConstant() {
		return polynomial{constant: cost.constant.times(n)}
	}
	if n == 1 {
		return cost
	}
	l.begin()
	for _, a := range l.addends[cost.lo:cost.hi] {
		l.put(a.register, a.coefficient.times(n))
	}
	return l.end(cost.constant.times(n))
}

func (l *lowering) product(a, b int32) int32 {
	key := [2]int32{min(a, b), max(a, b)}
	return once(&l.products, key, func() int32 { return l.emit(opTimes, a, b, 1) })
}

// size returns the register of a size, which is 0 if there is none; where that can be, the next one is 1
// then.
func (l *lowering) size(at int32) int32 {
	if l.sizes[at] < 0 {
		results := int32(1)
		if l.program.sizes[at].uncertain() {
			results = 2
		}
		l.sizes[at] = l.emit(opSize, at, results, results)
	}
	return l.sizes[at]
}

// when lets a cost count only under a condition.
func (l *lowering) when(condition int32, cost polynomial) polynomial {
	if condition == always || cost == (polynomial{}) {
		return cost
	}
	if l.holds[condition] < 0 {
		l.holds[condition] = l.emit(opHolds, condition, 0, 1)
	}
	return l.scale(cost, l.holds[condition])
}

// highest is the component-wise maximum of the costs on the stack from lo on. It is that of one cost where
// one is never below the others, whatever the registers are.
func (l *lowering) highest(lo int) polynomial {
	// No cost is negative, so a maximum may start at zero.
	var constant pair
	costs := slices.DeleteFunc(l.stack[lo:], func(cost polynomial) bool {
		if cost.isConstant() {
			constant = constant.max(cost.constant)
		}
		return cost.isConstant()
	})
	if len(costs) == 0 {
		return polynomial{constant: constant}
	}
	if len(costs) == 1 && constant == (pair{}) {
		return costs[0]
	}
	l.stack = append(l.stack[:lo+len(costs)], polynomial{constant: constant})
	costs = l.stack[lo:]
	typ := l.above(costs, func(p pair) pair { return pair{typ: p.typ} })
	field := l.above(costs, func(p pair) pair { return pair{field: p.field} })
	if typ >= 0 && field >= 0 {
		l.begin()
		for _, a := range l.addends[costs[typ].lo:costs[typ].hi] {
			l.put(a.register, pair{typ: a.coefficient.typ})
		}
		for _, a := range l.addends[costs[field].lo:costs[field].hi] {
			l.put(a.register, pair{field: a.coefficient.field})
		}
		return l.end(pair{typ: costs[typ].constant.typ, field: costs[field].constant.field})
	}
	first := int32(len(l.program.sums))
	for _, cost := range costs {
		l.sumOf(cost)
	}
	return l.computed(opMax, first, int32(len(l.program.sums)))
}

// above returns the index of a cost that in the component is not below any other, -1 if there may be none.
func (l *lowering) above(costs []polynomial, component func(pair) pair) int {
	best := 0
	for i := range costs {
		if l.covers(costs[i], costs[best], component) {
			best = i
		}
	}
	for i := range costs {
		if !l.covers(costs[best], costs[i], component) {
			return -1
		}
	}
	return best
}

// covers says whether each coefficient of a is at least that of b.
func (l *lowering) covers(a, b polynomial, component func(pair) pair) bool {
	if !component(a.constant).covers(component(b.constant)) {
		return false
	}
	addends := l.addends[a.lo:a.hi]
	return !slices.ContainsFunc(l.addends[b.lo:b.hi], func(x addend) bool {
		least := component(x.coefficient)
		at := slices.IndexFunc(addends, func(y addend) bool { return y.register == x.register })
		return at < 0 && least != pair{} || at >= 0 && !component(addends[at].coefficient).covers(least)
	})
}
