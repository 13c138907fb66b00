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
	// maxEntries is how many representations one call may have.
	maxEntries int
}

// opcode says what an instruction computes.
type opcode uint8

const (
	// opHolds is 1 if conditions[a] holds, else 0.
	opHolds opcode = iota
	// opSize is sizes[a], which certainly gives a size.
	opSize
	// opTimes is the register a times the register b.
	opTimes
	// opOwn is what the calls of owns[a] cost themselves.
	opOwn
	// opSum is sums[a], a type cost below 0 taken as 0, in two registers: the type and the field cost.
	opSum
	// opMax is the component-wise maximum of sums[a:b], in two registers.
	opMax
	// opSized is sums[b] plus sizes[a] times sums[b+1], or sums[b+2] if there is no such size, in two
	// registers.
	opSized
	// opEntities is entities[a], in two registers.
	opEntities
	// opFunction is functions[a], in two registers.
	opFunction
)

// instruction computes the register to, and the one after it if it has two results. Registers hold
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

// sizeExpr is a list size that depends on variables: the largest of constant and lookups. If none of
// them is given it is that of next, or fallback if next is -1; a negative fallback is no size.
type sizeExpr struct {
	constant float64
	lookups  span
	fallback float64
	next     int32
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

// functionPrices is a call whose field has a function. What is selected on one element, what the call costs
// without the function, and what its arguments and the directives of the query cost are three sums from sum on.
type functionPrices struct {
	info   *fieldInfo
	weight float64
	at     int32
	sum    int32
	// element says that only what the elements cost is asked for, which is theirs without the function.
	element bool
}

// constant says whether the program computes nothing and checks nothing.
func (p *program) constant() bool { return len(p.code) == 0 && len(p.rules) == 0 }

// units measures the memory of the program, in the units of the cache.
func (p *program) units() int {
	units := len(p.code) + len(p.sums) + len(p.addends) + len(p.owns) + len(p.sizes) + len(p.rules) + len(p.functions)
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
			m.registers[in.to], _ = m.size(p, g, in.a)
		case opTimes:
			m.registers[in.to] = times(m.registers[in.a], m.registers[in.b])
		case opOwn:
			m.registers[in.to] = m.own(&p.tables, &g.owns[in.a])
		case opEntities:
			price, few := m.entities(p, g, &g.entities[in.a])
			kept = kept && few
			m.registers[in.to], m.registers[in.to+1] = price.typ, price.field
		default:
			price := m.pair(p, g, in)
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

// pair computes an instruction with two results.
func (m *machine) pair(p *Plan, g *program, in *instruction) pair {
	var price pair
	switch in.op {
	case opSum:
		price = m.sum(g, &g.sums[in.a])
		price.typ = max(0, price.typ)
	case opMax:
		for i := in.a; i < in.b; i++ {
			price = price.max(m.sum(g, &g.sums[i]))
		}
	case opSized:
		size, ok := m.size(p, g, in.a)
		if !ok {
			return m.sum(g, &g.sums[in.b+2])
		}
		price = m.sum(g, &g.sums[in.b]).plus(m.sum(g, &g.sums[in.b+1]).times(size))
	default:
		f := &g.functions[in.a]
		if !m.holds[p.functions[f.at].condition] {
			return pair{}
		}
		ordinary := m.sum(g, &g.sums[f.sum+1])
		said := m.ask(f.info, &p.functions[f.at], f.weight, m.sum(g, &g.sums[f.sum]))
		if f.element {
			return said.elements(ordinary)
		}
		price = said.of(ordinary, m.sum(g, &g.sums[f.sum+2]).field)
	}
	return price
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
