package cost

import "slices"

// Lowering turns the nodes of a plan, which say what the document says, into its program, which is what
// an evaluation runs.
//
// A cost is nearly always a polynomial: weights, multiplied with the sizes of the lists around them, and
// with 1 or 0 for a condition. None of these is negative, and with 0 × ∞ = 0 they add and multiply by the
// usual laws up to infinity. So the polynomial of the operation is expanded and equal products are put
// together: an evaluation costs what the different sizes and conditions of the operation cost, and not
// what its fields do. What is no polynomial, such as the larger of two costs that depend on variables,
// is computed into registers, and is used like a size from there on.

// maxAddends is how many addends a cost may have before it is computed into registers. It bounds the
// expansion: lowering takes at most so many steps for each node that a node reads.
const maxAddends = 8

// lowering is the working memory of lowering one plan.
type lowering struct {
	plan *Plan
	// costs are those of the nodes lowered so far, with addends in the list below.
	costs   []form
	addends []addend
	// total collects the addends of a sum. The register r stands at at[r], if it is in there at all.
	total     []addend
	at        []int32
	registers int32

	// sizes, holds and owns are the registers of what the plan says, -1 if there is none yet.
	sizes    []int32
	holds    []int32
	owns     map[ownKey]int32
	products map[[2]int32]int32
	rules    map[rule]bool
}

// ownKey tells what calls cost themselves apart, if they have no more than two terms.
type ownKey struct {
	expr  ownExpr
	count int32
	terms [2]term
}

// lower sets the program of a plan, and drops of the plan what only lowering needs.
func lower(plan *Plan) {
	if plan.root.isFixed() {
		plan.result.constant = plan.root.constant
		plan.dropNodes()
		return
	}
	l := lowering{
		plan:  plan,
		costs: make([]form, len(plan.nodes)),
		sizes: slices.Repeat([]int32{-1}, len(plan.sizes)),
		holds: slices.Repeat([]int32{-1}, len(plan.conditions)),
	}
	for i := range plan.nodes {
		l.costs[i] = l.node(&plan.nodes[i])
	}
	l.begin()
	plan.result = l.keep(l.include(plan.root))
	plan.registers = int(l.registers)
	if len(plan.rules) == 0 && len(plan.entities) == 0 && len(plan.functions) == 0 {
		// Nobody will look for the call that breaks a rule, or for those that happen.
		plan.dropNodes()
		return
	}
	// Their memory was made for a document in which each field depends on variables.
	plan.nodes, plan.calls = slices.Clone(plan.nodes), slices.Clone(plan.calls)
}

func (p *Plan) dropNodes() { p.nodes, p.calls, p.edges, p.root = nil, nil, nil, fixed(pair{}) }

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

// include adds the addends of a result to the sum, and returns its constant.
func (l *lowering) include(r ref) pair {
	f, addends := l.of(r)
	for _, a := range addends {
		l.put(a.register, a.coefficient)
	}
	return f
}

// of returns the constant and the addends of a result.
func (l *lowering) of(r ref) (pair, []addend) {
	if r.isFixed() {
		return r.constant, nil
	}
	f := &l.costs[r.node]
	return r.constant.plus(f.constant), l.addends[f.lo:f.hi]
}

// end returns the constant and the sum as the cost of a node.
func (l *lowering) end(constant pair) form {
	if len(l.total) > maxAddends {
		l.compute(opForm, l.keepForm(constant), 0)
		constant = pair{}
	}
	lo := int32(len(l.addends))
	l.addends = append(l.addends, l.total...)
	return form{constant, lo, int32(len(l.addends))}
}

// keep moves the constant and the sum into the plan.
func (l *lowering) keep(constant pair) form {
	lo := int32(len(l.plan.addends))
	l.plan.addends = append(l.plan.addends, l.total...)
	return form{constant, lo, int32(len(l.plan.addends))}
}

func (l *lowering) keepForm(constant pair) int32 {
	l.plan.forms = append(l.plan.forms, l.keep(constant))
	return int32(len(l.plan.forms) - 1)
}

// formOf makes a result a form of the plan.
func (l *lowering) formOf(r ref) int32 {
	l.begin()
	return l.keepForm(l.include(r))
}

