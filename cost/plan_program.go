package cost

// program computes a cost from variables: as many registers, and of these the result.
type program struct {
	code      []instruction
	registers int
	sums      []polynomial
	addends   []addend
	owns      []ownExpr
	sizes     []sizeExpr
	entities  []entityPrices
	functions []functionPrices
	rules     []rule
	result    polynomial
	// parts are what the calls of each root field cost, nil where there is one field, or nobody knows.
	parts []part
	// maxEntries is how many representations one call may have.
	maxEntries int
}

// opcode says what an instruction computes.
type opcode uint8

const (
	// opHolds is 1 if conditions[a] holds, else 0.
	opHolds opcode = iota
	// opSize is sizes[a], or 0 if it gives no size; in two registers, if b is 2, of which the second is 1 then.
	opSize
	// opTimes is the register a times the register b.
	opTimes
	// opOwn is what the calls of owns[a] cost themselves.
	opOwn
	// opSum is sums[a], a type cost below 0 taken as 0, in two registers: the type and the field cost.
	opSum
	// opMax is the component-wise maximum of sums[a:b], in two registers.
	opMax
	// opEntities is entities[a], in two registers.
	opEntities
	// opFunction is functions[a], in four registers: the type and the field cost that the function decides,
	// and 1 for each of the two that it does not.
	opFunction
)

// instruction computes the register to, and those after it if it has several results. Registers hold
// numbers that are not negative; infinity is one of them.
type instruction struct {
	op   opcode
	to   int32
	a, b int32
}

// polynomial is a cost that is linear in registers, which are products of sizes and conditions: a constant
// and addends[lo:hi].
type polynomial struct {
	constant pair
	lo, hi   int32
}

func (p *polynomial) isConstant() bool { return p.lo == p.hi }

// addend is a register times a coefficient.
type addend struct {
	register    int32
	coefficient pair
}

// ownExpr is what a call costs itself when that depends on variables. It is nothing unless the
// condition holds.
type ownExpr struct {
	condition int32
	constant  float64
	// terms are added, and the dearest of directives, if there are any.
	terms, directives span
}

// sizeExpr is a list size that depends on variables: the largest of constant and lookups, or fallback if
// none of them is given. A negative fallback is no size.
type sizeExpr struct {
	constant float64
	lookups  span
	fallback float64
}

// rule asks for exactly one slicing argument where the condition holds: given of them are constant,
// lookups may add to them.
type rule struct {
	condition int32
	given     int32
	lookups   span
}

// entityPrices are what one representation costs by its type, in a call that costs own itself: indices of
// sums. unknown is the most expensive of them.
type entityPrices struct {
	condition       int32
	representations int32
	own             int32
	sums            map[string]int32
	unknown         int32
}

// functionPrices is a call whose field has a function. What is selected on one element, and what the
// arguments of the call and the directives of the query cost are two sums from sum on.
type functionPrices struct {
	info   *fieldInfo
	weight float64
	at     int32
	sum    int32
}

// constant says whether the program computes nothing and checks nothing.
func (p *program) constant() bool { return len(p.code) == 0 && len(p.rules) == 0 }

// units measures the memory of the program, in the units of the cache.
func (p *program) units() int {
	units := len(p.code) + len(p.sums) + len(p.addends) + len(p.owns) + len(p.sizes) + len(p.rules) + len(p.functions) +
		len(p.parts)
	for i := range p.entities {
		units += 8 + len(p.entities[i].sums)
	}
	return units
}

// run evaluates a program with the variables that are loaded. It says whether no call breaks a rule,
// whether or not it happens.
func (m *machine) run(p *Plan, g *program) (root pair, kept bool) {
	m.registers = resized(m.registers, g.registers)
	kept = true
	for i := range g.code {
		in := &g.code[i]
		switch in.op {
		case opHolds:
			m.registers[in.to] = 0
			if m.holds[in.a] {
				m.registers[in.to] = 1
			}
		case opSize:
			size, ok := m.size(&p.tables, &g.sizes[in.a])
			m.registers[in.to] = size
			if in.b > 1 {
				m.registers[in.to+1] = 1
				if ok {
					m.registers[in.to+1] = 0
				}
			}
		case opTimes:
			m.registers[in.to] = times(m.registers[in.a], m.registers[in.b])
		case opOwn:
			m.registers[in.to] = m.own(&p.tables, &g.owns[in.a])
		case opEntities:
			price, few := m.entities(p, g, &g.entities[in.a])
			kept = kept && few
			m.registers[in.to], m.registers[in.to+1] = price.typ, price.field
		case opFunction:
			f := &g.functions[in.a]
			var price, ordinary pair
			if m.holds[p.functions[f.at].condition] {
				said := m.ask(f.info, &p.functions[f.at], f.weight, m.sum(g, &g.sums[f.sum]))
				price, ordinary = said.with(m.sum(g, &g.sums[f.sum+1]).field)
			}
			m.registers[in.to], m.registers[in.to+1] = price.typ, price.field
			m.registers[in.to+2], m.registers[in.to+3] = ordinary.typ, ordinary.field
		case opSum:
			price := m.sum(g, &g.sums[in.a])
			m.registers[in.to], m.registers[in.to+1] = max(0, price.typ), price.field
		default:
			var price pair
			for at := in.a; at < in.b; at++ {
				price = price.max(m.sum(g, &g.sums[at]))
			}
			m.registers[in.to], m.registers[in.to+1] = price.typ, price.field
		}
	}
	root = m.sum(g, &g.result)
	if m.left < 0 {
		// Some calls were not priced, so no list of size 0 around them may make them cheap.
		root = infinite
	}
	for i := range g.rules {
		r := &g.rules[i]
		if m.holds[r.condition] && int(r.given)+m.given(&p.tables, r.lookups) != 1 {
			return root, false
		}
	}
	return root, kept
}

func (m *machine) sum(g *program, s *polynomial) pair {
	total := s.constant
	for i := range g.addends[s.lo:s.hi] {
		a := &g.addends[int(s.lo)+i]
		total = total.plus(a.coefficient.times(m.registers[a.register]))
	}
	return total
}

// entities prices a call of _entities. It says whether there are no more representations than there may be.
func (m *machine) entities(p *Plan, g *program, e *entityPrices) (total pair, few bool) {
	if !m.holds[e.condition] {
		return pair{}, true
	}
	r := &p.representations[e.representations]
	if m.represented(r) > g.maxEntries {
		return infinite, false
	}
	if e.own >= 0 {
		total.field = m.own(&p.tables, &g.owns[e.own])
	}
	counted := m.represent(r, func(_ int, name string) {
		at, known := e.sums[name]
		if !known {
			at = e.unknown
		}
		total = total.plus(m.sum(g, &g.sums[at]))
	})
	if !counted {
		return infinite, true
	}
	return total, true
}