// emit appends an instruction and returns the register of its result.
func (l *lowering) emit(op opcode, a, b, results int32) int32 {
	to := l.registers
	l.registers += results
	l.plan.program = append(l.plan.program, instruction{op: op, to: to, a: a, b: b})
	return to
}

// compute appends an instruction with two results, and makes them the sum.
func (l *lowering) compute(op opcode, a, b int32) {
	to := l.emit(op, a, b, 2)
	l.begin()
	l.put(to, pair{typ: 1})
	l.put(to+1, pair{field: 1})
}

func (l *lowering) node(n *node) form {
	switch n.kind {
	case nodeCall:
		return l.call(&l.plan.calls[n.lo])
	case nodeEntities:
		return l.entities(n.lo)
	case nodeFunction:
		return l.function(n.lo)
	case nodeMax:
		return l.max(l.plan.edges[n.lo:n.hi])
	case nodeSized:
		return l.sized(l.plan.edges[n.lo:n.hi], n.size)
	case nodeGate:
		l.begin()
		return l.scale(l.end(l.include(l.plan.edges[n.lo])), l.condition(n.condition))
	default:
		return l.sum(l.plan.edges[n.lo:n.hi])
	}
}

func (l *lowering) sum(edges []edge) form {
	l.begin()
	var constant pair
	for _, e := range edges {
		constant = constant.plus(l.include(e))
	}
	return l.end(constant)
}

func (l *lowering) call(c *call) form {
	own := -int32(1)
	var paid pair
	if c.termsLo == c.termsHi && c.extrasLo == c.extrasHi {
		paid.field = max(0, c.own)
	} else {
		own = l.own(c)
	}
	if c.rule {
		l.rule(c)
	}
	l.begin()
	constant := l.include(c.child)
	constant.typ += c.weight
	if constant.typ < 0 {
		// A number of elements is not negative, so it may be multiplied with after clamping.
		l.compute(opForm, l.keepForm(constant), 0)
		constant = pair{}
	}
	constant = constant.times(c.n)
	for i := range l.total {
		l.total[i].coefficient = l.total[i].coefficient.times(c.n)
	}
	l.total = slices.DeleteFunc(l.total, func(a addend) bool { return a.coefficient == pair{} })
	f := l.end(constant)
	if c.size >= 0 {
		f = l.scale(f, l.size(c.size))
	}
	if paid != (pair{}) {
		f.constant = f.constant.plus(paid)
	}
	if own >= 0 {
		l.begin()
		for _, a := range l.addends[f.lo:f.hi] {
			l.put(a.register, a.coefficient)
		}
		l.put(own, pair{field: 1})
		f = l.end(f.constant)
	}
	return l.scale(f, l.condition(c.condition))
}

// scale multiplies a cost with a register, -1 for 1.
func (l *lowering) scale(f form, register int32) form {
	if register < 0 {
		return f
	}
	l.begin()
	l.put(register, f.constant)
	for _, a := range l.addends[f.lo:f.hi] {
		l.put(l.product(a.register, register), a.coefficient)
	}
	return l.end(pair{})
}

func (l *lowering) product(a, b int32) int32 {
	key := [2]int32{min(a, b), max(a, b)}
	if register, ok := l.products[key]; ok {
		return register
	}
	if l.products == nil {
		l.products = make(map[[2]int32]int32)
	}
	register := l.emit(opTimes, a, b, 1)
	l.products[key] = register
	return register
}

func (l *lowering) size(at int32) int32 {
	if l.sizes[at] < 0 {
		l.sizes[at] = l.emit(opSize, at, 0, 1)
	}
	return l.sizes[at]
}

// condition returns -1 for a condition that always holds.
func (l *lowering) condition(at int32) int32 {
	if at != always && l.holds[at] < 0 {
		l.holds[at] = l.emit(opHolds, at, 0, 1)
	}
	return l.holds[at]
}

func (l *lowering) ownExpr(c *call) int32 {
	l.plan.owns = append(l.plan.owns, ownExpr{c.condition, c.own, c.termsLo, c.termsHi, c.extrasLo, c.extrasHi})
	return int32(len(l.plan.owns) - 1)
}

// own returns the register of what a call costs itself. Calls that cost the same share one.
func (l *lowering) own(c *call) int32 {
	count := c.termsHi - c.termsLo
	key := ownKey{expr: ownExpr{condition: c.condition, constant: c.own}, count: count}
	if shared := c.extrasLo == c.extrasHi && int(count) <= len(key.terms); !shared {
		return l.emit(opOwn, l.ownExpr(c), 0, 1)
	}
	copy(key.terms[:], l.plan.terms[c.termsLo:c.termsHi])
	if register, ok := l.owns[key]; ok {
		return register
	}
	if l.owns == nil {
		l.owns = make(map[ownKey]int32)
	}
	register := l.emit(opOwn, l.ownExpr(c), 0, 1)
	l.owns[key] = register
	return register
}

// rule lets each evaluation check a rule. Calls with the same arguments share one.
func (l *lowering) rule(c *call) {
	r := rule{c.condition, c.given, c.lookupsLo, c.lookupsHi}
	if l.rules[r] {
		return
	}
	if l.rules == nil {
		l.rules = make(map[rule]bool)
	}
	l.rules[r] = true
	l.plan.rules = append(l.plan.rules, r)
}

func (l *lowering) sized(edges []edge, size int32) form {
	if l.plan.certain(size) {
		l.begin()
		f := l.scale(l.end(l.include(edges[1])), l.size(size))
		l.begin()
		constant := l.include(edges[0])
		for _, a := range l.addends[f.lo:f.hi] {
			l.put(a.register, a.coefficient)
		}
		return l.end(constant.plus(f.constant))
	}
	first := l.formOf(edges[0])
	l.formOf(edges[1])
	l.formOf(edges[2])
	l.compute(opSized, size, first)
	return l.end(pair{})
}

func (l *lowering) entities(at int32) form {
	e := &l.plan.entities[at]
	e.own = l.ownExpr(&e.call)
	e.forms = make(map[string]int32, len(e.byType))
	for name, r := range e.byType {
		e.forms[name] = l.formOf(r)
	}
	e.byType = nil
	e.unknownForm = l.formOf(e.unknown)
	l.compute(opEntities, at, 0)
	return l.end(pair{})
}

// max is the component-wise maximum. It is that of one edge where one is never below the others,
// whatever the registers are.
func (l *lowering) max(edges []edge) form {
	typ := l.highest(edges, func(p pair) pair { return pair{typ: p.typ} })
	field := l.highest(edges, func(p pair) pair { return pair{field: p.field} })
	if typ >= 0 && field >= 0 {
		l.begin()
		var constant pair
		p, addends := l.of(edges[typ])
		constant.typ = p.typ
		for _, a := range addends {
			l.put(a.register, pair{typ: a.coefficient.typ})
		}
		p, addends = l.of(edges[field])
		constant.field = p.field
		for _, a := range addends {
			l.put(a.register, pair{field: a.coefficient.field})
		}
		return l.end(constant)
	}
	first := int32(len(l.plan.forms))
	for _, e := range edges {
		l.formOf(e)
	}
	l.compute(opMax, first, int32(len(l.plan.forms)))
	return l.end(pair{})
}

// highest returns the index of an edge that in the component is not below any other, -1 if there may be
// none.
func (l *lowering) highest(edges []edge, component func(pair) pair) int {
	best := 0
	for i := range edges {
		if l.above(edges[i], edges[best], component) {
			best = i
		}
	}
	for i := range edges {
		if !l.above(edges[best], edges[i], component) {
			return -1
		}
	}
	return best
}

// above says whether each coefficient of a is at least that of b.
func (l *lowering) above(a, b ref, component func(pair) pair) bool {
	high, addends := l.of(a)
	low, below := l.of(b)
	if !component(high).covers(component(low)) {
		return false
	}
	return !slices.ContainsFunc(below, func(x addend) bool {
		least := component(x.coefficient)
		at := slices.IndexFunc(addends, func(y addend) bool { return y.register == x.register })
		return at < 0 && least != pair{} || at >= 0 && !component(addends[at].coefficient).covers(least)
	})
}
